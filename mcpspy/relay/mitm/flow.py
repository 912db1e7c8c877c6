"""One HTTP exchange or WebSocket that passes the interceptor, recorded if it is MCP.

Nothing here knows mitmproxy: heads and chunks come in, with the time at which they were read.
"""

from collections.abc import Callable
from typing import Any

from mcpspy.recording.http_body import Body, Fields
from mcpspy.recording.http_exchange import HttpExchange
from mcpspy.recording.pending import Pending
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.heads import RawHeaders, every, recorded
from mcpspy.relay.mitm.origins import Origin
from mcpspy.wire.http_head import may_hold_messages, speaks_mcp

_SWITCHED = 101


class Flow:
    """The channels of one flow: request, response, and the two directions of a WebSocket.

    `head` is the request's but for its `headers`; `peer` the client's address; `report` gets a sentence for the user.
    The request's channel begins with its first use, but has the time at which the flow was made.
    """

    def __init__(
        self, origin: Origin, head: dict[str, Any], headers: RawHeaders, peer: str, report: Callable[[str], None]
    ) -> None:
        self.origin = origin
        self.pending = Pending(origin.recording, f"the capture of {origin.url}")
        self._mute = False  # the response cannot hold a message
        self._open = {"request", "response"}  # what has not ended yet
        self.recording = Recording(report, origin.clock, sink=self.pending)
        self.abandon: Callable[[], None] = lambda: None
        """Called before the end, for a gate to record what it still has."""
        self._exchange = HttpExchange(self.recording)
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.pending.accept()
        self._request = origin.now(), head | {"headers": fields}, peer

    def open_request(self, changes: Fields | None = None) -> Body:
        """Begin the request; `changes` are `sent` and `by` where its head is forwarded otherwise."""
        return self._exchange.request or self._exchange.open_request(*self._request, changes)

    @property
    def request(self) -> Body:
        """The body of the request."""
        return self.open_request()

    @property
    def response(self) -> Body | None:
        """The body of the response, once that has begun."""
        return self._exchange.response

    @property
    def sockets(self) -> dict[str, Body]:
        """The two directions of the WebSocket, by sender, once it has begun."""
        return self._exchange.sockets

    def respond(
        self,
        t: int,
        status: int,
        reason: str,
        headers: RawHeaders,
        sender: str = "server",
        changes: Fields | None = None,
    ) -> Body:
        """Begin the response, whose head came at `t`; `sender` is mcpspy for one that we made.

        `changes` are `sent` and `by` where the head is forwarded otherwise.
        """
        self.open_request()
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.pending.accept()
        self._mute = status != _SWITCHED and not may_hold_messages(every(headers, b"content-type"))
        self._discard_if_mute()
        return self._exchange.open_response(t, {"status": status, "reason": reason, "headers": fields}, sender, changes)

    @property
    def over(self) -> bool:
        """Whether all of it has ended."""
        return not self._open

    def request_ended(self, t: int) -> None:
        """The request has ended in order."""
        self.request.end(t, "eof")
        self._open.discard("request")
        self._discard_if_mute()

    def response_ended(self, t: int, *, switch: bool) -> None:
        """The response has ended in order; with `switch` the flow goes on as a WebSocket."""
        if self.response:
            self.response.end(t, "eof")
        self._open.discard("response")
        if switch:
            self._open.add("socket")
            self._exchange.open_socket(t)

    def refuse(self, t: int, status: int, reason: str, why: str) -> None:
        """We answered the request ourselves, and it is not forwarded."""
        self.respond(t, status, reason, [], "mcpspy").feed(f"mcpspy: {why}".encode(), t)
        self.end(t, "abort", "eof")

    def message(self, t: int, opcode: int, payload: bytes, *, from_client: bool) -> None:
        """A complete message of the WebSocket, read at `t` (RFC 6455, 5.2)."""
        self._exchange.message(t, "client" if from_client else "server", opcode, payload)

    def socket_ended(self, t: int, code: int, reason: str, *, by_client: bool) -> None:
        """The WebSocket was closed; each side got the close frame of the one that began."""
        self._exchange.close_socket(t, code, reason, "client" if by_client else "server")
        self._open.clear()

    def end(self, t: int, request: str, response: str) -> None:
        """End what is still open; `request` and `response` say how each ended (`close.how`)."""
        self.abandon()
        self.open_request()
        self._exchange.end(t, request, response)
        self._open.clear()

    def _discard_if_mute(self) -> None:
        if self._mute and "request" not in self._open:
            self.pending.discard()
