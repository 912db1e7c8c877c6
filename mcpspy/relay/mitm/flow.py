"""One HTTP exchange or WebSocket that passes the interceptor, recorded if it is MCP.

This module does not know mitmproxy. It gets heads and chunks, with the times at which they were read.
"""

from collections.abc import Callable
from typing import Any

from mcpspy.recording.http_exchange import Body, Fields, HttpExchange, Pending
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.heads import RawHeaders, every, recorded
from mcpspy.relay.mitm.origins import Origin
from mcpspy.wire.http_head import may_hold_messages, speaks_mcp

_SWITCHED = 101


class Flow:
    """The channels of one flow: request, response, and the two directions of a WebSocket.

    `head` is the request's head without its `headers`, `peer` the client's address. `report` gets a sentence for the
    user. The request's channel opens with its first use; its time is that at which the flow was created.
    """

    def __init__(
        self, origin: Origin, head: dict[str, Any], headers: RawHeaders, peer: str, report: Callable[[str], None]
    ) -> None:
        self.origin = origin
        self.pending = Pending(origin.recording, f"the capture of {origin.url}")
        self._mute = False  # whether the response cannot contain a message
        self._open = {"request", "response"}  # the parts that have not ended yet
        self.recording = Recording(report, origin.clock, sink=self.pending)
        self.abandon: Callable[[], None] = lambda: None
        """Called before the end, so that a gate records what it still holds."""
        self._exchange = HttpExchange(self.recording)
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.pending.accept()
        self._request = origin.now(), head | {"headers": fields}, peer

    def open_request(self, changes: Fields | None = None) -> Body:
        """Open the channel of the request; `changes` are `sent` and `by` if its head is forwarded changed."""
        return self._exchange.request or self._exchange.open_request(*self._request, changes)

    @property
    def request(self) -> Body:
        """The channel of the request."""
        return self.open_request()

    @property
    def response(self) -> Body | None:
        """The channel of the response; None before it begins."""
        return self._exchange.response

    @property
    def sockets(self) -> dict[str, Body]:
        """The two directions of the WebSocket, by sender; empty before it begins."""
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
        """Open the channel of the response, whose head was read at `t`; `sender` is `mcpspy` for our own response.

        `changes` are `sent` and `by` if the head is forwarded changed.
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
        """Whether all parts have ended."""
        return not self._open

    def request_ended(self, t: int) -> None:
        """Record that the request ended normally."""
        self.request.end(t, "eof")
        self._open.discard("request")
        self._discard_if_mute()

    def response_ended(self, t: int, *, switch: bool) -> None:
        """Record that the response ended normally; with `switch` the flow continues as a WebSocket."""
        if self.response:
            self.response.end(t, "eof")
        self._open.discard("response")
        if switch:
            self._open.add("socket")
            self._exchange.open_socket(t)

    def refuse(self, t: int, status: int, reason: str, why: str) -> None:
        """Record that we answered the request ourselves and did not forward it."""
        self.respond(t, status, reason, [], "mcpspy").feed(f"mcpspy: {why}".encode(), t)
        self.end(t, "abort", "eof")

    def message(self, t: int, opcode: int, payload: bytes, *, from_client: bool) -> None:
        """Record a complete message of the WebSocket, read at `t` (RFC 6455, 5.2)."""
        self._exchange.message(t, "client" if from_client else "server", opcode, payload)

    def socket_ended(self, t: int, code: int, reason: str, *, by_client: bool) -> None:
        """Record that the WebSocket was closed; both sides got the close frame of the side that closed first."""
        self._exchange.close_socket(t, code, reason, "client" if by_client else "server")
        self._open.clear()

    def end(self, t: int, request: str, response: str) -> None:
        """End what is still open; `request` and `response` are the values of `close.how`."""
        self.abandon()
        self.open_request()
        self._exchange.end(t, request, response)
        self._open.clear()

    def _discard_if_mute(self) -> None:
        if self._mute and "request" not in self._open:
            self.pending.discard()
