"""Rules about the handshake: which side may send what, when, and under which revision.

The order in the handshake era: `initialize`, its answer, `notifications/initialized`, then everything that was declared
(`mcpspy.rules.lifecycle.capabilities`). `mcpspy.rules.lifecycle.stateless` has the rules for messages without a
session.
"""

from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.conversation import bounds
from mcpspy.conversation.context import becomes_round, dialect, other, stated_revision
from mcpspy.conversation.model import Exchange, Message, Session
from mcpspy.conversation.outcomes import still_failed, waited
from mcpspy.conversation.refusals import refusal
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.http.posting import asks_for_refusal
from mcpspy.rules.rule import Fault, Later, Severity, StatefulCheck, rule
from mcpspy.spec.revisions import BATCHES, HANDSHAKE, NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS, Revision
from mcpspy.text import duration_text
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

_KNOWN = ", ".join(revision.value for revision in Revision)
_WRONG_PARAMS = -32602
_OF_NEWEST = (-32022, -32020, -32601)  # with these, a server that speaks only 2026-07-28 refuses `initialize`
_LOGIN = (401, 407)


@rule(
    "lifecycle/before-initialize",
    "warning",
    """Until the server has answered `initialize`, the client should send only pings. Until the client has sent
    `notifications/initialized`, the server should send only pings and log messages. Without `initialize`, each request
    must name its revision (2026-07-28).""",
    fix="""In a client, wait for the answer to `initialize`, as `connect` of the TypeScript SDK does. In a server,
    wait for `notifications/initialized`.""",
    meanwhile="Answer an early request with an error. Do not ignore it.",
    spec="basic/lifecycle#initialization",
    about="handshake",
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        > 2 tools/list
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        > 2 ping
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 3 tools/list
    """,
    on=(Request, Result, Notification),
)
class BeforeInitialize(StatefulCheck):
    """Report requests that were sent too early.

    The report waits for what the request had to wait for, because the request may only have been recorded too early.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._early: list[Message] = []

    def lose(self) -> None:
        """Forget the early requests: what they had to wait for may have been lost."""
        self._early.clear()

    def check(self, message: Message) -> Iterator[Fault | Later]:
        """Remember an early request. Report it when the message arrives that it had to wait for."""
        body = message.body
        if isinstance(body, Request):
            if self._is_early(message, body):
                self._early.append(message)
                if self._may_lack_initialize(message, body):
                    yield Later(self._later(message, body.method))
            return
        agreed = isinstance(body, Result) and message.exchange is not None and message.exchange.method == "initialize"
        if agreed or (isinstance(body, Notification) and body.method == "notifications/initialized"):
            side = "client" if agreed else "server"
            awaited = "`initialize` was answered" if agreed else "`notifications/initialized` was sent"
            for early in [it for it in self._early if it.sender == side]:
                self._early.remove(early)
                if early.t < message.t and isinstance(early.body, Request):
                    yield Fault(f"{early.body.method} was sent before {awaited}", at=early, related=(message.n,))

    def _is_early(self, message: Message, body: Request) -> bool:
        session = self.session
        if session.initialized or session.lossy or body.method in ("ping", "initialize", "server/discover"):
            return False
        modern = message.revision in STATELESS
        return not modern and (message.sender == "server" or session.agreed is None) and len(self._early) < bounds.EARLY

    def _may_lack_initialize(self, message: Message, body: Request) -> bool:
        """Return whether the first request of a client may turn out to have no `initialize`. True once per session."""
        modern = message.session.stated is not None or body.method == "server/discover"
        if message.sender == "server" or modern or self.session.first_initialize:
            return False
        return self.session.once("not initialized")

    def _later(self, message: Message, method: str) -> Iterator[Fault]:
        if self.session.first_initialize is None and message.session.stated is None:
            self._early.clear()
            yield Fault(f"{method[:60]} was sent without `initialize` before it", "/method")


@rule(
    "lifecycle/initialize-twice",
    "error",
    "A client must send `initialize` only once per session.",
    fix="Send `initialize` once; open a new connection for a new session.",
    meanwhile="Answer a second `initialize` with an error.",
    blame="client",
    spec="basic/lifecycle#initialization",
    revisions=HANDSHAKE,
    fails="""
        = 2025-06-18
        > 5 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request,),
    methods=("initialize",),
)
def initialize_twice(message: Message, session: Session) -> Iterator[Fault]:
    """Report a second `initialize` after one that succeeded."""
    if session.agreed is not None and session.first_initialize:
        yield Fault("the session is already initialized", "/method", (session.first_initialize,))


@rule(
    "lifecycle/initialized-missing",
    "error",
    """After the answer to `initialize` the client must send `notifications/initialized` before any request. Until then
    servers refuse requests, or send no requests themselves. For `logging/setLevel` it is a warning, because servers
    answer it at any time.""",
    fix="""Send `notifications/initialized` after the answer to `initialize`: `connect` of the TypeScript SDK and
    `initialize` of the Python SDK do.""",
    meanwhile="Answer an early request with an error that names `notifications/initialized`.",
    blame="client",
    spec="basic/lifecycle#initialization",
    about="handshake",
    revisions=HANDSHAKE,
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
        > 2 tools/list
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
    """,
    on=(Request,),
)
def initialized_missing(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report the first request of a client that skipped `notifications/initialized`."""
    if message.sender != "client" or session.initialized or session.agreed is None or session.lossy:
        return
    method = message.body.method if isinstance(message.body, Request) else "ping"
    of_logs = method == "logging/setLevel"
    if method in ("ping", "initialize") or message.t <= session.agreed:
        return
    if not session.once(f"initialized-missing {of_logs}"):
        return
    crossing = message.http is not None  # two HTTP requests that are sent at once can arrive in any order

    def question() -> Iterator[Fault]:
        if not (crossing and session.initialized):
            yield Fault("the request was sent before `notifications/initialized`", "/method",
                        severity="warning" if of_logs else None)  # fmt: skip

    yield Later(question())


@rule(
    "lifecycle/wrong-direction",
    "error",
    "The method exists, but only the other side may send it; in 2026-07-28 servers send no requests at all.",
    fix="""Leave the method to the other side. In a server of 2026-07-28, answer with `"resultType":
    "input_required"` to request input.""",
    meanwhile="Answer the request with the error -32601.",
    spec="schema",
    about="direction",
    fails="""
        = 2025-06-18
        > 2 sampling/createMessage {"messages":[],"maxTokens":1}
    """,
    passes="""
        = 2025-06-18
        < 2 sampling/createMessage {"messages":[],"maxTokens":1}
    """,
    on=(Request, Notification),
)
def wrong_direction(message: Message, session: Session) -> Iterator[Fault]:
    """Report a method that only the other side may send."""
    body = message.body
    if not isinstance(body, Request | Notification) or message.revision is None:
        return
    method = dialect(message, session).method(body.method)
    if method and message.sender not in method.senders:
        yield Fault(f"{body.method} is sent by the {message.sender}; only a {method.senders[0]} may send it", "/method")
    elif becomes_round(message):
        yield Fault(f"the server sends {body.method} as a request; expected an `input_required` result", "/method")


@rule(
    "lifecycle/unknown-revision",
    "warning",
    f"The message names a revision that was never published. The published ones are {_KNOWN}.",
    fix="Name a published revision, for example 2025-11-25 in `initialize`.",
    meanwhile="In a server, answer `initialize` with the latest revision that you support.",
    spec="basic/lifecycle#version-negotiation",
    about="meta",
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-19","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request, Result),
)
def unknown_revision(message: Message, session: Session) -> Iterator[Fault]:
    """Report a revision that does not exist."""
    body = message.body
    if isinstance(body, Request):
        found = [(pointer("params", "_meta", PROTOCOL_VERSION), stated_revision(message))]
        if body.method == "initialize":
            found.append(("/params/protocolVersion", member(body.params, "protocolVersion")))
    elif isinstance(body, Result) and message.exchange and message.exchange.method == "initialize":
        found = [("/result/protocolVersion", member(body.result, "protocolVersion"))]
    else:
        return
    for where, name in found:
        if isinstance(name, str) and Revision.of(name) is None:
            yield Fault(f"revision {name[:40]} does not exist; expected one of {_KNOWN}", where)


@rule(
    "lifecycle/initialize-in-batch",
    "error",
    """`initialize` must not be part of a batch: no other request may be sent before it is answered, and its answer
    decides whether batches are allowed.""",
    fix="Send `initialize` by itself, wait for its answer, and batch requests after that.",
    meanwhile="Refuse the batch with the error -32600.",
    blame="client",
    spec="basic/lifecycle#initialization",
    about="meta",
    revisions=BATCHES,
    fails="""
        > [{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}}]
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request,),
    methods=("initialize",),
)
def initialize_in_batch(message: Message, session: Session) -> Iterator[Fault]:
    """Report an `initialize` in a batch."""
    if message.frame.raw.lstrip()[:1] == b"[":
        yield Fault("`initialize` is part of a batch; it must be sent by itself", "/method")


@rule(
    "lifecycle/revision-mismatch",
    "error",
    """The server answered `initialize` with a revision that has no handshake, or a request names another revision than
    the session negotiated.""",
    fix="Answer `initialize` with 2025-11-25 or an earlier revision, and keep to that revision in every later request.",
    meanwhile="Disconnect if you do not support the revision of the answer.",
    spec="basic/lifecycle#version-negotiation",
    about="meta",
    fails="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    on=(Request, Result),
)
def revision_mismatch(message: Message, session: Session) -> Iterator[Fault]:
    """Report a revision that is not possible here."""
    body = message.body
    if isinstance(body, Result):
        agrees = message.exchange is not None and message.exchange.method == "initialize"
        if agrees and message.revision and message.revision in STATELESS:
            sentence = f"{message.revision.value} has no `initialize`; the newest with one is {NEWEST_HANDSHAKE.value}"
            yield Fault(sentence, "/result/protocolVersion")
    elif isinstance(body, Request) and session.agreed is not None and message.session.negotiated:
        stated = Revision.of(stated_revision(message))
        if stated and stated in HANDSHAKE and stated is not message.session.negotiated:
            agreed = message.session.negotiated.value
            yield Fault(
                f"the request names revision {stated.value}; expected {agreed}, as in the answer to initialize",
                "/params/_meta",
            )


@rule(
    "lifecycle/era-mixed",
    "error",
    """A client mixes the two eras of MCP in one connection: it sends `initialize` after a successful `server/discover`,
    or a request that names its revision in `_meta` after `initialize`. An `initialize` after a `server/discover` that
    was refused is allowed.""",
    fix="""Choose one era for a connection: `initialize` and a session, or `server/discover` and `_meta` in each
    request.""",
    blame="client",
    spec="basic/lifecycle",
    about="meta",
    fails="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,\
"cacheScope":"public"}
        > 2 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    passes="""
        > 1 server/discover {META}
        < 1 ! {"code":-32601,"message":"Method not found"}
        > 2 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request,),
)
def era_mixed(message: Message, session: Session) -> Iterator[Fault]:
    """Report a client that mixes the two eras."""
    if message.sender != "client" or not isinstance(message.body, Request):
        return
    if message.body.method == "initialize" and session.discovered and session.once("era-mixed"):
        yield Fault("`initialize` was sent after a successful `server/discover`", "/method")
    elif session.agreed is not None and message.revision in STATELESS and session.once("era-mixed"):
        yield Fault("the request names its revision in `_meta`, after `initialize`", "/params/_meta")


class _Answer(NamedTuple):
    """What is kept of an answer to `initialize`."""

    n: int
    succeeds: bool
    """It is a result, perhaps without a revision."""
    sentence: str
    """What is wrong; empty if nothing is."""
    severity: Severity | None = None

    @classmethod
    def of(cls, message: Message) -> "_Answer":
        """Return what is kept of a message."""
        if isinstance(message.body, Result):
            result = member(message.body.value, "result")
            named = isinstance(member(result, "protocolVersion"), str) or message.act is not None
            lack = f"the answer to initialize has no protocolVersion: {excerpt(result)}"
            return cls(message.n, succeeds=True, sentence="" if named else lack)
        error = member(message.body.value, "error")
        code, supported = member(error, "code"), member(error, "data", "supported")
        told = f"initialize is refused with error {excerpt(code)}: {excerpt(member(error, 'message'))}"
        mild = code in _OF_NEWEST or (code == _WRONG_PARAMS and isinstance(supported, list))
        return cls(message.n, succeeds=False, sentence=told, severity="warning" if mild else None)


@rule(
    "lifecycle/handshake-failed",
    "error",
    """The server refused `initialize`, never answered it, or named no revision in its answer, so the client cannot
    use the server. A revision is no reason to refuse: a server must answer with a revision that it supports itself,
    and the client decides whether to go on. It is a warning if the error names the revisions that the server supports,
    as -32022 does, and -32602 in an example of the specification: then a client can try again with one of them. It is
    a warning for -32601 and -32020 too, with which servers refuse `initialize` if they speak only 2026-07-28. Not
    reported if the client needs a login, or if another finding tells why there is no answer.""",
    fix="""Answer `initialize` with a result. If you do not support the revision that the client names, answer with one
    that you support.""",
    meanwhile="Read the text of the error, and what the server writes to stderr.",
    blame="responder",
    spec="basic/lifecycle#version-negotiation",
    fails="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 ! {"code":-32602,"message":"unsupported protocol version"}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    on=(Request, Result, Error),
    methods=("initialize",),
    loss="The handshake failed",
)
class FailedHandshake(StatefulCheck):
    """Report each `initialize` that failed. Decided at the end: a client may try again, with another revision."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._begun: dict[int, Exchange] = {}  # by ordinal
        self._answers: dict[int, _Answer] = {}  # by ordinal

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember an attempt, and its answer."""
        exchange = message.exchange
        if exchange:
            if isinstance(message.body, Request):
                bounds.keep(self._begun, exchange.ordinal, exchange)
            else:
                bounds.keep(self._answers, exchange.ordinal, _Answer.of(message))
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report the attempts that failed, unless another one succeeded. An answer that came late is no refusal."""
        for ordinal, exchange in self._begun.items():
            request, answer = exchange.request, self._answers.get(ordinal)
            if answer and answer.succeeds and answer.sentence and _went_silent(self.session):
                yield Fault(answer.sentence, related=(answer.n,), at=request, blame=other(request.sender))
            if self.session.agreed is not None or request.revision in STATELESS:
                continue
            late = answer is not None and answer.succeeds
            if late or not still_failed(exchange) or request.n in self.session.explained:
                continue
            how = answer.sentence if answer else _unanswered_handshake(exchange)
            if how:
                refused = exchange.fate if exchange.outcome == "refused" and not answer else None
                row = answer.n if answer else refused.n if refused else 0
                code = status(refused.answer.opened.head) if refused and refused.answer else 0
                wrong = request.http is not None and asks_for_refusal(request.http, code)
                yield Fault(how, related=(row,) if row else (), at=request, severity=answer and answer.severity,
                            blame=request.sender if wrong else other(request.sender))  # fmt: skip


def _went_silent(session: Session) -> bool:
    """Return whether the client sent nothing after its first request."""
    sent = sum(side == "client" for side, _ in (*session.completed, *session.pending))
    return not session.initialized and not session.lossy and sent == 1


def _unanswered_handshake(exchange: Exchange) -> str | None:
    """Return how `initialize` failed without an answer; None if another rule tells it."""
    fate = exchange.fate
    if exchange.outcome == "refused" and fate and fate.answer:
        head = fate.answer.opened.head
        refused = status(head) >= 300 and status(head) not in _LOGIN
        return f"initialize is refused with {refusal(head, fate.answer.said)}" if refused else None
    if exchange.outcome not in ("timed-out", "unanswered"):
        return None
    left = fate.t if fate else exchange.request.session.left
    if left is None:
        return "initialize is never answered"
    return f"initialize got no answer within {duration_text(waited(exchange, left))}; then the client gave up"


@rule(
    "lifecycle/version-declined",
    "info",
    """The server answered `initialize` with another revision than the client had named, and the client left without
    `notifications/initialized`: it probably does not support that revision. A server must answer with the revision of
    the client if it supports it. A client that does not support the revision of the answer should disconnect.""",
    fix="""Answer with the revision that the client names if you support it, and with your newest one only if you do
    not.""",
    meanwhile="Update the client, or install a version of the server that supports the revision of the client.",
    blame="server",
    spec="basic/lifecycle#version-negotiation",
    fails="""
        > 1 initialize {"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
        . stdin closed
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
        . stdin closed
    """,
    on=(Result,),
    methods=("initialize",),
    loss="The client left after the handshake",
)
class VersionDeclined(StatefulCheck):
    """Report the answer after which the client left. Decided at the end: most clients accept another revision."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._answer: tuple[Message, str, str] | None = None  # with the two revisions

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember an answer with another revision."""
        requested = member(message.exchange.request.body.value, "params", "protocolVersion") if message.exchange else 0
        given = member(message.body.value, "result", "protocolVersion")
        if isinstance(requested, str) and isinstance(given, str) and requested != given:
            self._answer = message, requested, given
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report it if the client sent nothing more, and left."""
        session = self.session
        if self._answer is None or session.gone is not None:
            return
        answer, requested, given = self._answer
        left = answer.http is not None or (session.left is not None and session.left >= answer.t)
        if left and _went_silent(session):
            revisions = f"the client named {requested[:40]}, the server answered with {given[:40]}"
            yield Fault(f"{revisions}, and the client left without `notifications/initialized`",
                        "/result/protocolVersion", at=answer)  # fmt: skip
