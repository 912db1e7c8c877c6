"""What a rule is, and what it finds.

A rule is a row of a table with a check. Most checks are functions. They take a message (or a remark: an HTTP head or an
SSE event without a message) and its session. They yield a `Fault` for each thing that is wrong, or a
`Later` if they need the next second of the capture. A check that needs a memory of its own is a class
(`StatefulCheck`). The table has the severity of a fault and its place in the specification.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from mcpspy.conversation.model import Event, Judged, Message, Session, SessionMemory
from mcpspy.json_values import member, nearest, resolve
from mcpspy.spec.revisions import Lifetime, Revision, as_of
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

Blame = Literal["client", "server", "sender", "responder"]
"""The side responsible for a finding: a fixed side, the sender of the message, or the peer that did not answer it."""
_OTHER = {"client": "server", "server": "client", "sender": "receiver", "responder": "requester"}

Aspect = Literal[
    "bytes",
    "shape",
    "meta",
    "pairing",
    "handshake",
    "http",
    "direction",
    "refusal",
    "content",
    "listening",
    "login",
    "failure",
]
"""The aspect that a rule is about. It does not run on messages that are plain in it (`mcpspy.rules.plain`).

- bytes: the frame contains something unusual, whatever it means;
- shape: the message does not match its definition exactly;
- meta: it has `_meta`, or is an `initialize`;
- pairing: it is invalid, or a request whose id is in use, or a response that belongs to no request or to a cancelled
  one, or the client has left;
- handshake: the session has not begun in the right order yet;
- http: it was sent over HTTP;
- direction: its sender may not send it;
- refusal: over HTTP, it is of an answer with a status of failure, or a redirect;
- content: it has an image or a sound, or is invalid, or it is a body or an event without a message;
- listening: it is of a GET, or of the answer to one;
- login: it is of an answer that refuses or redirects, or of one to a request without a message;
- failure: it is an answer, and what came of its request is not ok.
"""

EVERY = (Request, Notification, Result, Error, Invalid)
"""All kinds of messages, for a rule that looks at every message."""

_SPECIFICATION = "https://modelcontextprotocol.io/specification"
_HTTP = "basic/transports/streamable-http"
_SCHEMA = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema"
_NO_DIALECTS = {"basic#json-schema-usage": "server/tools#tool", "server/tools#tool-names": "server/tools#tool"}
_NO_REFERENCE = _NO_DIALECTS | {"basic#_meta": "basic"}
_MOVED = {
    Revision.R2024_11_05: _NO_REFERENCE
    | {
        "basic#messages": "basic/messages",
        "basic#requests": "basic/messages#requests",
        "basic#responses": "basic/messages#responses",
        "basic#notifications": "basic/messages#notifications",
        "basic/lifecycle#timeouts": "basic/lifecycle#error-handling",
        "basic/transports#streamable-http": "basic/transports#http-with-sse",
        "basic/transports#sending-messages-to-the-server": "basic/transports#http-with-sse",
        "changelog": "basic/messages",
        "schema": f"{_SCHEMA}/2024-11-05/schema.ts",
    },
    Revision.R2025_03_26: _NO_REFERENCE | {"schema": f"{_SCHEMA}/2025-03-26/schema.ts"},
    Revision.R2025_06_18: _NO_DIALECTS,
    Revision.R2025_11_25: {},
    Revision.R2026_07_28: {
        "basic": "basic/index",
        "basic/lifecycle": "basic/versioning",
        "basic/transports": "basic/transports/stdio",
        "basic/transports#streamable-http": _HTTP,
        "basic/transports#sending-messages-to-the-server": f"{_HTTP}#sending-messages",
        "basic/transports#protocol-version-header": f"{_HTTP}#protocol-version-header",
        "basic/transports#standard-request-headers": f"{_HTTP}#standard-request-headers",
        "basic/transports#server-validation": f"{_HTTP}#server-validation",
        "basic/utilities/progress": "basic/patterns/progress",
        "basic/utilities/cancellation": "basic/patterns/cancellation",
        "basic/transports#security-warning": _HTTP,
        "basic/transports#stdio": "basic/transports/stdio",
        "basic/lifecycle#initialization": (
            "basic/versioning#backward-compatibility-with-initialization-based-versions"
        ),
        "basic/lifecycle#timeouts": "basic/patterns/cancellation#timeouts",
        "basic/lifecycle#shutdown": "basic/transports/stdio#unexpected-termination",
        "basic/lifecycle#version-negotiation": "basic/versioning#protocol-version-negotiation",
        "basic/lifecycle#capability-negotiation": "server/discover",
    },
}
"""Pages, and sections of pages, whose path differs from that in 2025-11-25. Valid up to the next revision here."""
_LISTED = re.compile(r"/result/(?:(?:tools|prompts|resources|resourceTemplates|skills)/\d+|skill)(?=/|$)")
_JSON_RPC = "https://www.jsonrpc.org/specification"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a peer, or something worth knowing."""

    rule: str
    severity: Severity
    blame: str
    """The responsible side: client or server. Empty if no peer is, as for a secret in a capture."""
    frame: int
    """The line number of the record."""
    part: int
    related: tuple[int, ...]
    """The line numbers of other records that are part of the evidence."""
    pointer: str
    """JSON Pointer into the message."""
    message: str
    """One sentence."""
    revision: str | None
    """The revision of the message or of its session. Before it is negotiated, the one that the client requested."""
    spec: str
    """URL of the place in the specification."""
    concerns: tuple[str | None, ...] = ()
    """The method, and the name or URI of the tool, prompt or resource. For comparisons."""
    count: int = 1
    """In a report that counts repeated findings: how often this was found."""
    also: tuple[int, ...] = ()
    """In a report that counts repeated findings: the line numbers of the first of the other frames."""


class LocatedFinding(NamedTuple):
    """A finding with the event that it is about."""

    finding: Finding
    event: Judged | Event | None
    """None if the session as a whole is at fault."""


def worst(findings: Iterable[Finding]) -> Severity | None:
    """Return the worst severity of the findings, or None if there are none."""
    return min((finding.severity for finding in findings), key=SEVERITIES.index, default=None)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check yields: the sentence, and whatever differs from the message that it looked at."""

    sentence: str
    pointer: str = ""
    related: tuple[int, ...] = ()
    blame: str | None = None
    """The responsible side, if it is not the sender."""
    at: Judged | None = None
    """The message at fault, if it is an earlier one."""
    severity: Severity | None = None
    """The severity, if it differs from that of the rule."""
    source: str | None = None
    """The place in the specification, if it differs from that of the rule: a page, as in `Rule.spec`, or a URL."""
    concerns: tuple[str, ...] = ()
    """What it concerns besides the method and the name of a message: other findings of the rule are counted apart."""


@dataclass(frozen=True, slots=True)
class Later:
    """A postponed check. It runs `HOLD` after the message, or at the end of the capture."""

    faults: Iterator[Fault]
    """A generator that has not started yet."""


class StatefulCheck(SessionMemory):
    """A check with a memory: one object for each session."""

    learns_from: ClassVar[Mapping[type, tuple[str | None, ...]]] = {}
    """By kind of message that `learn` receives: the methods (for a response: its request's). Empty: all methods.

    None stands for the methods that no revision has."""

    def learn(self, message: Any) -> None:
        """Learn from a message after it was judged."""
        raise NotImplementedError

    def check(self, message: Any) -> Iterator[Fault | Later]:
        """Check the next message or remark of a kind that the rule looks at."""
        raise NotImplementedError

    def end(self, request: Message) -> Iterator[Fault]:  # noqa: ARG002 (most have nothing to find here)
        """Check a request that has no answer when the capture ends."""
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Yield what is found when the capture ends. Each fault names its message (`at`)."""
        return iter(())


Function = Callable[[Any, Session], Iterator[Fault | Later]]
"""A check: it takes a message or a remark of a kind that the rule looks at."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    id: str
    severity: Severity
    explanation: str
    """Two or three sentences: what is wrong, and what the consequences are."""
    fix: str
    """One or two sentences: what the responsible side has to change."""
    meanwhile: str
    """The same for the other side: what it can do until then. Empty if there is nothing useful."""
    blame: Blame
    spec: str
    """A page relative to the specification of a revision, `jsonrpc#section` for JSON-RPC itself, or a URL."""
    fails: str
    """A transcript (see `tests/transcript.py`) in which the rule finds something."""
    passes: str
    """The same conversation without the fault."""
    about: Aspect | None
    on: tuple[type, ...]
    """The kinds of messages that it looks at. `HttpUnit` means HTTP events without a message."""
    methods: tuple[str, ...]
    """The methods that it looks at (for a response: its request's). Empty means all methods."""
    revisions: Lifetime
    """The revisions in which it applies: a trait, or a lifetime of its own."""
    check: Function | type[StatefulCheck]
    former: tuple[str, ...]
    """Earlier ids of this rule."""
    explains: tuple[str, ...]
    """The outcomes of a failed request that the fault leads to; empty for most rules (see `mcpspy.problems.causes`)."""
    loss: str
    """What a user loses by it, as the headline of a problem, if no failed request shows it. Empty for most rules."""
    ask: Function = field(init=False)
    """The check as a function, also if it is a class."""

    def __post_init__(self) -> None:
        check = self.check
        object.__setattr__(self, "ask", _asking(check) if isinstance(check, type) else check)

    def learns_from(self, kind: type, method: str | None, revision: Revision | None) -> bool:
        """Return whether the check learns from messages of this kind."""
        methods = getattr(self.check, "learns_from", {}).get(kind)
        if methods is None or (methods and method not in methods):
            return False
        return revision is None or revision in self.revisions

    def learn(self, message: Judged, session: Session) -> None:
        """Let the check learn from a message."""
        if isinstance(self.check, type):
            session.of(self.check).learn(message)

    @property
    def ends(self) -> bool:
        """Whether the check looks at requests without an answer at the end."""
        return getattr(self.check, "end", StatefulCheck.end) is not StatefulCheck.end

    def end(self, request: Message, session: Session) -> Iterator[Fault]:
        """Yield what the check finds about a request without an answer at the end, if it looks at those."""
        if isinstance(self.check, type):
            yield from session.of(self.check).end(request)

    @property
    def closes(self) -> bool:
        """Whether the check can find something when the capture ends."""
        return getattr(self.check, "close", StatefulCheck.close) is not StatefulCheck.close

    def close(self, session: Session) -> Iterator[Fault]:
        """Yield what the check finds about a session when the capture ends."""
        known = session.memories.get(self.check) if isinstance(self.check, type) else None
        return known.close() if isinstance(known, StatefulCheck) else iter(())

    @property
    def summary(self) -> str:
        """The first sentence of the explanation."""
        return re.split(r"(?<=\.)\s", self.explanation, maxsplit=1)[0]

    def advice(self, blame: str | None = None) -> list[tuple[str, str]]:
        """Return how to fix it: first the responsible side, then the other. `blame` is that of a finding."""
        blame = blame or self.blame
        told = [(f"fix ({blame})", self.fix)]
        other = _OTHER.get(blame, "peers")  # mcpspy itself can send what is wrong
        return [*told, (f"meanwhile ({other})", self.meanwhile)] if self.meanwhile else told

    def finding(self, fault: Fault, message: Judged) -> Finding:
        """Return the finding for a fault in a message. A finding about a response names the request as well."""
        message = fault.at or message
        value = message.body.value if isinstance(message, Message) else None
        asked = message.exchange.request.n if message.exchange else message.n
        session = message.session  # a line that is not a message has no revision of its own
        revision = message.revision or session.negotiated or session.requested
        pointer = nearest(value, fault.pointer)
        return Finding(
            self.id,
            fault.severity or self.severity,
            fault.blame or message.sender,
            message.n,
            message.part,
            fault.related if asked in (message.n, *fault.related) else (asked, *fault.related),
            pointer,
            fault.sentence,
            revision.value if revision else None,
            self.url(revision, fault.source),
            (*(_concerned(message, pointer) if isinstance(message, Message) else ()), *fault.concerns),
        )

    def url(self, revision: Revision | None, page: str | None = None) -> str:
        """Return the URL of the page in the specification of a revision. `page` is the one that a fault names."""
        page = page or self.spec
        if page.startswith("https:"):
            return page
        if page.startswith("jsonrpc"):
            return _JSON_RPC + page.removeprefix("jsonrpc")
        known = revision if revision in self.revisions else self.revisions[-1]
        moved = as_of(_MOVED, known)
        path, _, section = page.partition("#")
        page = moved.get(page) or "#".join(filter(None, (moved.get(path, path), section)))
        return page if page.startswith("https:") else f"{_SPECIFICATION}/{known.value}/{page}"


def _concerned(message: Message, pointer: str) -> tuple[str | None, ...]:
    """Return what a finding concerns: the list entry that it points to, else the method and name of the message."""
    listed = _LISTED.match(pointer)
    if listed is None:
        return message.method, message.name
    entry = resolve(message.body.value, listed[0])
    names = [found for found in (member(entry, "uri"), member(entry, "name")) if type(found) is str]
    return message.method, *(names or [listed[0]])


def _asking(check: type[StatefulCheck]) -> Function:
    def ask(message: Any, session: Session) -> Iterator[Fault | Later]:
        return session.of(check).check(message)

    return ask


RULES: dict[str, Rule] = {}
"""The table, by id. The modules of this package fill it on import."""
FORMER: dict[str, str] = {}
"""By an earlier id of a rule: its current id."""

_Entered = TypeVar("_Entered", bound=Function | type[StatefulCheck])


def current(name: str) -> str:
    """Return the current id of a rule. `name` may be an earlier id."""
    return FORMER.get(name, name)


def rule(
    id: str,  # noqa: A002 (it is what a rule has)
    severity: Severity,
    explanation: str,
    *,
    fix: str,
    meanwhile: str = "",
    blame: Blame = "sender",
    spec: str,
    fails: str,
    passes: str,
    about: Aspect | None = None,
    on: tuple[type, ...] = EVERY,
    methods: tuple[str, ...] = (),
    revisions: Lifetime = tuple(Revision),
    former: tuple[str, ...] = (),
    explains: tuple[str, ...] = (),
    loss: str = "",
) -> Callable[[_Entered], _Entered]:
    """Enter a function, or a class with a memory, into the table."""

    def enter(check: _Entered) -> _Entered:
        prose = (_one_line(explanation), _one_line(fix), _one_line(meanwhile))
        examples = fails, passes
        RULES[id] = Rule(
            id, severity, *prose, blame, spec, *examples, about, on, methods, revisions, check, former, explains, loss
        )
        FORMER.update(dict.fromkeys(former, id))
        return check

    return enter


def _one_line(text: str) -> str:
    return " ".join(text.split())
