"""Rules about listings that come in pages, each of which gives the cursor of the next."""

from collections.abc import Iterator

from mcpspy.conversation.model import Message
from mcpspy.json_values import member
from mcpspy.rules.rule import RULES, Fault, rule
from mcpspy.rules.state import State
from mcpspy.wire.jsonrpc import Request


@rule(
    "paging/unknown-cursor",
    "warning",
    "A cursor comes from the `nextCursor` of an earlier page of the same listing; clients must not make up their own.",
    spec="server/utilities/pagination",
    fails="""
        = 2025-06-18
        > 2 tools/list {"cursor":"page-2"}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"page-2"}
        > 3 tools/list {"cursor":"page-2"}
    """,
    on=(Request,),
    methods=("tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list"),
)
def unknown_cursor(message: Message, state: State) -> Iterator[Fault]:
    """Cursors that nobody issued; asked again later, when the page may have been recorded."""
    method, cursor = member(message.body.value, "method"), member(message.body.value, "params", "cursor")
    if not isinstance(cursor, str) or state.lossy or cursor in state.cursors.get(method, ()):
        return

    def question() -> Iterator[Fault]:
        if cursor not in state.cursors.get(method, ()):
            yield Fault(f"no page of {method} has issued this cursor", "/params/cursor")

    state.ask_later(RULES["paging/unknown-cursor"], message, question)
    yield from ()
