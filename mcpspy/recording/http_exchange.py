"""One HTTP exchange on its way into a capture: the request, its response, and the WebSocket that it may become.

How a body is recorded is decided here, for `proxy`, `mitm` and `import` alike; `http_body` carries it out:

- Framing: a response of type text/event-stream is split into events, any other body is one frame.
- Content coding: a body is recorded decoded, by the Content-Encoding of its own head.
- Secrecy: a body of an OAuth endpoint and a form are recorded without their secrets, or withheld where they cannot be
  parsed. So is a page (HTML): it may hold secrets in forms and scripts, cannot be redacted reliably, and is never MCP.
  A response that we made ourselves is recorded whole.
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

    Heads are as `wire.http_head.Head` describes them, as received; `sent` and `by` are what was forwarded instead and
    why. With `decoded` the body is fed without the content coding that its head names, as in many foreign files.
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
        """Begin the request, whose head came at `t` from `peer`, host and port; `changes` are `sent` and `by`."""
        opening = Opening(head, changes or {}, head["target"])
        self._secret = opening.secret
        self.request = Body(self._recording, "body", "" if decoded else opening.coding, secret=self._secret)
        self.request.open(t, "client", "request", ({"peer": peer} if peer else {}) | opening.fields)
        return self.request

    def open_response(
        self, t: int, head: Head, sender: str = "server", changes: Fields | None = None, *, decoded: bool = False
    ) -> Body:
        """Begin the response, whose head came at `t`; `sender` is mcpspy for one that was made on this side."""
        assert self.request
        opening = Opening(head, changes or {})
        secret = sender == "server" and (self._secret or opening.secret)
        self.response = Body(self._recording, opening.framing, "" if decoded else opening.coding, secret=secret)
        self.response.open(t, sender, "response", {"answers": self.request.number} | opening.fields)
        return self.response

    def whole_request(self, t: int, opening: Opening, peer: str | None, body: bytes) -> None:
        """Record a request that came whole at `t`; `opening` is plain, `body` at most a piece long."""
        self.request = Body(self._recording, "body")
        self.request.whole(t, "client", "request", opening, {"peer": peer} if peer else {}, body)

    def whole_response(self, t: int, opening: Opening, body: bytes) -> None:
        """The same for the response of the server to a request that was recorded so."""
        assert self.request
        self.response = Body(self._recording, "body")
        self.response.whole(t, "server", "response", opening, {"answers": self.request.number}, body)

    def open_socket(self, t: int) -> dict[str, Body]:
        """Begin both directions of a WebSocket after its handshake."""
        assert self.request
        for sender in ("client", "server"):
            body = self.sockets[sender] = Body(self._recording, "message")
            body.open(t, sender, "ws", {"answers": self.request.number})
        return self.sockets

    def message(self, t: int, sender: str, opcode: int, payload: bytes, gated: Fields | None = None) -> None:
        """Record a complete message of the WebSocket that came at `t` (RFC 6455, 5.2); `gated` as of `Body.frame`."""
        if opcode != _CLOSE:
            self.sockets[sender].frame(payload, t, op=_OPS.get(opcode), gated=gated)

    def close_socket(self, t: int, code: int | None, reason: str, closed_by: str) -> None:
        """End the WebSocket with the code and reason of its close frame; `closed_by` is the sender that began."""
        broken = code == _NO_CLOSE_FRAME
        for sender in sorted(self.sockets, key=lambda sender: sender != closed_by):
            how = "eof" if not broken else "reset" if sender == closed_by else "abort"
            self.sockets[sender].end(t, how, None if broken else code, reason)

    def end(self, t: int, request: str, response: str) -> None:
        """End what is still open; `request` and `response` say how each ended (`close.how`).

        A client that leaves before the head of a response leaves a response without a head: so it is seen when it left.
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
