"""A problem: something that a user lost, with its cause and the failed requests that show it.

A problem is described after its messages are gone, so the texts that it needs are taken when a request fails, and are
short.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

import orjson

from mcpspy.conversation.model import ENDLESS, Exchange, HttpChannel, Message
from mcpspy.conversation.outcomes import Outcome, open_for, received, waited
from mcpspy.conversation.refusals import MESSAGES, TEXT, gateway, has_credentials, one_line, redirection, status_line
from mcpspy.json_values import excerpt, member
from mcpspy.text import plural, printable
from mcpspy.wire.http_head import header, status
from mcpspy.wire.jsonrpc import Error, Id

Kind = Literal["start", "handshake", "login", "connection", "exit", "not-offered", "call", "hung", "noise", "fault"]
KINDS: dict[Kind, str] = {
    "start": "the server did not start",
    "handshake": "the handshake failed",
    "login": "login failed",
    "connection": "the connection was refused or broke",
    "exit": "the server ended",
    "not-offered": "a tool was not offered",
    "call": "a request failed",
    "hung": "a request was never answered",
    "noise": "text on stdout that is not MCP",
    "fault": "a fault that costs something, although no request failed",
}
"""What each kind means; in the order in which problems are listed, because an earlier kind may cause a later one."""

Certainty = Literal["known", "likely", "unknown"]
"""`known`: a finding, a status or an exit code proves it; `likely`: it happened at that time; `unknown`."""


class Cause(NamedTuple):
    """Why something failed, as one sentence."""

    text: str
    certainty: Certainty = "known"
    rows: tuple[int, ...] = ()
    """The line numbers that show it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a user lost, with its cause. Equal problems are one, with a count."""

    kind: Kind
    sentence: tuple[str, ...]
    """Who and what, as what comes before and after the words for how often."""
    side: str
    """The responsible side: client, server, network, gate; `unknown` if nothing shows it."""
    cause: Cause
    further: tuple[Cause, ...] = ()
    """What else may explain it, or help to find the cause."""
    advice: tuple[str, ...] = ()
    """What to do."""
    count: int = 1
    """How often it happened."""
    failed: int = 0
    """The number of failed requests in it."""
    method: str | None = None
    name: str | None = None
    """The tool, prompt or resource concerned."""
    rows: tuple[int, ...] = ()
    """The line numbers that prove it, in order; of many equal ones, those of the first."""
    t: int = 0
    """When it happened first, in nanoseconds since the capture started."""
    rules: tuple[str, ...] = ()
    """The rules of the findings that it contains, so that they are not shown twice."""
    likeness: str = ""
    """What equal problems of other sessions share."""

    @property
    def headline(self) -> str:
        """One sentence: who, what, how often."""
        return (f" {plural(self.count, 'time')}" if self.count > 1 else "").join(self.sentence)


_ARGUMENTS = 160  # characters
_LARGE = 1 << 14  # bytes of a frame whose arguments are shown
OPEN = 5
"""The most requests that were open at the same time that are named."""
_CODES = 10**9
_PING = "ping"
_EXAMINED = 32  # exchanges without a response
_NAMED = 100  # characters of a method or a name
_WORDS = re.compile(r"[^\W\d_]{3}")
_ERROR = re.compile(
    r"error|exception|panic|fatal|traceback|cannot|could not|not (?:found|set|installed|defined|allowed)|no such"
    r"|missing|required|denied|refused|failed|invalid|unknown|abort|killed|segmentation",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\W*(?:\w+\.)*\w*(?:error|exception|panic|fatal)\b[^:]*:", re.IGNORECASE)
_URL = re.compile(r"\bhttps?://\S+")
_MILD = re.compile(r"\b(?:INFO|DEBUG|TRACE|WARN|WARNING)\b")
_FRAME = re.compile(r"\s*(?:at |File \"|Traceback|throw )")  # of a stack


class StderrLine(NamedTuple):
    """A line that the server wrote to stderr."""

    t: int
    n: int
    text: str


@dataclass(slots=True)
class FailedRequest:
    """One failed request. Times are nanoseconds since the capture started."""

    n: int
    """The line number; 0 if it is only known that another request failed in the same way."""
    t: int
    ended: int
    """When its outcome was decided."""
    outcome: str
    method: str
    """For an HTTP request without a JSON-RPC request: its method and path, or the notification in it."""
    name: str | None = None
    part: int = 0
    side: str = "client"
    """The side that sent the request."""
    answer: int | None = None
    """The line number of the response, or of the head of the HTTP answer."""
    text: str = ""
    """What the answer says."""
    code: int | None = None
    """The code of a JSON-RPC error; None if it is no number, or a very large one."""
    status: int = 0
    """The status of an HTTP answer without a JSON-RPC answer."""
    reason: str = ""
    """The status line of that answer, without the status."""
    redirects: str = ""
    """Where a redirect leads."""
    gateway: str = ""
    """What answered in place of the server, by its headers."""
    ours: bool = False
    """mcpspy answered itself, because the server could not be reached or broke off."""
    challenge: str | None = None
    """The header `WWW-Authenticate` of an answer."""
    credentials: bool = False
    """The request had a header for credentials."""
    named: bool = False
    """The request named a session."""
    waited: int = 0
    by_gate: str = ""
    """What made the answer, if a gate or a viewer did."""
    stderr: StderrLine | None = None
    """The line that tells most of those that the server wrote to stderr between request and answer."""
    open: tuple[int, ...] = ()
    """The line numbers of other requests that were open when it failed."""
    question: tuple[int, str] | None = None
    """Of a client's request: line number and method of the latest request of the server since, without an answer."""
    arguments: str = ""
    http: bool = False
    reset: bool = False
    """The stream of its answer was reset."""
    client: str = ""
    """The name of the client, if it is known."""
    quiet: int | None = None
    """If the request has a progress token: how long no progress was reported when its sender gave up."""
    late: tuple[int, int] | None = None
    """Line number and time of a response after the sender gave up."""

    @property
    def progressed(self) -> bool:
        """Whether progress was reported until shortly before the sender gave up."""
        return self.quiet is not None and 2 * self.quiet <= self.waited

    @property
    def subject(self) -> str:
        """The method, with the tool, prompt or resource."""
        return f"{self.method} {self.name}" if self.name else self.method


def failure_of(exchange: Exchange, t: int) -> FailedRequest:
    """Return the failure of an exchange, decided at `t`."""
    request, response, fate = exchange.request, exchange.response, exchange.fate
    failure = FailedRequest(request.n, request.t, t, exchange.outcome, printable(exchange.method, _NAMED))
    failure.name = printable(exchange.name, _NAMED) if exchange.name else None
    failure.part, failure.side, failure.http = request.part, request.side, request.http is not None
    left = None if request.http else request.session.left
    given_up = left if left is not None and fate is None and request.t < left < t else t
    failure.waited, failure.client = open_for(exchange, given_up), request.session.client_name
    if request.http:
        _add_request(failure, request.http)
    if response and failure.outcome == "timed-out" and fate:
        failure.late, failure.waited = (response.n, response.t), waited(exchange, fate.t)
    elif response:
        _add_response(failure, response)
    elif fate:
        failure.reset = fate.how == "broken" and fate.reason == "reset"
        if fate.answer:
            add_answer(failure, fate.answer)
    others = [
        it for it in islice(request.session.exchanges(), _EXAMINED) if it is not exchange and it.method != ENDLESS
    ]
    failure.open = tuple(it.request.n for it in others[:OPEN])
    questions = [it for it in others if it.request.side == "server" and it.request.n > request.n and it.method != _PING]
    if questions and request.side == "client" and failure.late is None:
        failure.question = questions[-1].request.n, printable(questions[-1].method, _NAMED)
    failure.arguments = arguments_text(request.frame.raw)
    failure.quiet = _quiet(exchange, fate.t if fate else t)
    return failure


def _quiet(exchange: Exchange, t: int) -> int | None:
    """Return how long no progress of a request was reported at `t`; None if it has no token."""
    request = exchange.request
    token = member(request.body.value, "params", "_meta", "progressToken")
    if token is None:
        return None
    known = request.session.progress.get((request.sender, Id.of(token)))
    reported = known.t if known and known.request == request.n else None
    return t - (reported or request.t)


def failure_over_http(outcome: Outcome) -> FailedRequest:
    """Return the failure of an HTTP request that carries no JSON-RPC request."""
    request, answer = outcome.request, outcome.answer
    assert request
    carried = next((it.method for it in request.carried if it.method), None)
    what = carried or f"{request.summary['method']} {str(request.summary['target']).partition('?')[0]}"
    failure = FailedRequest(outcome.n, request.opened.t, outcome.t, outcome.outcome, printable(what, _NAMED), http=True)
    failure.waited = outcome.t - request.opened.t
    _add_request(failure, request)
    if answer:
        add_answer(failure, answer)
    return failure


def arguments_text(raw: bytes) -> str:
    """Return the start of the arguments of a request as JSON; empty if it has none, or is large."""
    if not raw or len(raw) > _LARGE:
        return ""
    try:
        arguments = member(orjson.loads(raw), "params", "arguments")
        return printable(orjson.dumps(arguments).decode(), _ARGUMENTS) if arguments else ""
    except (TypeError, ValueError):  # a number of many digits, or JSON that is not strict
        return ""


def telling(lines: Iterable[StderrLine]) -> StderrLine | None:
    """Return the line that tells most: the last one that begins with an error, or names one, or has words."""
    spoken = [line for line in lines if _WORDS.search(line.text)]
    errors = [line for line in spoken if _ERROR.search(_URL.sub("", line.text)) and not _FRAME.match(line.text)]
    errors = [line for line in errors if not _MILD.search(line.text)] or errors
    best = [line for line in errors if _BEGINS.match(line.text)] or errors or spoken
    return best[-1] if best else None


def _add_request(failure: FailedRequest, request: HttpChannel) -> None:
    failure.named = request.named
    failure.credentials = has_credentials(request)


def _add_response(failure: FailedRequest, response: Message) -> None:
    failure.answer = response.n
    body, act = received(response), response.act
    if act:
        failure.by_gate = str(act) if act.made or act.changed else ""
    if isinstance(body, Error):
        code = member(body.error, "code")
        failure.code = code if type(code) is int and abs(code) < _CODES else None
        data = member(body.error, "data")
        failure.text = one_line(": ".join(filter(None, (_said(member(body.error, "message")), _said(data)))))
    else:
        content = member(body.value, "result", "content")
        texts = (member(it, "text") for it in islice(content, 5)) if isinstance(content, list) else ()
        text = next((text for text in texts if isinstance(text, str) and text.strip()), None)
        failure.text = one_line(_said(text if text is not None else member(body.value, "result", "structuredContent")))


def add_answer(failure: FailedRequest, answer: HttpChannel) -> None:
    """Add the head of an HTTP answer that holds no JSON-RPC answer."""
    head = answer.opened.head
    failure.answer = answer.first or answer.opened.n
    failure.status = status(head)
    failure.reason = status_line(head).partition(" ")[2]
    failure.redirects = redirection(head)
    failure.ours = answer.unreached
    failure.text = answer.said
    failure.challenge = header(head, "www-authenticate")
    failure.gateway = gateway(head)


def _said(value: Any) -> str:
    """Return the message in a value: in an object, or in JSON within a text."""
    if isinstance(value, str):
        if value.lstrip()[:1] != "{" or len(value) > _LARGE:
            return value
        try:
            return _said(orjson.loads(value)) or value
        except orjson.JSONDecodeError:
            return value
    found = (member(value, *path) for path in MESSAGES)
    said = next((it for it in found if isinstance(it, str) and it), None)
    if said is not None or not value:
        return said or ""
    try:
        return orjson.dumps(value)[: 4 * TEXT].decode(errors="replace")
    except (TypeError, ValueError):  # a number of many digits, a great depth
        return excerpt(value)
