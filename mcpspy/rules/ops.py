"""Operational rules: what somebody who runs a server or an agent should look at, although the protocol allows it.

They are opinions about one run, so they run only on request (`operations` of `Judge`). A request that continues an
`input_required` answer belongs to the same call (2026-07-28).
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

from mcpspy.conversation import bounds
from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import page
from mcpspy.conversation.times import PERSONAL
from mcpspy.conversation.wording import same
from mcpspy.cost import context_size, tokens_text
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.text import duration_text, plural
from mcpspy.wire.jsonrpc import Error, Request, Result

ROW = 3
"""The number of identical calls in a row that counts as a loop."""
_CALL = ("tools/call",)
_LISTED = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
"""
_CALLED = '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
_ANSWERED = '        < 3 = {"content":[]}\n'


@rule(
    "ops/tool-failed",
    "warning",
    """A call of a tool failed: the result has `isError`, or the answer is an error. The protocol allows both, and a
    model can learn from them, but a run that should succeed has none.""",
    fix="Read what the tool answered, and correct the arguments or the tool.",
    meanwhile="Show the error to the model, which can correct the call.",
    blame="server",
    spec="server/tools#error-handling",
    fails=_LISTED + _CALLED + '        < 3 = {"content":[{"type":"text","text":"no such city"}],"isError":true}',
    passes=_LISTED + _CALLED + _ANSWERED,
    on=(Result, Error),
    methods=_CALL,
)
def tool_failed(message: Message, session: Session) -> Iterator[Fault]:
    """Report a call that failed."""
    if isinstance(message.body, Error):
        code, told = (member(message.body.error, key) for key in ("code", "message"))
        yield Fault(f"{_tool(message)} failed: error {excerpt(code)}: {excerpt(told, 160)}", "/error")
    elif member(message.body.value, "result", "isError") is True:
        yield Fault(f"{_tool(message)} failed: {_said(message)}", "/result/isError")


def _said(message: Message) -> str:
    """Return the first text of a result."""
    content = member(message.body.value, "result", "content")
    texts = [member(block, "text") for block in content] if isinstance(content, list) else []
    return excerpt(next((text for text in texts if isinstance(text, str)), ""), 160)


@rule(
    "ops/slow-call",
    "warning",
    """A call of a tool took longer than ten seconds, or than `slow_call` in a file of expectations. Time spent waiting
    for a person, or in a gate, does not count.""",
    fix="Make the tool faster, or return a task. Meanwhile report progress.",
    meanwhile="Show that the call is running, and let the user cancel it.",
    blame="server",
    spec="server/tools#calling-tools",
    fails=_LISTED + '        @1 > 3 tools/call {"name":"echo"}\n        @12 < 3 = {"content":[]}',
    passes=_LISTED + '        @1 > 3 tools/call {"name":"echo"}\n        @2 < 3 = {"content":[]}',
    on=(Result, Error),
    methods=_CALL,
)
class SlowCalls(StatefulCheck):
    """Report slow calls. Remember the latest time spans of waiting for a person, which do not count."""

    learns_from: ClassVar[dict[type, tuple[str, ...]]] = {Request: PERSONAL, Result: PERSONAL, Error: PERSONAL}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asked: deque[tuple[int, int]] = deque(maxlen=bounds.ASKED_SPANS)
        self._asking: dict[int, int] = {}  # by line number of the request: when it was sent

    def learn(self, message: Message) -> None:
        """Remember from when to when a person was asked."""
        if isinstance(message.body, Request):
            keep(self._asking, message.n, message.t)
        elif message.exchange:
            begun = self._asking.pop(message.exchange.request.n, None)
            if begun is not None:
                self._asked.append((begun, message.t))

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare the duration of a call with the limit."""
        exchange, operations = message.exchange, self.session.operations
        if exchange is None or operations is None or (exchange.latency or 0) <= operations.slow:
            return
        took = (exchange.latency or 0) - self._time_asked(exchange.request.t, message.t)
        if took > operations.slow:
            limit = duration_text(operations.slow)
            yield Fault(f"{_tool(message)} took {duration_text(took)}; more than {limit} is slow")

    def _time_asked(self, start: int, end: int) -> int:
        """Return the nanoseconds between two times in which a person was asked, by one request or several."""
        total = 0
        for begun, answered in sorted(self._asked):
            since, until = max(begun, start), min(answered, end)
            if until > since:
                total += until - since
                start = until
        return total


@rule(
    "ops/loop",
    "warning",
    """A tool was called three or more times in a row with the same arguments. The model makes no progress, or the
    client repeats a failed call. Polling for a result looks the same. So do several clients with the same name on
    one machine, if the server has no sessions (2026-07-28).""",
    fix="Let the model see what the earlier calls returned, and limit how often a call is repeated.",
    meanwhile="Say in the result what the model has to change, or return a task, so that the model need not poll.",
    blame="client",
    spec="server/tools#calling-tools",
    fails=_LISTED
    + "".join(
        f'        > {n} tools/call {{"name":"echo","arguments":{{"text":"a"}}}}\n        < {n} = {{"content":[]}}\n'
        for n in (3, 4, 5)
    ),
    passes=_LISTED
    + "".join(
        f'        > {n} tools/call {{"name":"echo","arguments":{{"text":"{n}"}}}}\n        < {n} = {{"content":[]}}\n'
        for n in (3, 4, 5)
    ),
    on=(Request,),
    methods=_CALL,
)
class Loops(StatefulCheck):
    """Report calls that repeat with the same arguments. Remember the latest equal calls."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._latest: tuple[str | None, Any] = None, {}
        self._frames: list[int] = []

    def lose(self) -> None:
        """Forget the calls: there may have been others in between."""
        self._frames.clear()

    def check(self, message: Message) -> Iterator[Fault]:
        """Report the third of several equal calls, but not those that follow it in a row."""
        if message.exchange and message.exchange.continues:
            return
        called = message.name, member(message.body.value, "params", "arguments") or {}
        if not same(called, self._latest):
            self._latest = called
            self._frames.clear()
        if len(self._frames) == ROW:
            return
        if len(self._frames) == ROW - 1:
            sentence = f"{_tool(message)} is called with the same arguments as in the {ROW - 1} calls before"
            yield Fault(sentence, "/params", tuple(self._frames))
        self._frames.append(message.n)


@rule(
    "ops/unused-server",
    "info",
    """The server has tools, but no client called any of them. Their definitions used part of the model's context
    anyway.""",
    fix="Remove the server from the clients that do not need it, or let them load its tools on demand.",
    meanwhile="Describe the tools so that a model knows when to call them.",
    blame="client",
    spec="server/tools#listing-tools",
    fails=_LISTED,
    passes=_LISTED + _CALLED + _ANSWERED,
    on=(Result, Request),
    methods=("tools/list", "tools/call"),
)
class UnusedServers(StatefulCheck):
    """Report a server whose tools were never called. Remember the first listing of a session with tools."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._listing: Message | None = None
        self._tools = self._size = 0

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember a listing or a call. Nothing is reported before the end."""
        operations = self.session.operations
        if operations and message.method == "tools/call":
            operations.used = True
            return iter(())
        found = page(message)
        if found and found.entries:
            if found.first:
                self._listing, self._tools, self._size = message, 0, 0
            self._tools += len(found.entries)
            self._size += sum(map(context_size, found.entries))
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report that no tool was called, once for all sessions of the capture."""
        operations = self.session.operations
        if self._listing is None or operations is None or operations.used or self.session.lossy:
            return
        operations.used = True
        what = f"the server lists {plural(self._tools, 'tool')} ({tokens_text(self._size)} tokens), and none was called"
        yield Fault(what, "/result/tools", blame="client", at=self._listing)


def _tool(message: Message) -> str:
    """Return the name of the tool that a call or its answer is about."""
    return (message.name or "a tool without a name")[:60]
