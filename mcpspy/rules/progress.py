"""Rules about progress: progress notifications have the token of their request.

The request may be recorded a moment after its progress, so a rule that does not find it checks again later. After a gap
nothing is reported as missing.
"""

from collections.abc import Iterator
from itertools import islice

from mcpspy.conversation.context import is_about, is_in_answer, other
from mcpspy.conversation.facts import Progress
from mcpspy.conversation.model import HOLD, Exchange, Message, Session
from mcpspy.conversation.outcomes import waited
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.wire.jsonrpc import Error, Id, Notification, Request, Result

_PROGRESS = "basic/utilities/progress"
_LATEST = 100  # tokens that are compared with one that is unknown
_LONG = 10_000_000_000


@rule(
    "progress/unknown-token",
    "error",
    "A progress notification must have the `progressToken` of a request in flight. No request has this token.",
    fix="""Copy `_meta.progressToken` of the request with its JSON type, and report no progress without one.
    In the Python SDK, `ctx.report_progress` does both.""",
    meanwhile="Ignore the notification.",
    spec=_PROGRESS,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        < notifications/progress {"progressToken":2,"progress":1}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"slow"}}
        < notifications/progress {"progressToken":"slow","progress":1}
    """,
    on=(Notification,),
    methods=("notifications/progress",),
)
def unknown_token(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a token that no request has. Checked later, because the request may be recorded late."""
    token = member(message.body.value, "params", "progressToken")
    key = (other(message.sender), Id.of(token))
    if key in session.progress or session.lossy or session.progress_forgotten or token is None:
        return

    remark = _with_this_id(key, message)

    def question() -> Iterator[Fault]:
        if key not in session.progress and not session.progress_forgotten:
            near = _similar(key, message)
            meant = f"; {near[0].beside(key[1])} is in use by #{near[1].request}" if near else ""
            hint = meant or remark
            yield Fault(f"no request has the progressToken {key[1].excerpt}{hint}", "/params/progressToken",
                        (near[1].request,) if near else ())  # fmt: skip

    yield Later(question())


def _similar(key: tuple[str, Id], message: Message) -> tuple[Id, Progress] | None:
    """Return the latest token of a request in flight that is similar to an unknown token, if there is one."""
    for (side, token), known in islice(reversed(message.session.progress.items()), _LATEST):
        in_use = known.ended is None or known.ended > message.t
        if side == key[0] and token.loose == key[1].loose and in_use:
            return token, known
    return None


def _with_this_id(key: tuple[str, Id], message: Message) -> str:
    """Return a remark about the request in flight that has the token as its id, if there is one."""
    waiting = message.session.pending.get(key, ())
    if not waiting:
        return ""
    request = waiting[-1].request
    token = member(request.body.value, "params", "_meta", "progressToken")
    return f"; request {key[1].excerpt}, #{request.n}, has {'none' if token is None else Id.of(token).excerpt}"


@rule(
    "progress/token-reused",
    "error",
    "The progress token is in use by another request in flight, so progress notifications match both.",
    fix="Use a new `progressToken` for each request, for example its `id`.",
    spec=_PROGRESS,
    about="meta",
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"a","_meta":{"progressToken":"t"}}
        > 3 tools/call {"name":"b","_meta":{"progressToken":"t"}}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"a","_meta":{"progressToken":"t"}}
        < 2 = {"content":[]}
        > 3 tools/call {"name":"b","_meta":{"progressToken":"t"}}
    """,
    on=(Request,),
)
def token_reused(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a token that is in use. Checked later, because the answer that frees it may be recorded late."""
    token = member(message.body.value, "params", "_meta", "progressToken")
    known = session.progress.get((message.sender, Id.of(token))) if token is not None else None
    if known is None or known.ended is not None or known.cancelled or session.lossy:
        return

    def question() -> Iterator[Fault]:
        if known.ended is None or known.ended > message.t:
            yield Fault(f"the progressToken is already in use by request #{known.request}",
                        "/params/_meta/progressToken", (known.request,))  # fmt: skip

    yield Later(question())


@rule(
    "progress/not-increasing",
    "error",
    "The value of `progress` must grow with each notification, even if the total is unknown.",
    fix="Increase `progress` with each notification, and leave out those that add nothing.",
    meanwhile="Show the highest value so far.",
    spec=_PROGRESS,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
        < notifications/progress {"progressToken":"t","progress":5}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
        < notifications/progress {"progressToken":"t","progress":5.5}
    """,
    on=(Notification,),
    methods=("notifications/progress",),
)
def not_increasing(message: Message, session: Session) -> Iterator[Fault]:
    """Report progress that is not larger than before."""
    value = member(message.body.value, "params", "progress")
    known = _reported_on(message, session)
    if known is None or (known.before and known.before.ended is None):
        return  # it may be the progress of the other request with this token
    if known.last is not None and type(value) in (int, float) and value <= known.last:
        yield Fault(f"progress is {value}; expected more than {known.last}, the value before", "/params/progress")


def _reported_on(message: Message, session: Session) -> Progress | None:
    """Return the request that a progress notification belongs to, or None if that is uncertain."""
    token = member(message.body.value, "params", "progressToken")
    known = session.progress.get((other(message.sender), Id.of(token)))
    return known if known and is_about(message, known.request) else None


@rule(
    "progress/after-completion",
    "warning",
    "Progress notifications must stop when the request is answered.",
    fix="Await all progress notifications before you send the result.",
    meanwhile="Ignore progress of a request that is answered.",
    spec=_PROGRESS,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < 2 = {"content":[]}
        < notifications/progress {"progressToken":"t","progress":5}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
        < 2 = {"content":[]}
    """,
    on=(Notification,),
    methods=("notifications/progress",),
)
def after_completion(message: Message, session: Session) -> Iterator[Fault]:
    """Report progress after the answer. Allowed for a cancelled request, and for a task of 2025-11-25."""
    known = _reported_on(message, session)
    if known is None or known.ended is None or known.cancelled or known.task:
        return
    crossing = message.http is not None and not is_in_answer(message, known.request)  # one stream may be ahead
    if message.t > known.ended + (HOLD if crossing else 0):
        yield Fault(f"request #{known.request} was already answered", "/params/progressToken", (known.request,))


@rule(
    "progress/no-token",
    "info",
    """A long call of a tool timed out, and no request of the client had a `progressToken`. So the server could not
    report progress, and the client could not know that the server was still working. Many clients restart their
    time-out with each progress notification. Reported once per session.""",
    fix="""Send a `progressToken` with long calls, and restart the time-out with each progress notification. In the
    TypeScript SDK, set `onprogress` and `resetTimeoutOnProgress`.""",
    meanwhile="Answer sooner, or return a task.",
    blame="client",
    spec=_PROGRESS,
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        @60 > notifications/cancelled {"requestId":2,"reason":"Request timed out"}
        @75 < 2 = {"content":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"slow"}}
        @60 > notifications/cancelled {"requestId":2,"reason":"Request timed out"}
        @75 < 2 = {"content":[]}
    """,
    on=(Result, Error),
    methods=("tools/call",),
)
class NoToken(StatefulCheck):
    """Report a call that timed out, answered later or never, if the client never sent a progress token."""

    def check(self, message: Message) -> Iterator[Fault]:
        """Check an answer that came too late."""
        if message.exchange:
            yield from self._told(message.exchange)

    def end(self, request: Message) -> Iterator[Fault]:
        """Check a call that was never answered."""
        explained = request.n in self.session.explained  # its answer came, and could not be read
        if request.exchange and request.exchange.method == "tools/call" and not explained:
            yield from self._told(request.exchange)

    def _told(self, exchange: Exchange) -> Iterator[Fault]:
        session, request, fate = self.session, exchange.request, exchange.fate
        given_up = fate.t if fate else session.left
        if exchange.outcome != "timed-out" or given_up is None or request.sender != "client" or session.lossy:
            return
        if waited(exchange, given_up) < _LONG or any(side == "client" for side, _ in session.tokens):
            return
        if session.once("no token"):
            yield Fault("the call had no progressToken: with one, and progress from the server, the client could have "
                        "waited longer", at=request, blame="client")  # fmt: skip
