"""Record one HTTP exchange: the request, its response, and the WebSocket that it may become.

This module decides how bodies are recorded, for `proxy`, `mitm` and `import` alike:

- Framing: a response of type text/event-stream is split into events; any other body is one frame.
- Content coding: a body is recorded decoded, according to the Content-Encoding of its own head. If it cannot be
  decoded, the bytes from the fault on are recorded as received, and the close record has the reason.
- Secrecy: a form and a body of an OAuth endpoint are recorded as one frame without their secrets, or withheld if they
  cannot be parsed. A page (HTML) is treated in the same way: it may contain secrets in forms and scripts, cannot be
  redacted reliably, and is never MCP. A response that we made ourselves is recorded whole. On every path, a body of at
  most 64 KiB that is a form, or JSON that is not a JSON-RPC message, is searched for secrets (A-08), because logins are
  also found at unusual paths.

A relay keeps the `Opening` of a head that is repeated, so that the recorded fields are encoded only once.

A relay that intercepts sees everything that a client sends to a host. Only the content shows what of it is MCP: a
header of the protocol, or a JSON-RPC message. Until then the records are kept in a `Pending`; the bytes are forwarded
already. If an exchange has sent `MOST_PENDING` bytes without such a sign, it is not MCP, and its records are dropped.
"""

from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.capture.format import written
from mcpspy.secrets.redactor import LARGEST_BODY, is_form, is_oauth_endpoint, withheld
from mcpspy.wire.content_coding import Decoder, Whole
from mcpspy.wire.http_head import SIGN_OF_MCP, Head, values
from mcpspy.wire.sse import Events
from mcpspy.wire.websocket import Messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.recording import Recording, Sink
    from mcpspy.secrets.redactor import Redactor


class Opening:
    """How the message with a certain head is recorded; it can be used again for equal heads.

    `target` is the target of a request, None for a response; `changes` are `sent` and `by`.
    """

    __slots__ = ("_recorded", "coding", "fields", "framing", "secret")

    def __init__(self, head: Head, changes: dict[str, Any], target: str | None = None) -> None:
        kind = values(head, "content-type")
        self.secret = is_form(kind) or (target is not None and is_oauth_endpoint(target))
        """Whether every part of the body may contain secrets."""
        self.framing = "sse" if target is None and "text/event-stream" in kind.lower() else "body"
        self.coding = values(head, "content-encoding")
        """The content coding of the body."""
        self.fields: dict[str, Any] = {"head": head} | changes
        self._recorded: dict[str, Any] | None = None

    @property
    def plain(self) -> bool:
        """Whether the body is recorded as received, as one frame."""
        return not (self.secret or self.coding or self.framing != "body")

    def recorded(self, redactor: "Redactor") -> dict[str, Any]:
        """Return the fields with their secrets replaced, encoded already."""
        if self._recorded is None:
            clean = {key: value if key == "by" else redactor.head(value) for key, value in self.fields.items()}
            try:
                self._recorded = {key: orjson.Fragment(orjson.dumps(value)) for key, value in clean.items()}
            except TypeError:  # a lone surrogate, which the writer replaces
                self._recorded = clean
        return self._recorded


Fields = dict[str, Any]

_BEGINNING = b'{"jsonrpc":"2.0"'  # the beginning of most messages
_KEPT = 1 << 18  # bytes after which every coding has returned its first decoded bytes


class Body:
    """Records the frames of one channel.

    `framing` is body, sse or message; `encoding` is the value of its Content-Encoding. `secret` is set if every part of
    the body may contain secrets: a login, a form or a page.
    """

    def __init__(self, recording: "Recording", framing: str, encoding: str = "", *, secret: bool = False) -> None:
        self.number = recording.number()
        self.coded = False
        """Whether the fed bytes are compressed, so that they may decode to many times their size."""
        self._recording = recording
        self._framing = framing
        self._encoding = encoding
        self._secret = secret
        self._decoder: Decoder | None = None
        self._frames: Any = None
        self._received = b""  # the received bytes, while nothing is decoded yet
        self._undecided = False  # whether the next frame is too long for a gate
        self._begun = False  # whether a piece of the current frame is written
        self.ended: str | None = None
        """How the channel ended (`close.how`); None until that is recorded."""
        self.dropped = False
        """Whether a gate dropped a frame."""

    @property
    def between(self) -> bool:
        """Whether no frame is incomplete; False if the stream is compressed, ended or not recorded."""
        split = self._recording.sink is not None and not self.ended and not self.coded
        return split and getattr(self._frames, "between", False)

    def open(self, t: int, sender: str, role: str, fields: Fields) -> None:
        """Record that the channel opened at `t`; `fields` may have peer, answers, head, sent, by."""
        self._recording.record(self._open, t, sender, role, fields)

    def whole(self, t: int, sender: str, role: str, opening: "Opening", fields: Fields, raw: bytes) -> None:
        """Record, with one write, a channel that opened at `t`, had `raw` as its body and ended normally.

        `opening` must be plain, and `raw` at most one piece long; `fields` may have peer or answers.
        """
        self.ended = "eof"
        self._recording.record(self._whole, t, sender, role, opening, fields, raw)

    def undecided(self) -> None:
        """Announce that the next frame is too long for a gate; it is fed like all others."""
        self._undecided = True

    def decoded(self) -> None:
        """Announce that the bytes fed from now on are decoded already."""
        self._decoder, self.coded = None, False

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and are forwarded already."""
        self._recording.record(self._feed, chunk, t)

    def frame(
        self, raw: bytes, t: int, *, cut: bool = False, op: str | None = None, gated: Fields | None = None
    ) -> None:
        """Record one whole frame that was read at `t`, decoded and split already.

        `op` is the kind of a WebSocket message, None for text. `gated` has what a gate did with the frame: `sent`
        (bytes, or None), `by`, `held`, or `from` for a frame of our own.
        """
        self._recording.record(self._whole_frame, t, raw, cut, op, gated)

    def end(self, t: int, how: str, code: int | None = None, reason: str | None = None) -> None:
        """Record that the stream ended; a second call has no effect.

        `code` and `reason` are those of a WebSocket's close frame, for a channel that is recorded by whole messages.
        """
        if not self.ended:
            self._recording.record(self._end, t, how, code, reason)

    def _open(self, sink: "Sink", t: int, sender: str, role: str, fields: Fields) -> None:
        redact = self._recording.redactor.head
        for key in ("head", "sent"):
            if key in fields:
                fields = fields | {key: redact(fields[key])}
        self._decoder = Decoder(self._encoding) if self._encoding else None
        self.coded = self._decoder is not None and not self._decoder.plain
        self._frames = _Guarded(self._recording, withheld=self._framing != "body") if self._secret else self._splitter()
        sink.open(self.number, t, sender, role, "body" if self._secret else self._framing, fields)

    def _whole(
        self, sink: "Sink", t: int, sender: str, role: str, opening: "Opening", fields: Fields, raw: bytes
    ) -> None:
        rest = fields | opening.recorded(self._recording.redactor)
        sink.whole(self.number, t, sender, role, rest, self._redacted(raw) if raw else raw)

    def _splitter(self) -> Any:
        return Events() if self._framing == "sse" else Messages() if self._framing == "message" else Whole()

    def _feed(self, sink: "Sink", chunk: bytes, t: int) -> None:
        if self.ended:
            return
        if not (self.coded and self._decoder):
            self._write(sink, t, self._frames.feed(chunk))
            return
        before = self._received
        self._received = before + chunk if len(before) < _KEPT else before
        for part in self._decoder.feed(chunk):
            self._received = b""
            self._write(sink, t, self._frames.feed(part))
        if self._decoder.fault:
            self.coded = False
            self._write(sink, t, self._frames.end(), cut=True)
            if self._decoder.bounded:
                self._frames = _Discarded()
                return
            self._frames = _Guarded(self._recording, withheld=True) if self._secret else Whole()
            self._write(sink, t, self._frames.feed(self._received or chunk))

    def _whole_frame(self, sink: "Sink", t: int, raw: bytes, cut: bool, op: str | None, gated: Fields | None) -> None:
        if self.ended:
            return
        if self._secret and self._framing != "body":
            self._frames.feed(raw)  # its size is recorded at the end
            return
        gated = dict(gated) if gated else {}
        self.dropped = self.dropped or gated.get("sent", raw) is None
        if gated.get("sent") is not None:
            gated["sent"] = self._redacted(gated["sent"])
        whole = Whole()
        frames = whole.feed(self._redacted(raw)) + whole.end() or [(b"", False, False)]
        rest = ({"op": op} if op else {}) | written(gated)
        for piece, more, _ in frames:
            sink.frame(self.number, t, piece, more, cut and not more, rest or None)
            rest = {"op": op} if op else {}  # the other members are on the first piece

    def _redacted(self, raw: bytes) -> bytes:
        """Return a whole frame with its secrets replaced."""
        if self._framing != "body":
            return raw
        if self._secret:
            redactor = self._recording.redactor
            if len(raw) <= LARGEST_BODY:
                return redactor.body(raw)
            return withheld(len(raw), redactor.title(raw[:LARGEST_BODY]))
        return raw if _is_message(raw) else self._recording.redactor.body_elsewhere(raw)

    def _end(self, sink: "Sink", t: int, how: str, code: int | None, reason: str | None) -> None:
        self.ended = how
        if how == "eof" and self._decoder:
            self._decoder.end()
        fault = self._decoder.fault if self._decoder else None
        self._write(sink, t, self._frames.end(), cut=how != "eof" or (self.coded and fault is not None))
        closing = getattr(self._frames, "closing", None) or (code, reason)
        rest: Fields = {}
        if closing[0]:
            rest["code"] = closing[0]
            if closing[1]:
                rest["reason"] = self._recording.redactor.url(closing[1])
        elif fault:
            rest["reason"] = fault
        sink.close(self.number, t, how, rest)

    def _write(self, sink: "Sink", t: int, frames: list[Any], *, cut: bool = False) -> None:
        for raw, more, ended, *op in frames:
            rest: Fields | None = {"op": op[0]} if op and op[0] else None
            if self._undecided:
                rest, self._undecided = (rest or {}) | {"undecided": True}, False
            if not (self._secret or self._begun or more):
                raw = self._redacted(raw)  # noqa: PLW2901 (what is written in its place)
            self._begun = more
            sink.frame(self.number, t, raw, more, ended or (cut and not more), rest)


def _is_message(raw: bytes) -> bool:
    """Test quickly whether a body is a JSON-RPC message; a body that fails the test is searched for secrets."""
    if raw.startswith(_BEGINNING):
        return True
    try:
        value = orjson.loads(raw) if b'"jsonrpc"' in raw else None
        return isinstance(value, dict) and isinstance(value.get("jsonrpc"), str)
    except (ValueError, TypeError):  # a number, or null
        return False


class _Discarded:
    """Discards the rest of a body that expands too much; the close record has the reason."""

    def feed(self, _: bytes) -> list[Any]:
        return []

    def end(self) -> list[Any]:
        return []


class _Guarded:
    """Records a body that may contain secrets as one frame without them.

    If it cannot be parsed, only its size is recorded, and the title of a page.
    """

    def __init__(self, recording: "Recording", *, withheld: bool = False) -> None:
        self._recording = recording
        self._raw = b""
        self._size = 0
        self._withheld = withheld
        self._title = ""

    def feed(self, chunk: bytes) -> list[Any]:
        self._size += len(chunk)
        if self._withheld:
            return []
        self._raw += chunk[: LARGEST_BODY + 1]
        if self._size > LARGEST_BODY:
            self._title = self._recording.redactor.title(self._raw[:LARGEST_BODY])
            self._withheld, self._raw = True, b""
        return []

    def end(self) -> list[Any]:
        if self._withheld and self._size:
            return [(withheld(self._size, self._title), False, False)]
        return [(self._recording.redactor.body(self._raw), False, False)] if self._raw else []


_OPS = {2: "binary", 9: "ping", 10: "pong"}  # RFC 6455, 5.2; a text message has none
_CLOSE = 8
_NO_CLOSE_FRAME = 1006  # RFC 6455, 7.1.5


class HttpExchange:
    """The channels of one exchange.

    Heads are as in `wire.http_head.Head`, as received; `sent` and `by` show what was forwarded instead, and why. With
    `decoded`, the body is fed without the content coding that its head names, as in many foreign files.
    """

    def __init__(self, recording: "Recording") -> None:
        self._recording = recording
        self._secret = False
        self.request: Body | None = None
        self.response: Body | None = None
        self.sockets: dict[str, Body] = {}
        """The two directions of a WebSocket, by sender."""

    def open_request(
        self, t: int, head: Head, peer: str | None = None, changes: Fields | None = None, *, decoded: bool = False
    ) -> Body:
        """Open the request, whose head was read at `t` from `peer` (host and port); `changes` are `sent` and `by`."""
        opening = Opening(head, changes or {}, head["target"])
        self._secret = opening.secret
        self.request = Body(self._recording, "body", "" if decoded else opening.coding, secret=self._secret)
        self.request.open(t, "client", "request", ({"peer": peer} if peer else {}) | opening.fields)
        return self.request

    def open_response(
        self, t: int, head: Head, sender: str = "server", changes: Fields | None = None, *, decoded: bool = False
    ) -> Body:
        """Open the response, whose head was read at `t`; `sender` is `mcpspy` for a response of our own."""
        assert self.request
        opening = Opening(head, changes or {})
        secret = sender == "server" and (self._secret or opening.secret)
        self.response = Body(self._recording, opening.framing, "" if decoded else opening.coding, secret=secret)
        self.response.open(t, sender, "response", {"answers": self.request.number} | opening.fields)
        return self.response

    def whole_request(self, t: int, opening: Opening, peer: str | None, body: bytes) -> None:
        """Record a request that was read whole at `t`; `opening` must be plain, and `body` at most one piece long."""
        self.request = Body(self._recording, "body")
        self.request.whole(t, "client", "request", opening, {"peer": peer} if peer else {}, body)

    def whole_response(self, t: int, opening: Opening, body: bytes) -> None:
        """Record the response to a `whole_request` in the same way."""
        assert self.request
        self.response = Body(self._recording, "body")
        self.response.whole(t, "server", "response", opening, {"answers": self.request.number}, body)

    def open_socket(self, t: int) -> dict[str, Body]:
        """Open both directions of a WebSocket after its handshake."""
        assert self.request
        for sender in ("client", "server"):
            body = self.sockets[sender] = Body(self._recording, "message")
            body.open(t, sender, "ws", {"answers": self.request.number})
        return self.sockets

    def message(self, t: int, sender: str, opcode: int, payload: bytes, gated: Fields | None = None) -> None:
        """Record a complete WebSocket message that was read at `t` (RFC 6455, 5.2); `gated` as for `Body.frame`."""
        if opcode != _CLOSE:
            self.sockets[sender].frame(payload, t, op=_OPS.get(opcode), gated=gated)

    def close_socket(self, t: int, code: int | None, reason: str, closed_by: str) -> None:
        """End the WebSocket with the code and reason of its close frame; `closed_by` is the side that closed first."""
        broken = code == _NO_CLOSE_FRAME
        for sender in sorted(self.sockets, key=lambda sender: sender != closed_by):
            how = "eof" if not broken else "reset" if sender == closed_by else "abort"
            self.sockets[sender].end(t, how, None if broken else code, reason)

    def end(self, t: int, request: str, response: str) -> None:
        """End what is still open; `request` and `response` are the values of `close.how`.

        If a client disconnects before the head of a response, a response without a head is recorded, with the time of
        the disconnection.
        """
        if self.request:
            self.request.end(t, request)
            forwarded = self.request.ended == "eof" and not self.request.dropped
            if forwarded and response == "abort" and not (self.response or self.sockets):
                self.response = Body(self._recording, "body")
                self.response.open(t, "server", "response", {"answers": self.request.number})
        for body in (self.response, *self.sockets.values()):
            if body:
                body.end(t, response)


MOST_PENDING = 1 << 18
"""The most bytes of one exchange that are kept until it is recognised."""
_RECORD = 64  # bytes that are counted for each frame in addition to its content
_SIGN = 64  # bytes that are kept of a piece, because a sign of MCP may be split between two pieces


class Pending:
    """Keeps records in place of a capture's writer; `recording` returns the capture's recording when it is needed.

    Channels of the exchange are numbered from 1. In the capture they get numbers that no other exchange has.
    """

    def __init__(self, recording: "Callable[[], Recording]", path: str) -> None:
        self.path = path
        """The name of the capture in messages for the user; a description until the capture exists."""
        self._recording = recording
        self._kept: list[tuple[Any, ...]] | None = []  # None once the exchange is accepted or discarded
        self._size = 0
        self._tails: dict[int, bytes] = {}  # by channel: the end of a piece, if the next piece is missing
        self._capture: Recording | None = None
        self._numbers: dict[int, int] = {}

    def accept(self) -> None:
        """Accept the exchange as MCP: write the kept records, and write further ones at once."""
        if self._kept is None:
            return
        kept, self._kept = self._kept, None
        self._capture = self._recording()
        self.path = self._capture.path or self.path
        for method, *arguments in kept:
            method(self, *arguments)

    def discard(self) -> None:
        """Discard kept and further records, because the exchange is not MCP; no effect once it is accepted."""
        self._kept = None

    @property
    def discarded(self) -> bool:
        """Whether its records are not written any more."""
        return self._kept is None and self._sink is None

    def open(self, ch: int, t: int, sender: str, role: str, framing: str, rest: dict[str, Any] | None = None) -> None:
        """Record that a channel opens; this and the following methods are those of a writer."""
        if self._kept is not None:
            self._kept.append((Pending.open, ch, t, sender, role, framing, rest))
        elif self._sink and self._capture:
            self._numbers[ch] = self._capture.number()
            if rest and "answers" in rest:
                rest = rest | {"answers": self._numbers[rest["answers"]]}
            self._sink.open(self._numbers[ch], t, sender, role, framing, rest)

    def frame(self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: dict[str, Any] | None = None) -> None:
        """Record a frame, which may be the sign that the exchange is MCP."""
        if self._kept is not None:
            seen = self._tails.pop(ch, b"") + raw
            if more:
                self._tails[ch] = seen[-_SIGN:]
            if SIGN_OF_MCP.search(seen):
                self.accept()
        if self._kept is not None:
            self._keep(len(raw) + (len(str(rest)) if rest else 0), Pending.frame, ch, t, raw, more, cut, rest)
        elif self._sink:
            self._sink.frame(self._numbers[ch], t, raw, more, cut, rest)

    def whole(self, ch: int, t: int, sender: str, role: str, rest: dict[str, Any], raw: bytes) -> None:
        """Record a channel that opens and closes, with at most one frame."""
        self.open(ch, t, sender, role, "body", rest)
        if raw:
            self.frame(ch, t, raw, False, False)
        self.close(ch, t, "eof")

    def release(self, t: int, held: int, how: str, rest: dict[str, Any]) -> None:
        """Record the decision on a held frame; the gate numbers held frames, so the number is valid in the capture."""
        if self._kept is not None:
            self._keep(len(str(rest)), Pending.release, t, held, how, rest)
        elif self._sink:
            self._sink.release(t, held, how, rest)

    def gates(self, t: int, gates: list[dict[str, Any]], by: str) -> None:
        """Record the gates that are in force from now on."""
        if self._kept is not None:
            self._keep(len(str(gates)), Pending.gates, t, gates, by)
        elif self._sink:
            self._sink.gates(t, gates, by)

    def close(self, ch: int, t: int, how: str, rest: dict[str, Any] | None = None) -> None:
        """Record that a channel closes."""
        if self._kept is not None:
            self._kept.append((Pending.close, ch, t, how, rest))
        elif self._sink:
            self._sink.close(self._numbers[ch], t, how, rest)

    def _keep(self, size: int, *call: Any) -> None:
        """Keep a record whose content has that size; discard the exchange if there are too many bytes."""
        self._size += size + _RECORD
        if self._size > MOST_PENDING:
            self.discard()
        elif self._kept is not None:
            self._kept.append(call)

    @property
    def _sink(self) -> "Sink | None":
        return self._capture.sink if self._capture else None
