"""Rules about listings in pages. Each page has the cursor of the next page."""

from collections.abc import Iterator
from typing import ClassVar

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.wire.jsonrpc import Request, Result

_LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list",
          "skills/list")  # fmt: skip


@rule(
    "paging/unknown-cursor",
    "warning",
    "A cursor must be the `nextCursor` of an earlier page of the same listing. Clients must not make up their own.",
    fix="Send the `nextCursor` of the previous page unchanged, and no cursor for the first page.",
    meanwhile="If you did not issue the cursor, answer with the error -32602.",
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
    methods=_LISTS,
)
class UnknownCursor(StatefulCheck):
    """Report a cursor that the server did not issue. Checked later, because the page may be recorded late."""

    learns_from: ClassVar = {Result: _LISTS}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._issued: dict[str, dict[str, None]] = {}
        """By method: the cursors that the server has issued."""

    def learn(self, message: Message) -> None:
        """Remember the cursor that a page issues."""
        cursor = member(message.body.value, "result", "nextCursor")
        if isinstance(cursor, str) and message.exchange:
            keep(self._issued.setdefault(message.exchange.method, {}), cursor, None)

    def check(self, message: Message) -> Iterator[Fault | Later]:
        """Look up the cursor of a request."""
        method, cursor = member(message.body.value, "method"), member(message.body.value, "params", "cursor")
        if isinstance(cursor, str) and not self.session.lossy and not self._knows(method, cursor):
            yield Later(self._later(method, cursor))

    def _later(self, method: str, cursor: str) -> Iterator[Fault]:
        if not self._knows(method, cursor):
            yield Fault(f"the cursor is not the nextCursor of an earlier page of {method}", "/params/cursor")

    def _knows(self, method: str, cursor: str) -> bool:
        return cursor in self._issued.get(method, ())
