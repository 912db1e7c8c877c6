"""Rules about frames: the bytes between two newlines, whatever they mean.

The transports allow only messages, one per line. The reaction of real clients to other lines was measured: most skip
them, some wait forever, some crash. The explanations name which.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mcpspy.conversation.context import other
from mcpspy.conversation.model import HttpUnit, Message, Session
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.wire.jsonrpc import Error, Invalid, Result, parse

_STDIO = "basic/transports#stdio"
_OURS = ("is not known", "is not installed", "is decoded no further")  # decoding errors that are not the sender's fault
_OVERSIZE = 10 << 20  # bytes: the size of the read buffer of the TypeScript SDK
_CONTENT_LENGTH = re.compile(rb"(?:^|[}\]])[ \t]*content-length[ \t]*:[ \t]*\d+[ \t]*\r?$", re.IGNORECASE)
_FRAMED = re.compile(rb"^\s*$|^content-type:|content-length[ \t]*:[ \t]*\d+[ \t]*\r?$|[}\]]\s*$", re.IGNORECASE)
"""Matches a line that is or ends with a header, is the blank line after it, or ends with a message."""
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
            if _is_not_json(message) and raw.lstrip()[:1] in (b"{", b"[") and depth > 0:
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
    return isinstance(message.body, Invalid) and message.body.reason.startswith("not JSON")


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
        yield Fault("the stream ended before the newline of this line")


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
