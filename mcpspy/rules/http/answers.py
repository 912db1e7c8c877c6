"""Rules about answers that hold no answer for the client.

The body is empty or of another type, or the answer is in an event that clients do not read. The status is that of
a success, so the client waits for a response that does not come, or fails without a reason.
"""

from collections.abc import Iterator

import orjson

from mcpspy.conversation.model import ENDLESS, HttpUnit, Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.http.posting import SENDING, says_empty
from mcpspy.rules.http.sessions import is_deleted
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.wire.http_head import header, media_type, status
from mcpspy.wire.jsonrpc import Id, Invalid
from mcpspy.wire.sse import parse_event

_STREAM, _JSON = "text/event-stream", "application/json"
_FIELDS = (b"event:", b"data:", b"id:", b"retry:")
_LARGEST = 1 << 20  # bytes of a body that is parsed
_OK, _REDIRECTION = 200, 300


@rule(
    "http/empty-answer",
    "error",
    """The server answered a request with a status of success and an empty body. Every request needs a response, also
    `ping`, whose result is `{}`. The client waits until its time-out, or takes the connection for dead.""",
    fix="Answer each request with a JSON-RPC response; to `ping`, with an empty `result`.",
    meanwhile="Treat an empty answer as a failure of the request.",
    blame="server",
    spec=SENDING,
    explains=("refused", "broken"),
    fails="""
        = 2025-06-18 http
        >> 2 ping
        << 200 [content-length: 0] [content-type: application/json]
    """,
    passes="""
        = 2025-06-18 http
        >> 2 ping
        << 200 2 = {}
    """,
    on=(),
)
class EmptyAnswer(StatefulCheck):
    """Report a request whose answer has ended without a byte."""

    def end(self, request: Message) -> Iterator[Fault]:
        """Check the answer to a request that has no response."""
        exchange = request.exchange
        fate = exchange.fate if exchange else None
        answer = fate.answer if fate else None
        if exchange is None or fate is None or answer is None or answer.request is None:
            return
        if exchange.cancelled or exchange.in_doubt or request.n in self.session.explained:
            return
        if is_deleted(self.session, fate.t):
            return
        ended = exchange.outcome == "refused" and fate.reason == "eof" and answer.opened.sender == "server"
        code, kind = status(answer.opened.head), media_type(answer.opened.head)
        if not ended or exchange.method == ENDLESS or not _OK <= code < _REDIRECTION:
            return
        if kind not in (_JSON, _STREAM) and not says_empty(answer.opened.head):
            return  # another type has a rule of its own
        if answer.request.latest is None:
            self.session.explained[request.n] = None
            told = f"{code}, {kind}" if kind else f"{code}"
            yield Fault(f"{exchange.method} is answered with an empty body ({told}); expected a response",
                        related=(answer.first or answer.opened.n,), blame="server")  # fmt: skip


@rule(
    "http/body-type",
    "error",
    """The body of the answer is of another type than its `Content-Type`: JSON as `text/event-stream`, or events as
    `application/json`. Clients parse the body by the type, so they find no message in it.""",
    fix="""Set `Content-Type: application/json` for a body that is one JSON message, and `text/event-stream` for
    events.""",
    meanwhile="Look at the first byte of the body: JSON begins with a bracket.",
    blame="server",
    spec=SENDING,
    about="content",
    explains=("refused", "broken"),
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- ~ {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- 2 = {"tools":[]}
    """,
    on=(HttpUnit, Invalid),
)
def body_type(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a body of another type than the head says."""
    answer, frame = event.http, event.frame
    if answer is None or frame is None or answer.request is None or answer.opened.sender != "server" or event.part:
        return
    is_stream = isinstance(event, HttpUnit) and answer.streams and event.n == answer.first and _is_message(frame.raw)
    has_fields = isinstance(event, Message) and frame.raw.lstrip().startswith(_FIELDS)
    if is_stream or (has_fields and media_type(answer.opened.head) == _JSON):
        kind = (header(answer.opened.head, "content-type") or "")[:60]
        yield Fault(f"the body is {'JSON' if is_stream else 'an event stream'}, but its type is {excerpt(kind)}",
                    related=tuple(it.n for it in answer.request.carried[:1]), blame="server")  # fmt: skip


def _is_message(raw: bytes) -> bool:
    """Return whether a text in a stream of events is not an event, but JSON-RPC."""
    return raw.lstrip()[:1] in (b"{", b"[") and _method_or_answer(raw) is not None


def _method_or_answer(raw: bytes) -> str | None:
    """Return the method of a JSON-RPC message, or `an answer`; None if it is no such message."""
    if b'"jsonrpc"' not in raw or len(raw) > _LARGEST:
        return None
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    first = value[0] if isinstance(value, list) and value else value
    if member(first, "jsonrpc") is None:
        return None
    method = member(first, "method")
    return method[:60] if isinstance(method, str) else "an answer"


@rule(
    "http/event-name",
    "error",
    """A message is in an event of another name than `message`. Clients read only events without a name, or with that
    name, so the message is lost: a request gets no answer. Events of other names may hold other things, such as a
    `ping`.""",
    fix="Leave out `event:`, or write `event: message`.",
    meanwhile="Read messages from events of any name.",
    blame="server",
    spec="https://html.spec.whatwg.org/multipage/server-sent-events.html#dispatchMessage",
    about="content",
    explains=("refused", "broken", "unanswered", "timed-out"),
    loss="The client does not read a message of the server",
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [event: response] 2 = {"tools":[]}
        <. closed
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [event: message] 2 = {"tools":[]}
        <. closed
    """,
    on=(HttpUnit,),
)
def event_name(remark: HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a message in an event that clients do not read."""
    answer, frame = remark.http, remark.frame
    if (
        frame is None
        or frame.cut
        or not answer.streams
        or answer.opened.sender != "server"
        or b'"jsonrpc"' not in frame.raw
    ):
        return
    event = parse_event(frame.raw)
    if event.name in ("message", "endpoint") or not event.data or remark.text.startswith("#"):
        return
    what = _method_or_answer(event.data)
    if what:
        carried = answer.request.carried[:1] if answer.request else []
        related = tuple(it.n for it in carried) or _waiting(event.data, remark.session)
        yield Fault(f"event #{remark.n} named {excerpt(event.name)} holds {what}; clients read only `message`",
                    related=related, blame="server")  # fmt: skip


def _waiting(raw: bytes, session: Session) -> tuple[int, ...]:
    """Return the requests that a response on the stream of a GET is for (HTTP+SSE)."""
    number = Id.of(member(orjson.loads(raw), "id"))
    return tuple(it.request.n for it in session.pending.get(("client", number), ()))
