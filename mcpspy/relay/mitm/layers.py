"""Changed layers of mitmproxy; these layers handle bytes and events, without sockets.

Without a gate only `ServerError` is used. With one:

- mitmproxy either collects a body, of any length, or streams it. `GatedStream` starts to stream a body that becomes too
  long for a decision. It tells the gate if a client disconnects while a hook runs, and ends a stream if a verdict
  requires that.
- mitmproxy forwards a WebSocket message when its hook returns, or never. `GatedSocketLayer` sends messages in the order
  of the gate, also later ones, and calls for all held messages before it closes the connection.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import wsproto.events  # type: ignore[import-not-found]
from mitmproxy import flow, http, websocket  # type: ignore[import-not-found]
from mitmproxy.proxy import commands, events  # type: ignore[import-not-found]
from mitmproxy.proxy.layers import http as http_layers  # type: ignore[import-not-found]
from mitmproxy.proxy.layers import websocket as socket_layers
from mitmproxy.proxy.layers.http import (  # type: ignore[import-not-found]
    HttpStream,
    RequestData,
    RequestProtocolError,
    ResponseData,
    ResponseProtocolError,
    SendHttp,
)
from mitmproxy.proxy.layers.http._http2 import Http2Client  # type: ignore[import-not-found]
from mitmproxy.proxy.layers.websocket import (  # type: ignore[import-not-found]
    Fragmentizer,
    WebsocketEndHook,
    WebsocketLayer,
    WebsocketMessageHook,
    WebSocketMessageInjected,
)
from wsproto import ConnectionState
from wsproto.frame_protocol import Opcode  # type: ignore[import-not-found]

from mcpspy.gate.gate import LIMIT
from mcpspy.relay.mitm.gated import GatedFlow

GATED = "mcpspy gated"
"""Key in a flow's metadata: its `GatedFlow`."""

_GOING_AWAY = 1001  # RFC 6455, 7.4.1

Commands = Iterator[Any]


class ServerError(ResponseProtocolError):  # type: ignore[misc]
    """A server's fault on HTTP/2; mitmproxy's message names the client even if the server reset the stream."""

    def __init__(self, stream_id: int, message: str, *code: object, **named: object) -> None:
        super().__init__(stream_id, message.replace("reset by client", "reset by server"), *code, **named)


class GatedStream(HttpStream):  # type: ignore[misc]
    """A request and its response, with the gate."""

    def check_body_size(self, request: bool) -> Any:
        """Called before a body begins, and with each chunk of a body that is collected."""
        gated = self._gated()
        if gated and gated.collecting and len(self._collected(request)) > LIMIT:
            yield from self._go_on(gated, request)
            return False
        return (yield from super().check_body_size(request))

    def handle_event(self, event: Any) -> Commands:
        """Called with each event; mitmproxy queues the event if a hook runs."""
        gated = self._gated()
        if gated and self._paused and isinstance(event, RequestProtocolError):
            gated.left()
        yield from super().handle_event(event)

    def _handle_event(self, event: Any) -> Commands:
        gated = self._gated()
        if gated and isinstance(event, (RequestProtocolError, ResponseProtocolError)):
            yield from self._break_off(gated, by_server=isinstance(event, ResponseProtocolError))
        yield from super()._handle_event(event)
        if gated and gated.closed and self.flow.live:
            gated.close(self.flow)
            error = RequestProtocolError(self.stream_id, flow.Error.KILLED_MESSAGE)
            yield from self.handle_protocol_error(error)

    def _gated(self) -> GatedFlow | None:
        seen = getattr(self, "flow", None)
        return seen.metadata.get(GATED) if seen else None

    def _collected(self, request: bool) -> Any:
        return self.request_body_buf if request else self.response_body_buf

    def _go_on(self, gated: GatedFlow, request: bool, *, undecided: bool = True) -> Commands:
        """Start to stream a body that was collected until now."""
        passed = bytes(self._collected(request))
        self._collected(request).clear()
        message = self.flow.request if request else self.flow.response
        message.stream = gated.let_pass(undecided=undecided)
        yield from self.start_request_stream() if request else self.start_response_stream()
        if passed:
            yield from self.handle_event((RequestData if request else ResponseData)(self.stream_id, passed))

    def _break_off(self, gated: GatedFlow, *, by_server: bool) -> Commands:
        """Handle a peer that broke off: forward and record what was received of a body."""
        if gated.collecting:
            request = self.client_state == self.state_consume_request_body
            if by_server and not request:
                yield from self._go_on(gated, request, undecided=False)
            else:
                gated.let_pass(undecided=False)(bytes(self._collected(request)))
        elif by_server and gated.events:
            for chunk in gated.events.rest():
                yield SendHttp(ResponseData(self.stream_id, chunk), self.context.client)


@dataclass
class WebsocketClosingHook(commands.StartHook):  # type: ignore[misc]
    """Called before a WebSocket is closed."""

    flow: http.HTTPFlow


class GatedSocketLayer(WebsocketLayer):  # type: ignore[misc]
    """A WebSocket after its handshake, with the gate."""

    def relay_messages(self, event: Any) -> Commands:
        """Called with each event of the connection, and when the gate has something to send."""
        gated = self.flow.metadata.get(GATED)
        if gated is None:
            yield from super().relay_messages(event)
            return
        if not isinstance(event, WebSocketMessageInjected):
            by_client = event.connection == self.context.client
            source, sink = (self.client_ws, self.server_ws) if by_client else (self.server_ws, self.client_ws)
            source.receive_data(event.data if isinstance(event, events.DataReceived) else None)
            for received in source.events():
                if not self.flow.live:
                    return
                if isinstance(received, wsproto.events.Message):
                    yield from self._message(received, source, sink, by_client=by_client)
                elif isinstance(received, (wsproto.events.Ping, wsproto.events.Pong)):
                    yield sink.send2(received)
                elif isinstance(received, wsproto.events.CloseConnection):
                    yield from self._closing(gated, received, by_client=by_client)
        if self.flow.live:
            yield from self._send(gated)
            if gated.socket and gated.socket.closed:  # messages after that verdict have been recorded
                self.flow.websocket.close_code = None
                yield from self._end(wsproto.events.CloseConnection(_GOING_AWAY))

    def _message(self, part: Any, source: Any, sink: Any, *, by_client: bool) -> Commands:
        """Handle a message, or a part of one."""
        text = isinstance(part.data, str)
        source.frame_buf[-1] += part.data.encode() if text else part.data
        if part.message_finished:
            parts, source.frame_buf = source.frame_buf, [b""]
            kind = Opcode.TEXT if text else Opcode.BINARY
            message = websocket.WebSocketMessage(kind, by_client, b"".join(parts))
            self.flow.websocket.messages.append(message)
            yield WebsocketMessageHook(self.flow)
            if not message.dropped:
                for forwarded in Fragmentizer(parts, text)(message.content):
                    yield sink.send2(forwarded)
            yield from self._send(self.flow.metadata[GATED])
        elif part.frame_finished:
            source.frame_buf.append(b"")

    def _send(self, gated: GatedFlow) -> Commands:
        """Send the messages that the gate has released, each in one frame."""
        socket = gated.socket
        while socket and socket.out:
            to_client, opcode, payload = socket.out.pop(0)
            sink = self.client_ws if to_client else self.server_ws
            text = opcode == Opcode.TEXT
            if sink.state is ConnectionState.OPEN:
                for part in Fragmentizer([payload], text)(payload):
                    yield sink.send2(part)

    def _closing(self, gated: GatedFlow, closing: Any, *, by_client: bool) -> Commands:
        """Handle a side that closes the connection or breaks off."""
        state = self.flow.websocket
        state.timestamp_end = time.time()
        state.closed_by_client, state.close_code, state.close_reason = by_client, closing.code, closing.reason
        yield WebsocketClosingHook(self.flow)
        yield from self._send(gated)
        yield from self._end(closing)

    def _end(self, closing: Any) -> Commands:
        for socket in (self.server_ws, self.client_ws):
            if socket.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
                yield socket.send2(closing)
        for socket in (self.server_ws, self.client_ws):
            yield commands.CloseConnection(socket.conn)
        yield WebsocketEndHook(self.flow)
        self.flow.live = False
        self._handle_event = self.done


def install(*, gated: bool) -> None:
    """Make mitmproxy use these layers; those for a gate only if `gated`."""
    Http2Client.ReceiveProtocolError = ServerError
    if gated:
        http_layers.HttpStream = GatedStream
        socket_layers.WebsocketLayer = GatedSocketLayer
