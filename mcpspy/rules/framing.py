"""Rules about frames: the bytes between two newlines, whatever they mean.

The transports allow only messages, one per line. The reaction of real clients to other lines was measured: most skip
them, some wait forever, some crash. The explanations name which.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcpspy.conversation.context import other
from mcpspy.conversation.model import Exchange, HttpUnit, Message, Session
from mcpspy.json_values import excerpt
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.text import plural
from mcpspy.wire.jsonrpc import (
    Body,
    Error,
    Invalid,
    Notification,
    Request,
    Result,
    messages_within,
    parse,
)
from mcpspy.wire.log_records import is_log_line, is_log_record

_STDIO = "basic/transports#stdio"
_OURS = ("is not known", "is not installed", "is decoded no further")  # decoding errors that are not the sender's fault
_OVERSIZE = 10 << 20  # bytes: the size of the read buffer of the TypeScript SDK
_CONTENT_LENGTH = re.compile(rb"(?:^|[}\]])[ \t]*content-length[ \t]*:[ \t]*\d+[ \t]*\r?$", re.IGNORECASE)
_FRAMED = re.compile(rb"^\s*$|^content-type:|content-length[ \t]*:[ \t]*\d+[ \t]*\r?$|[}\]]\s*$", re.IGNORECASE)
"""Matches a line that is or ends with a header, is the blank line after it, or ends with a message."""
_TOLD = 4  # messages of a line that are named
_HEADER = 100  # bytes at the end of a line that may contain the header
LONGEST, MOST_LINES = 1 << 20, 1 << 14
"""The limits for a message over several lines: bytes, and lines."""


@dataclass(slots=True, eq=False)
class Spread:
    """Lines that may be one message spread over several."""

    lines: list[Message]
    """If the message was reported, only its last line."""
    depth: int
    """The number of open brackets, including those inside strings."""
    size: int
    whole: bool = False


@rule(
    "framing/content-length",
    "error",
    """The sender frames its messages by `Content-Length` headers, as the Language Server Protocol does. MCP over stdio
    has one message per line, so no peer understands it. Some clients switch to this framing after a line that is not
    JSON.""",
    fix="Write each message as one line of JSON that ends with a newline, and no headers.",
    meanwhile="Keep stdout free of all other output: a line that is not JSON makes some clients try this framing.",
    spec=_STDIO,
    about="bytes",
    fails="""
        > | Content-Length: 40\\r
        > | \\r
        > | {"jsonrpc":"2.0","id":1,"method":"ping"}Content-Length: 40\\r
    """,
    passes="""
        > | {"jsonrpc":"2.0","id":1,"method":"ping"}
    """,
)
class ContentLength(StatefulCheck):
    """Report the first `Content-Length` header of each channel."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._channels: set[int] = set()

    def check(self, message: Message) -> Iterator[Fault]:
        """Look for a header: on a line of its own, or after a message on the same line."""
        if message.http or message.ch in self._channels or not isinstance(message.body, Invalid):
            return
        if _CONTENT_LENGTH.search(message.frame.raw[-_HEADER:]):
            self._channels.add(message.ch)
            yield Fault("messages are framed by Content-Length headers; expected one message per line")

    def frames(self, message: Message) -> bool:
        """Return whether the message is part of such framing on its channel. It then gets no other finding."""
        raw = message.frame.raw[-_HEADER:]
        return message.ch in self._channels and (message.frame.cut or _FRAMED.search(raw) is not None)


@rule(
    "framing/multiline-json",
    "error",
    """One message is spread over several lines, as a pretty printer does it. A message must not contain newlines: the
    clients of all SDKs parse each line by itself, fail, and wait forever for the answer.""",
    fix="Write each message on one line: call `json.dumps` or `JSON.stringify` without an indent.",
    spec=_STDIO,
    fails="""
        = 2025-06-18
        > 2 ping
        < | {
        < |   "jsonrpc": "2.0", "id": 2,
        < |   "result": {}
        < | }
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        < | {"jsonrpc": "2.0", "id": 2, "result": {}}
    """,
    on=(Invalid,),
)
class MultilineJson(StatefulCheck):
    """Collect lines from an opening bracket on, and parse them together when all brackets are closed."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._spreads: dict[int, Spread] = {}
        """The collected lines, by channel."""

    def check(self, message: Message) -> Iterator[Fault]:
        """Begin, continue or end a collection."""
        if message.http or message.part or self.session.of(ContentLength).frames(message):
            return  # HTTP bodies have no lines; see `http/not-json`
        raw = message.frame.raw
        spread = self._spreads.get(message.ch)
        if spread and spread.whole:
            spread = None
        depth = raw.count(b"{") + raw.count(b"[") - raw.count(b"}") - raw.count(b"]")
        if spread is None:
            if _is_not_json(message) and raw.lstrip()[:1] in (b"{", b"[") and depth > 0 and not _is_torn(raw):
                self._spreads[message.ch] = Spread([message], depth, len(raw))
            return
        if isinstance(message.body.value, dict) and "jsonrpc" in message.body.value:
            del self._spreads[message.ch]  # a message of its own
            return
        spread.lines.append(message)
        spread.depth += depth
        spread.size += len(raw)
        if spread.depth > 0 and spread.size < LONGEST and len(spread.lines) < MOST_LINES:
            return
        del self._spreads[message.ch]
        first, *rest = spread.lines
        bodies = parse(b"\n".join(line.frame.raw for line in spread.lines))
        if any(isinstance(body, Invalid) for body in bodies):
            spread.lines.pop()  # the last line is now checked by itself
            return
        spread.whole = True
        self._spreads[message.ch] = Spread([message], 0, 0, whole=True)
        ids = [body.id for body in bodies if isinstance(body, Result | Error) and body.id]
        waiting = (first.session.pending.get((other(first.sender), number), ()) for number in ids)
        related = (*(exchange.request.n for found in waiting for exchange in found), *(line.n for line in rest))
        yield Fault(f"one message is spread over {len(spread.lines)} lines", at=first, related=related)

    def holding(self, message: Message) -> Spread | None:
        """Return the collected lines whose latest message is this one."""
        spread = self._spreads.get(message.ch)
        return spread if spread and spread.lines[-1] is message else None

    def unfinished(self, spread: Spread) -> Iterator[Fault]:
        """Report the lines one by one if they did not become one message."""
        if spread.whole:
            return
        first = spread.lines[0]
        if self._spreads.get(first.ch) is spread:
            del self._spreads[first.ch]
        for line in spread.lines:
            if _is_not_json(line):
                yield Fault(_what(line), at=line)


def is_spread(message: Message, session: Session) -> bool:
    """Return whether a line may be part of a message over several lines. It is then not checked by itself."""
    return session.of(MultilineJson).holding(message) is not None


def _is_not_json(message: Message) -> bool:
    if message.http or message.frame.cut:  # a cut line is reported by `framing/unterminated`
        return False
    not_json = isinstance(message.body, Invalid) and message.body.reason.startswith("not JSON")
    return not_json and not is_log_line(message.frame.raw)


def _is_torn(raw: bytes) -> bool:
    """Return whether another message was written into the middle of a message; `framing/glued` reports it."""
    return raw.lstrip()[:1] == b"{" and bool(messages_within(raw)[1])


def _what(message: Message) -> str:
    reason = message.body.reason if isinstance(message.body, Invalid) else ""
    return f"this line is {reason}"


@rule(
    "framing/not-json",
    "error",
    """A line between the messages is not JSON. A server must write only messages to stdout, and logs to stderr. Most
    clients skip such a line, some drop the server.""",
    fix="Write only messages to stdout, and logs to stderr: `console.error` in JavaScript, `logging` in Python.",
    meanwhile="Skip the line. Start the server with a command that prints nothing itself, such as `npm run --silent`.",
    spec=_STDIO,
    fails="< | Fetching forecast for Oslo",
    passes="! Fetching forecast for Oslo",
    on=(Invalid,),
)
def not_json(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a line that is not JSON."""
    lines = session.of(MultilineJson)
    spread = lines.holding(message)
    if session.of(ContentLength).frames(message):
        return
    if spread is None:
        if _is_not_json(message) and not message.frame.raw.count(b"\0"):
            yield Fault(_what(message))
    elif spread.lines[0] is message and not spread.whole:
        yield Later(lines.unfinished(spread))


@rule(
    "framing/log-record",
    "error",
    """A log record is where only messages may be: a line in a usual format of logs, or a JSON object with a level. A
    server must log to stderr, or with `notifications/message`. Some clients drop a server that writes logs to stdout,
    and a record with an `id` or an `error` can be taken for an answer.""",
    fix="""Direct the logger to stderr: `pino.destination(2)`, `stderrLevels` of winston's Console,
    `slog.NewJSONHandler(os.Stderr, nil)`.""",
    meanwhile="Skip the line.",
    spec=_STDIO,
    fails='< | {"level":30,"time":1776420000000,"pid":7,"hostname":"box","msg":"server started"}',
    passes='! {"level":30,"time":1776420000000,"pid":7,"hostname":"box","msg":"server started"}',
    on=(Invalid,),
)
def log_record(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a log record on stdin or stdout: as JSON, or as a line of text."""
    body = message.body
    if not isinstance(body, Invalid) or is_spread(message, session):
        return
    as_json = isinstance(body.value, dict) and (
        body.reason.startswith("a log record")
        or (
            "jsonrpc" not in body.value
            and body.reason.startswith("neither")
            and is_log_record(body.value, without_level=True)
        )
    )
    text = body.reason.startswith("not JSON") and not message.frame.cut and not message.http
    as_text = text and is_log_line(message.frame.raw)
    if as_json or (as_text and not session.of(ContentLength).frames(message)):
        to_client = message.sender == "server"
        where = "on stdout; logs belong on stderr" if to_client else "on stdin; the server expects only messages there"
        where = (
            f"as the {_unit(message)} of an HTTP {'answer' if to_client else 'request'}; logs belong elsewhere"
            if message.http
            else where
        )
        fault = Fault(f"a log record {where}")
        waiting = [*_waiting(message)] if as_text else []
        yield Later(_decided(fault, waiting, lost=False)) if waiting else fault


def _unit(message: Message) -> str:
    """Return what a frame is on its transport."""
    return {"sse": "event", "body": "body"}.get(message.http.opened.framing, "message") if message.http else "line"


def _waiting(message: Message) -> Iterator[Exchange]:
    """Yield the waiting requests whose answers are inside a line."""
    for it in messages_within(message.frame.raw)[1]:
        exchange = _answered(it.body, message)
        if exchange:
            yield exchange


def _decided(fault: Fault, waiting: Sequence[Exchange], *, lost: bool) -> Iterator[Fault]:
    """Yield a fault if an answer inside a line of a log is lost or not: it may have been sent by itself as well."""
    if lost == any(it.answered is None for it in waiting):
        yield fault


@rule(
    "framing/glued",
    "error",
    """The line has a message and something else: text before or after it, or a second message. Peers parse the line as
    a whole and fail, so the message is lost, and a request waits forever for its answer. Usual causes are output
    without a newline, such as a progress bar, and two threads that write at the same time. A line of a log that quotes
    a message is a log record, unless the message is not sent otherwise.""",
    fix="End each message with a newline, write it in one call under a lock, and write everything else to stderr.",
    meanwhile="Report the line that cannot be parsed, so that the user sees what the server writes.",
    spec=_STDIO,
    fails="""
        = 2025-06-18
        > 2 ping
        < | Loading model... {"jsonrpc":"2.0","id":2,"result":{}}
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        ! Loading model...
        < | {"jsonrpc":"2.0","id":2,"result":{}}
    """,
    on=(Invalid,),
    loss="A message could not be read",
)
def glued(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report messages inside a line or an HTTP body that is not JSON as a whole."""
    raw, body = message.frame.raw, message.body
    if message.frame.cut or not isinstance(body, Invalid) or not body.reason.startswith("not JSON") or b"\0" in raw:
        return
    if is_spread(message, session) or session.of(ContentLength).frames(message):
        return
    text, found = messages_within(raw)
    if not found:
        return
    answers = [_answered(it.body, message) for it in found]
    told = [f"the answer to #{it.request.n}" if it else _kind_of(each.body)
            for each, it in zip(found, answers, strict=True)][:_TOLD]  # fmt: skip
    many = len(found) > _TOLD
    sentence = told[0] if len(found) == 1 else f"{len(found)} messages: {', '.join(told)}{', …' if many else ''}"
    ends = [0, *(it.end for it in found)]
    others = [text[end:start] for end, start in zip(ends, [*(it.start for it in found), None], strict=True)]
    what = _unit(message)
    waiting = [it for it in answers if it]
    fault = Fault(f"the {what} holds {sentence}{_others(others)}", related=tuple(it.request.n for it in waiting))
    if message.http or not is_log_line(raw):
        yield fault
    elif waiting:  # a log may quote what is sent
        yield Later(_decided(fault, waiting, lost=True))


def _answered(body: Body, message: Message) -> Exchange | None:
    """Return the waiting request that a response inside the line of a message answers."""
    number = body.id if isinstance(body, Result | Error) else None
    waiting = message.session.pending.get((other(message.sender), number), ()) if number else ()
    return waiting[0] if waiting else None


def _kind_of(body: Body) -> str:
    if isinstance(body, Request | Notification):
        kind = "the request" if isinstance(body, Request) else "the notification"
        return f"{kind} {body.method[:60]}"
    return f"an answer with id {body.id.excerpt}" if isinstance(body, Result | Error) and body.id else "an error"


def _others(parts: list[str]) -> str:
    """Return how many characters are around the messages of a line, and how they begin."""
    before, *_, after = parts
    size = sum(len(part) for part in parts if part.strip())
    if not size:
        return ", without a newline between them"
    where = " after" if before.strip() else " before" if after.strip() else " and"
    excerpted = excerpt(" ".join(filter(None, (part.strip() for part in parts))), 40)
    return f"{where} {plural(size, 'other character')}, {excerpted}"


@rule(
    "framing/null-byte",
    "error",
    """The line contains a NUL byte, usually because it is UTF-16 or binary. The clients of all SDKs cannot parse it,
    and wait forever for the answer.""",
    fix="Encode messages as UTF-8, not as UTF-16, and send binary content as base64.",
    spec=_STDIO,
    fails='< | \\x00{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    passes='< | {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    on=(Invalid,),
)
def null_byte(message: Message, session: Session) -> Iterator[Fault]:
    """Report a NUL byte, which JSON does not allow."""
    place = -1 if message.part else message.frame.raw.find(b"\0")
    if place >= 0 and not message.http:
        yield Fault(f"byte {place} of the line is NUL, which JSON does not allow")


@rule(
    "framing/blank-line",
    "info",
    "The line is blank. Clients skip blank lines, and some report an error for each one.",
    fix="End each message with one newline: `print` and `console.log` add it themselves.",
    meanwhile="Skip blank lines.",
    spec=_STDIO,
    fails="< | ",
    passes="< notifications/tools/list_changed",
    on=(Invalid,),
)
def blank_line(message: Message, session: Session) -> Iterator[Fault]:
    """Report blank lines, once per session and side."""
    blank = not message.http and isinstance(message.body, Invalid) and message.body.reason == "a blank line"
    if blank and not session.of(ContentLength).frames(message) and session.once(f"blank-line {message.sender}"):
        yield Fault("this line is blank")


@rule(
    "framing/crlf",
    "info",
    "Lines end with CR LF, as text streams on Windows write them. All SDKs accept it. Reported once per session.",
    fix=r'Write LF alone: in Python, call `sys.stdout.reconfigure(newline="\n")`.',
    spec=_STDIO,
    about="bytes",
    fails='< | {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\\r',
    passes='< | {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
)
def crlf(message: Message, session: Session) -> Iterator[Fault]:
    """Report lines that end with CR LF, once per session and side."""
    if not message.frame.raw.endswith(b"\r") or message.http or session.of(ContentLength).frames(message):
        return
    if session.once(f"crlf {message.sender}"):
        yield Fault("the line ends with CR LF")


@rule(
    "framing/unterminated",
    "warning",
    """The stream ended before the newline of its last line. Python servers read such a line. The server of the
    TypeScript SDK and all clients drop it.""",
    fix="Write the newline, and flush the stream before you exit.",
    meanwhile="Parse what is left in your buffer when the stream ends.",
    spec=_STDIO,
    about="bytes",
    fails='< |… {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    passes='< | {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
)
def unterminated(message: Message, session: Session) -> Iterator[Fault]:
    """Report the last line of a channel without a newline. Not after a gap, which may have lost the newline."""
    if session.of(ContentLength).frames(message):
        return
    if message.frame.cut and not message.http and not session.lossy and not message.part:
        yield Fault(f"the stream ended after {message.frame.size:,} bytes of this line, before its newline")


@rule(
    "framing/oversize",
    "warning",
    "The frame is larger than 10 MiB, the read buffer of the TypeScript SDK, which then closes the connection.",
    fix="Send less at once: return a resource link, or split the content into pages.",
    meanwhile="Request less at once, for example with narrower arguments.",
    spec=_STDIO,
    about="bytes",
    fails='< |x11000000 {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    passes='< | {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
)
def oversize(message: Message, session: Session) -> Iterator[Fault]:
    """Report frames over 10 MiB."""
    size = message.frame.size
    if size > _OVERSIZE and not message.http and not message.part:
        yield Fault(f"the frame has {size:,} bytes; some clients accept at most {_OVERSIZE:,}")


@rule(
    "framing/invalid-utf8",
    "error",
    """The frame is not UTF-8. The transport of the Python SDK fails on such a line; the TypeScript SDK replaces the
    invalid bytes with U+FFFD.""",
    fix="Encode messages as UTF-8: in Python on Windows, write bytes to `sys.stdout.buffer`.",
    meanwhile="""Replace invalid bytes, so that one line does not end the connection. If you start a
    Python server, set `PYTHONUTF8=1` in its environment.""",
    spec=_STDIO,
    about="bytes",
    fails='< | {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\\xff"}}',
    passes='< | {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"ÿ"}}',
)
def invalid_utf8(message: Message, session: Session) -> Iterator[Fault]:
    """Report frames that are not valid UTF-8."""
    refused = message.body.refused
    if refused and refused.startswith("invalid UTF-8") and not message.part:
        yield Fault(f"the frame has {refused}")


@rule(
    "framing/bom",
    "error",
    """The frame begins with a byte order mark. JSON does not allow it, and the clients of all SDKs then wait forever
    for the answer.""",
    fix="Write UTF-8 without a byte order mark: in Python `utf-8`, not `utf-8-sig`; in .NET `new UTF8Encoding(false)`.",
    meanwhile="Remove the bytes EF BB BF before you parse the line.",
    spec="https://www.rfc-editor.org/rfc/rfc8259#section-8.1",
    about="bytes",
    fails='< | \\xef\\xbb\\xbf{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    passes='< | {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
)
def bom(message: Message, session: Session) -> Iterator[Fault]:
    """Report a byte order mark."""
    if message.body.refused and message.frame.raw.startswith(b"\xef\xbb\xbf") and not message.part:
        yield Fault("the frame begins with a byte order mark")


@rule(
    "framing/undecodable",
    "error",
    """The body does not match its `Content-Encoding`: it is damaged, or ends too early. It was forwarded and recorded
    unchanged. An encoding that mcpspy does not support is reported as info.""",
    fix="Send the whole body with the encoding that `Content-Encoding` names, or without one.",
    meanwhile="Send `Accept-Encoding: identity` with your requests, to get bodies without an encoding.",
    spec="https://www.rfc-editor.org/rfc/rfc9110#section-8.4",
    about="http",
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 [content-encoding: gzip] | not gzip
        <x the compressed body is damaged: Error -3 while decompressing data: incorrect header check
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 [content-encoding: gzip] 2 = {"tools":[]}
    """,
    on=(HttpUnit,),
)
def undecodable(remark: HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a content coding that could not be decoded."""
    if remark.damage:
        ours = remark.damage.endswith(_OURS)
        yield Fault(remark.damage, related=(remark.http.opened.n,), severity="info" if ours else None)
