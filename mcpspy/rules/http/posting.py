"""Rules about HTTP: how a message is posted, and how the server answers it.

They apply to Streamable HTTP only. The HTTP+SSE transport of 2024-11-05 works differently, whatever revision is used
over it, and a WebSocket has none of these heads. Servers also refuse requests for reasons of their own (authorization,
load, an Origin). So a status of failure is checked only if the specification ties it to a message. What the relay
answered itself is nobody's fault. An answer is checked once, at the first event that it yields: its head, or a message.
"""

from collections.abc import Iterator
from dataclasses import replace

from mcpspy.conversation.bounds import REMEMBERED, keep
from mcpspy.conversation.context import asked, asks, posted
from mcpspy.conversation.model import Exchange, HttpChannel, HttpUnit, Message, Session
from mcpspy.conversation.outcomes import still_failed
from mcpspy.conversation.refusals import leads_to_login
from mcpspy.json_values import member
from mcpspy.rules.rule import EVERY, Fault, Later, StatefulCheck, rule
from mcpspy.spec.revisions import ROUNDS, STREAMABLE_HTTP, Revision, between, since
from mcpspy.wire.http_head import Head, authority, header, media_type, status
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

SENDING = "basic/transports#sending-messages-to-the-server"

_MESSAGES = (Request, Notification, Result, Error)
_TYPES = ("application/json", "text/event-stream")
_WILDCARDS = ("*/*", "application/*", "text/*")
_NOT_ACCEPTABLE, _UNSUPPORTED = 406, 415
_WRONG_PARAMS = -32602
_ACCEPTED, _NO_CONTENT = 202, 204
_NOT_JSON, _WRONG_PARAMS, _INTERNAL = -32700, -32602, -32603
_REDIRECTS = (301, 302, 303, 307, 308)
_STATUSES = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}  # by the code of the error (2026-07-28)


@rule(
    "http/accept",
    "error",
    """A client must send both `application/json` and `text/event-stream` in the `Accept` header of each POST, and
    `text/event-stream` in that of each GET. Servers refuse other requests with 406; some accept a wildcard. Reported
    once per session.""",
    fix="""Send `Accept: application/json, text/event-stream` with each POST, and `Accept: text/event-stream` with
    each GET.""",
    meanwhile="Accept a wildcard such as `*/*` for both types.",
    blame="client",
    spec=SENDING,
    about="http",
    revisions=STREAMABLE_HTTP,
    fails="""
        = 2025-06-18 http
        >> [accept: application/json] 2 tools/list
    """,
    passes="""
        = 2025-06-18 http
        >> [accept: text/event-stream, application/json;q=0.9] 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(*_MESSAGES, HttpUnit),
)
def accept(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report an `Accept` header that lacks a required type."""
    place = asks(event) if isinstance(event, HttpUnit) else posted(event)
    if place is None or (isinstance(event, HttpUnit) and place.summary["method"] != "GET"):
        return
    if "/.well-known/" in place.summary["target"]:
        return  # metadata is a plain document
    wanted = _TYPES[1:] if isinstance(event, HttpUnit) else _TYPES
    listed = [part.partition(";")[0].strip() for part in (header(place.opened.head, "accept") or "").lower().split(",")]
    missing = [kind for kind in wanted if kind not in listed]
    if missing and session.once(f"accept {missing}"):
        sentence = f"the request's Accept does not list {' and '.join(missing)}"
        yield Fault(sentence, severity="warning" if any(it in listed for it in _WILDCARDS) else None)


@rule(
    "http/request-type",
    "warning",
    """The message is not posted as `application/json`. The specification shows this type only in examples, but the
    servers of all SDKs refuse any other (400 or 415). Reported once per session.""",
    fix="Send `Content-Type: application/json` with each POST.",
    blame="client",
    spec=SENDING,
    about="http",
    revisions=STREAMABLE_HTTP,
    fails="""
        = 2025-06-18 http
        >> [content-type: text/plain] 2 tools/list
    """,
    passes="""
        = 2025-06-18 http
        >> [content-type: application/json; charset=utf-8] 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=_MESSAGES,
)
def request_type(message: Message, session: Session) -> Iterator[Fault]:
    """Report a message that is not posted as `application/json`."""
    place = posted(message)
    if place and media_type(place.opened.head) != "application/json" and session.once("request-type"):
        kind = media_type(place.opened.head)
        yield Fault(f"the message is posted {f'as {kind[:60]}' if kind else 'without a Content-Type'}")


def remembered(event: Message | HttpUnit) -> Message | HttpUnit | None:
    """Return the beginning of an answer in a form that may be kept until the end; None if it is too large for that."""
    if event.frame is None or event.frame.size <= REMEMBERED:
        return event
    return replace(event, frame=None) if isinstance(event, HttpUnit) else None


def is_about_call(event: Message | HttpUnit) -> bool:
    """Return whether an error is about the body of a request, or about its work: its text does not speak of HTTP."""
    if not isinstance(event, Message):
        return False
    code, exchange = member(event.body.value, "error", "code"), event.exchange
    return code in (_NOT_JSON, _WRONG_PARAMS) or (
        code == _INTERNAL and exchange is not None and event.id == exchange.key[1]
    )


def asks_for_refusal(request: HttpChannel, code: int) -> bool:
    """Return whether a POST is refused with 406 or 415 by the fault of its client, which has a finding of its own."""
    if code == _NOT_ACCEPTABLE:
        accepted = (header(request.opened.head, "accept") or "").lower()
        return not all(kind in accepted for kind in _TYPES)
    return code == _UNSUPPORTED and media_type(request.opened.head) != _TYPES[0]


@rule(
    "http/answer-type",
    "error",
    """A server must answer a request with one JSON object (`application/json`) or a stream of events
    (`text/event-stream`). Clients accept no other type.""",
    fix="Set `Content-Type: application/json` for one response, or `text/event-stream` for a stream.",
    meanwhile="Check the URL and the login: a page in HTML often comes from a gateway.",
    blame="server",
    spec=SENDING,
    about="http",
    loss="The client cannot read an answer",
    revisions=STREAMABLE_HTTP,
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 [content-type: text/plain] 2 = {"tools":[]}
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- 2 = {"tools":[]}
    """,
    on=(HttpUnit,),
)
def answer_type(remark: HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a successful answer whose head names another type."""
    place, head = asked(remark), remark.http.opened.head
    if place is None or not 200 <= status(head) < 300:
        return
    if says_empty(head):
        return  # `http/empty-answer` reports it
    requests = [message for message in place.carried if isinstance(message.body, Request)]
    cancelled = any(message.exchange and message.exchange.cancelled for message in requests)
    if requests and media_type(head) not in _TYPES and not cancelled:
        yield Fault(f"{_method(requests[0])} is answered with {_told(remark)}; expected JSON or events")


def says_empty(head: Head | None) -> bool:
    """Return whether the head of an answer of success says that it has no body."""
    code = status(head)
    return code == _NO_CONTENT or header(head, "content-length") == "0" or (code == _ACCEPTED and not media_type(head))


def _method(message: Message) -> str:
    return str(member(message.body.value, "method"))[:60]


def _told(remark: HttpUnit) -> str:
    head = remark.http.opened.head
    kind = media_type(head)
    return f"status {status(head)} {f'as {kind[:60]}' if kind else 'without a Content-Type'}"


@rule(
    "http/notification-status",
    "error",
    """A server must answer a notification or a response from the client with `202 Accepted` and no body. Some clients
    parse any other answer as a message, and fail.""",
    fix="Answer a notification and a response with the status 202 and no body.",
    meanwhile="Ignore the body of the answer to a notification.",
    blame="server",
    spec=SENDING,
    about="http",
    loss="The server answers notifications",
    revisions=STREAMABLE_HTTP,
    fails="""
        = 2025-06-18 http
        >> notifications/roots/list_changed
        << 200
    """,
    passes="""
        = 2025-06-18 http
        >> notifications/roots/list_changed
        << 202
    """,
    on=(*EVERY, HttpUnit),
)
def notification_status(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report an answer to a notification or response with another status than 202, or with a body."""
    place = event.http.request if event.http else None
    if event.http is None or place is None or place.legacy or event.http.opened.sender != "server":
        return
    said = [message for message in place.carried if isinstance(message.body, Notification | Result | Error)]
    code = status(event.http.opened.head)
    if not said or len(said) < len(place.carried) or not 200 <= code < 300:
        return
    what = _method(said[0]) if isinstance(said[0].body, Notification) else "the client's response"
    if code != 202 and asked(event):
        yield Fault(f"{what} is answered with status {code}; expected 202", related=(said[0].n,))
    elif code == 202 and (not isinstance(event, HttpUnit) or event.raw.strip()) and not event.part:
        yield Fault(f"{what} is answered with a body; expected status 202 alone", related=(said[0].n,))


@rule(
    "http/error-status",
    "error",
    """Some errors need a certain HTTP status, so that clients and intermediaries recognize them: 404 for a method that
    the server does not have (-32601), 400 for headers that do not match (-32020), a capability that the client lacks
    (-32021) and a revision that the server does not speak (-32022).""",
    fix="Send the status 404 with -32601, and 400 with -32020, -32021 and -32022.",
    meanwhile="Read the body whatever its status: the error in it has the reason.",
    blame="server",
    spec="basic/transports#protocol-version-header",
    about="http",
    revisions=since(Revision.R2026_07_28),
    fails="""
        >> 1 prompts/list {META}
        << 200 1 ! {"code":-32601,"message":"Method not found"}
    """,
    passes="""
        >> 1 prompts/list {META}
        << 404 1 ! {"code":-32601,"message":"Method not found"}
    """,
    on=(Error,),
)
def error_status(message: Message, session: Session) -> Iterator[Fault]:
    """Report an error with the wrong HTTP status.

    If a tool, prompt or resource is named, -32601 may mean that it does not exist. A server that does not know
    `server/discover` supports no revision with these statuses.
    """
    place, exchange = message.http, message.exchange
    if place is None or exchange is None or place.request is None or place.legacy or place.opened.sender != "server":
        return
    code = member(message.body.value, "error", "code")
    expected = _STATUSES.get(code) if type(code) is int else None
    found = status(place.opened.head)
    if code == -32601 and (exchange.name or exchange.method == "server/discover"):
        return
    if expected and found != expected and place.opened.role == "response":
        yield Fault(f"error {code} is sent with status {found}; expected {expected}", "/error/code")


@rule(
    "http/version-header",
    "error",
    """After `initialize`, a client must send the negotiated revision as `MCP-Protocol-Version` with every request.
    Without the header a server may assume 2025-03-26. Another revision than the negotiated one is a warning. Reported
    once per session.""",
    fix="""Send the revision of the answer to `initialize` as `MCP-Protocol-Version`. A transport of your own for
    the TypeScript SDK needs `setProtocolVersion`.""",
    meanwhile="Use the revision of the session, or 2025-03-26, if the header is missing.",
    blame="client",
    spec="basic/transports#protocol-version-header",
    about="http",
    revisions=between(Revision.R2025_06_18, Revision.R2025_11_25),
    fails="""
        = 2025-06-18 http
        >> [mcp-protocol-version:] 2 tools/list
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(*_MESSAGES, HttpUnit),
)
def version_header(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a request without `MCP-Protocol-Version`, or with another revision than the negotiated one."""
    place = asks(event) if isinstance(event, HttpUnit) else posted(event)
    agreed = event.session.negotiated
    if place is None or agreed is None or session.agreed is None or place.opened.t <= session.agreed:
        return
    if isinstance(event, Message) and member(event.body.value, "method") == "initialize":
        return
    if place.summary["method"] == "DELETE" and not event.session.initialized:
        return  # the client does not support the revision, and leaves
    stated = header(place.opened.head, "mcp-protocol-version")
    if stated is None and session.once("version-header missing"):
        yield Fault(f"the request has no MCP-Protocol-Version header; expected {agreed.value}")
    elif stated is not None and stated != agreed.value and session.once("version-header other"):
        yield Fault(
            f"MCP-Protocol-Version is {stated[:40]}; expected {agreed.value}, as in the answer to initialize",
            severity="warning",
        )


@rule(
    "http/redirect-elsewhere",
    "warning",
    """The request is redirected to another origin than the one the client connected to. The clients of the SDKs do
    not follow it, and traffic to that origin would not pass through mcpspy. A redirect within the origin is fine. It
    is an error if `initialize` fails by it, because then nothing works.""",
    fix="Redirect within the origin, and publish the new URL.",
    meanwhile="Configure the client, and mcpspy, with the URL in `Location`.",
    blame="server",
    spec="https://www.rfc-editor.org/rfc/rfc9110#section-15.4",
    about="http",
    explains=("refused",),
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 307 [location: https://elsewhere.example.com/mcp]
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 307 [location: /mcp/]
    """,
    on=(HttpUnit,),
)
class RedirectElsewhere(StatefulCheck):
    """Report redirects to another origin. Whether `initialize` failed by one is known at the end."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._begun: dict[int, tuple[HttpUnit, Exchange, str]] = {}  # by line number: redirects of `initialize`

    def check(self, remark: HttpUnit) -> Iterator[Fault]:
        """Check where a redirect leads."""
        opened = remark.http.opened
        request = remark.http.request
        redirects = opened.sender == "server" and status(opened.head) in _REDIRECTS
        if request is None or not redirects or remark.n != remark.http.first:
            return
        there, dialled = (authority(it) for it in (header(opened.head, "location") or "", _dialled(request)))
        moved = there and dialled and there != dialled and "location" not in (opened.by or "")
        if not moved or (request.carried and leads_to_login(request, opened.head)):
            return
        sentence = f"the redirect leads to {there[:200]}; expected {dialled[:200]}, where the client connects"
        begin = next((it.exchange for it in request.carried if it.method == "initialize" and it.exchange), None)
        if begin:
            keep(self._begun, remark.n, (remark, begin, sentence))
            keep(self.session.explained, begin.request.n, None)
        else:
            yield Fault(sentence)

    def close(self) -> Iterator[Fault]:
        """Report the redirects of `initialize`: an error, if it was not repeated with success."""
        for remark, begin, sentence in self._begun.values():
            failed = still_failed(begin) and not self.session.gaps
            yield Fault(sentence, at=remark, blame="server", severity="error" if failed else None)


def _dialled(request: HttpChannel) -> str:
    return f"//{header(request.opened.head, 'host') or ''}"


@rule(
    "http/not-json",
    "error",
    "The body of a POST or of its answer, an event, or a WebSocket message is not JSON. Peers refuse it.",
    fix="Send one complete JSON message in each body and each event.",
    meanwhile="Report the status and the beginning of the body: it may come from a gateway or a login page.",
    spec="basic/transports#streamable-http",
    about="http",
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 | {"tools":[}
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(Invalid,),
)
def not_json(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a body that is not JSON, unless the stream broke off in it or its content coding could not be decoded."""
    place = message.http
    reason = message.body.reason if isinstance(message.body, Invalid) else ""
    if place is None or message.frame.cut or not (reason.startswith("not JSON") or reason == "a blank line"):
        return
    what = {"sse": "event", "message": "message"}.get(place.opened.framing, "body")
    fault = Fault(f"the {what} is {'blank' if reason == 'a blank line' else reason}")
    if header(place.opened.head, "content-encoding"):
        yield Later(_unless_damaged(place, fault))
    else:
        yield fault


def _unless_damaged(place: HttpChannel, fault: Fault) -> Iterator[Fault]:
    """Yield the fault, unless the content coding is damaged. `framing/undecodable` reports that."""
    if not place.damaged:
        yield fault


@rule(
    "http/client-response",
    "error",
    """In 2026-07-28 servers send no requests, so clients send no responses. If a result is `input_required`, the client
    sends the input in `inputResponses` when it repeats the request.""",
    fix="Put the input into `inputResponses`, and send the request again.",
    blame="client",
    spec=SENDING,
    about="http",
    revisions=ROUNDS,
    fails="""
        >> [mcp-protocol-version: 2026-07-28] 7 = {"action":"accept"}
    """,
    passes="""
        >> 1 tools/list {META}
        << 200 1 = {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}
    """,
    on=(Result, Error),
)
def client_response(message: Message, session: Session) -> Iterator[Fault]:
    """Report a response that the client posted."""
    if posted(message):
        yield Fault("the client posts a response, but servers of this revision send no requests", "/id")
