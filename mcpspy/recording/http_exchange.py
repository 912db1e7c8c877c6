"""Record one HTTP exchange: the request, its response, and the WebSocket that it may become.

This module decides how bodies are recorded, for `proxy`, `mitm` and `import` alike; `http_body` records them:

- Framing: a response of type text/event-stream is split into events; any other body is one frame.
- Content coding: a body is recorded decoded, according to the Content-Encoding of its own head.
- Secrecy: a form and a body of an OAuth endpoint are recorded without their secrets, or withheld if they cannot be
  parsed. A page (HTML) is treated in the same way: it may contain secrets in forms and scripts, cannot be redacted
  reliably, and is never MCP. A response that we made ourselves is recorded whole.
"""

from typing import TYPE_CHECKING

from mcpspy.recording.http_body import Body, Fields
from mcpspy.recording.opening import Opening
from mcpspy.wire.http_head import Head

if TYPE_CHECKING:
    from mcpspy.recording.recording import Recording

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
