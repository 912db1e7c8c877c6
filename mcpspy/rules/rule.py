"""What a rule is, and what it finds.

A rule is a row of a table with a check beside it. Most checks are functions: they take a message (or over HTTP a
remark: a head or an SSE event without one) and the history of its session, and yield a `Fault` for each thing that is
wrong, or `Later` for what only the next second can tell. A check that remembers something of its own is a class
(`StatefulCheck`). The table says how bad a fault is and where the specification says so.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from mcpspy.conversation.history import SessionHistory, SessionMemory
from mcpspy.conversation.model import Judged, Message
from mcpspy.json_values import member, nearest, resolve
from mcpspy.spec.revisions import Lifetime, Revision, as_of
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

Blame = Literal["client", "server", "sender", "responder"]
"""The side responsible for a finding: a fixed side, the sender of the message, or the peer that did not answer it."""
_OTHER = {"client": "server", "server": "client", "sender": "receiver", "responder": "requester"}

Aspect = Literal["bytes", "shape", "meta", "pairing", "handshake", "http", "direction"]
"""What a rule is about, where most messages are plain in it and need not be looked at (`mcpspy.rules.plain`).

- bytes: the frame holds something unusual, whatever it means;
- shape: the message is not exactly what its definition says;
- meta: it carries `_meta`, or is an `initialize`;
- pairing: it is a response that belongs to no request, or to one that was cancelled;
- handshake: the session has not begun in order yet;
- http: it came over HTTP;
- direction: its sender may not send it.
"""

EVERY = (Request, Notification, Result, Error, Invalid)
"""The kinds of messages, for a rule that looks at all of them."""

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
        "basic/transports#streamable-http": "basic/transports#http-with-sse",
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
        "basic/transports#stdio": "basic/transports/stdio",
        "basic/lifecycle#initialization": (
            "basic/versioning#backward-compatibility-with-initialization-based-versions"
        ),
        "basic/lifecycle#shutdown": "basic/transports/stdio#unexpected-termination",
        "basic/lifecycle#version-negotiation": "basic/versioning#protocol-version-negotiation",
        "basic/lifecycle#capability-negotiation": "server/discover",
    },
}
"""Pages, and sections of pages, that stand elsewhere than in 2025-11-25, from each revision to the next one here."""
_LISTED = re.compile(r"/result/(?:(?:tools|prompts|resources|resourceTemplates|skills)/\d+|skill)(?=/|$)")
_JSON_RPC = "https://www.jsonrpc.org/specification"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a peer did wrong, or that is worth knowing."""

    rule: str
    severity: Severity
    blame: str
    """client or server."""
    frame: int
    """The line number of the record."""
    part: int
    related: tuple[int, ...]
    """The line numbers of other records that matter here."""
    pointer: str
    """JSON Pointer into the message."""
    message: str
    """One sentence."""
    revision: str | None
    """That of the message or of its session; before the handshake has settled it, what the client asked for."""
    spec: str
    """URL."""
    concerns: tuple[str | None, ...] = ()
    """The method, and the name or URI of the tool, prompt or resource; to compare by."""
    count: int = 1
    """Where a report counts what repeats: how often this was found."""
    also: tuple[int, ...] = ()
    """Where a report counts what repeats: the line numbers of the first of the other frames."""


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The severity of the worst of some findings; None if there are none."""
    return min((finding.severity for finding in findings), key=SEVERITIES.index, default=None)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule's function yields: the sentence, and whatever differs from the message that was looked at."""

    sentence: str
    pointer: str = ""
    related: tuple[int, ...] = ()
    blame: str | None = None
    """The responsible side, if it is not the sender."""
    at: Judged | None = None
    """The message that is wrong, where it is an earlier one."""
    severity: Severity | None = None
    """Where it is less than the rule's."""
    source: str | None = None
    """What says so, where that is not what the rule names: a page, as in `Rule.spec`, or a URL."""


@dataclass(frozen=True, slots=True)
class Later:
    """What a check yields where only what is recorded next can tell: `HOLD` after the message, or at the end."""

    faults: Iterator[Fault]
    """Looked for then: a generator that nobody has begun yet."""


class StatefulCheck(SessionMemory):
    """A check with a memory: one object for each session that it has looked at."""

    learns_from: ClassVar[dict[type, tuple[str, ...]]] = {}
    """The kinds of messages that `learn` gets, and of each the methods (of a response: its request's); none for all."""

    def learn(self, message: Any) -> None:
        """Take a message after it was judged."""
        raise NotImplementedError

    def check(self, message: Any) -> Iterator[Fault | Later]:
        """Look at the next message or remark, of a kind that the rule looks at."""
        raise NotImplementedError

    def end(self, request: Message) -> Iterator[Fault]:  # noqa: ARG002 (most have nothing to find here)
        """Look at a request that has no answer when the capture ends."""
        return iter(())

    def close(self) -> tuple[Message, Iterator[Fault]] | None:
        """What is found when the capture ends, and the message that it is about."""
        return None


Function = Callable[[Any, SessionHistory], Iterator[Fault | Later]]
"""Takes a message, or a remark, of a kind that the rule looks at."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    id: str
    severity: Severity
    explanation: str
    """Two or three sentences: what is wrong, and what comes of it."""
    fix: str
    """One or two sentences: what the responsible side has to change."""
    meanwhile: str
    """The same for the other side: what it can do until then; empty if there is nothing useful."""
    blame: Blame
    spec: str
    """The page below the specification of a revision; `jsonrpc#section` for JSON-RPC itself; a URL."""
    fails: str
    """A transcript (see `tests/transcript.py`) in which the rule finds something."""
    passes: str
    """The same, done right."""
    about: Aspect | None
    on: tuple[type, ...]
    """The kinds of messages that it looks at; `HttpUnit` for what has none."""
    methods: tuple[str, ...]
    """The methods that it looks at (of a response: its request's); none for all."""
    revisions: Lifetime
    """Those that it holds in: a trait, or a lifetime of its own."""
    check: Function | type[StatefulCheck]
    former: tuple[str, ...]
    """The ids that it had before."""
    ask: Function = field(init=False)
    """The check as a function, whether it is one or not."""

    def __post_init__(self) -> None:
        check = self.check
        object.__setattr__(self, "ask", _asking(check) if isinstance(check, type) else check)

    def learns_from(self, kind: type, method: str | None, revision: Revision | None) -> bool:
        """Whether the check learns from messages of a kind."""
        methods = getattr(self.check, "learns_from", {}).get(kind)
        if methods is None or (methods and method not in methods):
            return False
        return revision is None or revision in self.revisions

    def learn(self, message: Judged, history: SessionHistory) -> None:
        """Let the check learn from a message."""
        if isinstance(self.check, type):
            history.of(self.check).learn(message)

    @property
    def ends(self) -> bool:
        """Whether the check looks at requests that have no answer at the end."""
        return getattr(self.check, "end", StatefulCheck.end) is not StatefulCheck.end

    def end(self, request: Message, history: SessionHistory) -> Iterator[Fault]:
        """What the check finds about a request that has no answer at the end, if it looks at those."""
        if isinstance(self.check, type):
            yield from history.of(self.check).end(request)

    @property
    def closes(self) -> bool:
        """Whether the check finds something when the capture ends."""
        return getattr(self.check, "close", StatefulCheck.close) is not StatefulCheck.close

    def close(self, history: SessionHistory) -> tuple[Message, Iterator[Fault]] | None:
        """What the check finds of a session that it has looked at, when the capture ends."""
        known = history.memories.get(self.check) if isinstance(self.check, type) else None
        return known.close() if isinstance(known, StatefulCheck) else None

    @property
    def summary(self) -> str:
        """The first sentence of the explanation."""
        return re.split(r"(?<=\.)\s", self.explanation, maxsplit=1)[0]

    def advice(self, blame: str | None = None) -> list[tuple[str, str]]:
        """How to fix it: what the responsible side does, then the other; `blame` is that of a finding."""
        blame = blame or self.blame
        told = [(f"fix ({blame})", self.fix)]
        return [*told, (f"meanwhile ({_OTHER[blame]})", self.meanwhile)] if self.meanwhile else told

    def finding(self, fault: Fault, message: Judged) -> Finding:
        """The finding that a fault in a message makes; one in a response names the request as well."""
        message = fault.at or message
        value = message.body.value if isinstance(message, Message) else None
        asked = message.exchange.request.n if message.exchange else message.n
        session = message.session  # a line that is no message has no revision of its own
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
            _concerned(message, pointer) if isinstance(message, Message) else (),
        )

    def url(self, revision: Revision | None, page: str | None = None) -> str:
        """Where the specification says so, for a revision; for a fault on the page that it names."""
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
    """What a finding concerns: the entry of a list that it points into, else what the message does."""
    listed = _LISTED.match(pointer)
    if listed is None:
        return message.method, message.name
    entry = resolve(message.body.value, listed[0])
    names = [found for found in (member(entry, "uri"), member(entry, "name")) if type(found) is str]
    return message.method, *(names or [listed[0]])


def _asking(check: type[StatefulCheck]) -> Function:
    def ask(message: Any, history: SessionHistory) -> Iterator[Fault | Later]:
        return history.of(check).check(message)

    return ask


RULES: dict[str, Rule] = {}
"""The table, by id; filled by the modules of this package as they are imported."""
FORMER: dict[str, str] = {}
"""By an id that a rule had before: the one that it has now."""

_Entered = TypeVar("_Entered", bound=Function | type[StatefulCheck])


def current(name: str) -> str:
    """The id that the rule with an id, perhaps a former one, has now."""
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
) -> Callable[[_Entered], _Entered]:
    """Enter a function, or a class with a memory, into the table."""

    def enter(check: _Entered) -> _Entered:
        prose = (_one_line(explanation), _one_line(fix), _one_line(meanwhile))
        RULES[id] = Rule(id, severity, *prose, blame, spec, fails, passes, about, on, methods, revisions, check, former)
        FORMER.update(dict.fromkeys(former, id))
        return check

    return enter


def _one_line(text: str) -> str:
    return " ".join(text.split())
