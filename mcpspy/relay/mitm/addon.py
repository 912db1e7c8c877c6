"""What `mitm` does with the flows that pass mitmproxy: it records them, and asks the gate where there is one.

    client ── TLS with our certificate ──▶ mitmproxy ── TLS ──▶ server
                                              └─ Interceptor ─▶ Flow ─▶ one capture for each origin

While no gate is in force every body is streamed, so that an event goes on when it comes; the tee that sees a chunk on
its way only asks the event loop to record it afterwards, so recording comes after the forward, and what fails in it
cannot reach the flow (S-01, M-03). Where a gate may come into force, `gated` says what is streamed and what waits.
"""

import asyncio
import functools
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mitmproxy import ctx, http  # type: ignore[import-not-found]

from mcpspy.errors import UsageError
from mcpspy.recording.http_body import Fields
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm import layers, reverse
from mcpspy.relay.mitm.allowlist import Hosts, names
from mcpspy.relay.mitm.flow import Flow
from mcpspy.relay.mitm.gated import GatedFlow
from mcpspy.relay.mitm.gated_socket import GatedSocket
from mcpspy.relay.mitm.notices import Bugs, Notices, no_listening, no_tls
from mcpspy.relay.mitm.origins import MOST, Origin, Origins
from mcpspy.relay.mitm.queue import Turns
from mcpspy.secrets.redactor import unquoted
from mcpspy.wire.http_head import authority_of

_REFUSAL = "mcpspy refusal"  # in a flow's metadata: why it may not pass
_ANSWERED = "mcpspy answered"  # the response is made on this side
_NO_WAY = re.compile(r"Upstream proxy (\S+) refused HTTP CONNECT request: (\d+)")


@dataclass(frozen=True, slots=True)
class MitmSettings:
    """What the user asked for; `ca` names a file of certificates to trust besides the system's."""

    host: str
    port: int
    mode: str
    hosts: Hosts
    everything: bool
    ca: str | None
    insecure: bool


class Interceptor:
    """What mitmproxy calls, by name, while flows pass; flows of hosts that are not allowed pass unseen."""

    def __init__(
        self,
        settings: MitmSettings,
        begin: Callable[[str, Clock], Recording],
        ready: Callable[[int | None], None],
        say: Callable[[str], None],
        gate: Callable[[Callable[[str], None]], LiveGate] | None,
    ) -> None:
        """`gate` makes the gate of an origin, which reports to its argument."""
        self._settings = settings
        self._mode = settings.mode.partition(":")[0]
        self._guard = Guard(settings.host, settings.hosts.globs, "--allow") if self._mode == "reverse" else None
        self._ready = ready
        self._said = Notices(say)
        once = functools.partial(self._said.once, "a gate cannot act:")
        self._origins = Origins(begin, functools.partial(gate, once) if gate else None)
        self._flows: defaultdict[str, dict[str, Turns]] = defaultdict(dict)  # by mitmproxy's ids of client and flow
        self._loop = asyncio.get_running_loop()
        self.bugs = Bugs(self._said)
        self.failure: UsageError | None = None

    def end(self) -> None:
        """End every flow, and every capture."""
        self.bugs.silent = True
        for turns in self._all():
            turns.finish()
            turns.flow.end(turns.flow.origin.now(), "shutdown", "shutdown")
        self._flows.clear()
        self._origins.end()

    def running(self) -> None:
        """It listens, or could not."""
        servers = list(ctx.master.addons.get("proxyserver").servers)
        for server in servers:
            if server.last_exception is not None:
                self.failure = UsageError(
                    no_listening(self._settings.host, self._settings.port, self._settings.mode, server.last_exception)
                )
                ctx.master.shutdown()
                return
        addresses = [address for server in servers for address in server.listen_addrs]
        self._ready(addresses[0][1] if addresses else None)
        self.bugs.silent = False

    def requestheaders(self, flow: Any) -> None:
        """The head of a request has come."""
        request = flow.request
        refusal = reverse.refusal(self._guard, flow) if self._guard else None
        request.stream = refusal is None
        flow.metadata[_REFUSAL] = refusal
        origin = self._origin(flow)
        if origin is None:
            return
        head = {"method": request.method, "target": request.path, "version": request.http_version.rpartition("/")[2]}
        peer = "{}:{}".format(*flow.client_conn.peername)
        recording = Flow(origin, head, list(request.headers.fields), peer, self._unrecorded)
        if self._settings.everything:
            recording.pending.accept()
        turns = self._flows[flow.client_conn.id][flow.id] = Turns(recording, self._loop.call_soon)
        stream = None
        if refusal is None:
            if origin.gate:
                gated = flow.metadata[layers.GATED] = self._gated(origin.gate, flow, turns, peer)
                stream = gated.collect_request(request)
            request.stream = tee(turns, by_client=True) if stream is None else stream
        if stream is None:
            recording.open_request()
        if flow.error:  # mitmproxy refuses it
            error = flow.error.msg
            self._afterwards(flow, lambda recording, t: recording.refuse(t, 400, "Bad Request", unquoted(error)))

    def _gated(self, gate: LiveGate, flow: Any, turns: Turns, peer: str) -> GatedFlow:
        headers, record = list(flow.request.headers.fields), functools.partial(self._afterwards, flow)
        return GatedFlow(gate, turns, headers, peer, functools.partial(self._said.once, "a gate cannot act:"), record)

    def _unrecorded(self, sentence: str) -> None:
        self._said.once("of one exchange,", sentence, "; others are recorded")

    async def request(self, flow: Any) -> None:
        """The request has ended."""
        gated = flow.metadata.get(layers.GATED)
        if gated and gated.collecting:
            if answer := await gated.request(flow):
                flow.metadata[_ANSWERED] = True
                flow.response = http.Response.make(*answer)
            return
        refusal, turns = flow.metadata.get(_REFUSAL), self._turns(flow)
        if refusal and turns:  # it was not streamed, so that its body is here
            turns.feed(flow.request.raw_content or b"", by_client=True)
        self._afterwards(flow, lambda recording, t: recording.request_ended(t))
        if refusal:
            flow.metadata[_ANSWERED] = True
            head, body = reverse.forbidden(flow.request, refusal)
            flow.response = http.Response.make(403, body, head.headers)
            self._afterwards(flow, lambda recording, t: recording.refuse(t, 403, "Forbidden", refusal))

    def responseheaders(self, flow: Any) -> None:
        """The head of a response has come."""
        if flow.metadata.get(_ANSWERED):
            return
        response = flow.response
        response.stream = True
        turns = self._turns(flow)
        if turns is None:
            return
        headers, status, reason = list(response.headers.fields), response.status_code, response.reason or ""
        came = turns.flow.origin.now()

        def begin(changes: Fields | None = None) -> None:
            turns.flow.respond(came, status, reason, headers, changes=changes)

        gated = flow.metadata.get(layers.GATED)
        stream = gated.take_response(flow.request, response, begin) if gated else None
        if stream is None:
            turns.add(lambda _flow, _t: begin())
            stream = tee(turns, by_client=False)
        response.stream = stream

    async def response(self, flow: Any) -> None:
        """The response has ended; a WebSocket may go on."""
        gated, switch = flow.metadata.get(layers.GATED), flow.websocket is not None
        if gated and gated.collecting:
            await gated.response(flow)
        self._afterwards(flow, lambda recording, t: recording.response_ended(t, switch=switch))
        if gated and switch and self._turns(flow):
            wake = functools.partial(ctx.master.commands.call, "inject.websocket", flow, True, b"")
            _read_with_room(flow, gated.open_socket(wake))

    def error(self, flow: Any) -> None:
        """The flow broke off: the client has left, the server has, or it could not be reached."""
        error = flow.error.msg
        if refused := _NO_WAY.match(error):
            self._said.once("no way through the proxy", refused[1], f": it refuses to connect us ({refused[2]})")
        left = not flow.client_conn.connected or "reset by client" in error
        cancelled = "reset by server (CANCEL)" in error  # then the client's stream is, too

        def break_off(recording: Flow, t: int) -> None:
            if left:
                recording.end(t, "reset", "abort")
            elif recording.response or cancelled:
                recording.end(t, "abort", "reset")
            else:
                recording.refuse(t, 502, "Bad Gateway", unquoted(error))

        self._afterwards(flow, break_off)

    def client_disconnected(self, client: Any) -> None:
        """A client has gone, and with it what was left of its flows."""
        for flow in list(self._flows.get(client.id, ())):
            self._later(client.id, flow, lambda recording, t: recording.end(t, "reset", "abort"))

    async def websocket_message(self, flow: Any) -> None:
        """A message has come; mitmproxy would keep all of them for ever."""
        message = flow.websocket.messages[-1]
        flow.websocket.messages.clear()
        opcode, payload, from_client = int(message.type), message.content, message.from_client
        gated = flow.metadata.get(layers.GATED)
        if gated and gated.socket:
            if not await gated.socket.message(opcode, payload, from_client=from_client):
                message.drop()
            return
        self._afterwards(flow, lambda recording, t: recording.message(t, opcode, payload, from_client=from_client))

    async def websocket_closing(self, flow: Any) -> None:
        """The WebSocket is about to be closed; called where there is a gate."""
        socket = flow.metadata[layers.GATED].socket
        if socket:
            await socket.closing(by_client=flow.websocket.closed_by_client)

    def tcp_message(self, flow: Any) -> None:
        """Bytes that are neither TLS nor HTTP have come; mitmproxy would keep all of them for ever."""
        flow.messages.clear()

    def websocket_end(self, flow: Any) -> None:
        """The WebSocket was closed."""
        socket, gated = flow.websocket, flow.metadata.get(layers.GATED)
        if gated and gated.closed:
            self._afterwards(flow, lambda recording, t: recording.end(t, "abort", "abort"))
            return
        code, reason, by_client = socket.close_code, socket.close_reason or "", bool(socket.closed_by_client)
        self._afterwards(flow, lambda recording, t: recording.socket_ended(t, code, reason, by_client=by_client))

    def tls_clienthello(self, hello: Any) -> None:
        """A client begins TLS; mitmproxy would let one in by any name or address of the server."""
        address = hello.context.server.address
        if address is None:  # it is with us as a proxy
            return
        host, port = address[:2]
        name = names(self._mode, host, hello.client_hello.sni, "")[-1]
        if not self._settings.hosts.named(name, port=port):
            hello.ignore_connection = True
            self._said.once("passed unseen:", f"{name}:{port}", ", which --allow has only by another name or address")

    def tls_failed_client(self, handshake: Any) -> None:
        """A client did not accept our certificate, left, or speaks no TLS."""
        client, server = handshake.conn, handshake.context.server
        host = client.sni or (server.address[0] if server.address else "the server")
        if news := no_tls(host, client.error, greeted=bool(handshake.ssl_conn)):
            self._said.once(*news)

    def tls_failed_server(self, handshake: Any) -> None:
        """A server's certificate cannot be verified, or it speaks no TLS."""
        server = handshake.conn
        host, port = server.address[:2]
        advice = "give --ca FILE, or --insecure to accept any" if "erify" in server.error else "is it http:// instead?"
        self._said.once("no TLS with", f"{server.sni or host}:{port}", f" ({server.error}): {advice}")

    def server_connect_error(self, connecting: Any) -> None:
        """A server cannot be reached."""
        host, port = connecting.server.address[:2]
        proxy = self._mode == "upstream"  # which alone is dialled then
        if proxy or self._settings.hosts.named(host, port=port):
            what = "cannot reach the proxy" if proxy else "cannot reach"
            self._said.once(what, f"{host}:{port}", f": {connecting.server.error}")

    def _origin(self, flow: Any) -> Origin | None:
        """Where a request goes, if that is allowed."""
        request, server = flow.request, flow.server_conn
        host, port, secure = request.host, request.port, request.scheme == "https"
        if server.address:  # of a tunnel, or of a reverse mode
            (host, port), secure = server.address[:2], server.tls
        sni = flow.client_conn.sni if server.address and secure else None
        name = self._settings.hosts.named(*names(self._mode, host, sni, request.pretty_host), port=port)
        if name is None:
            return None
        scheme = "https" if secure else "http"
        url = f"{scheme}://{authority_of(scheme, name, port)}"
        origin = self._origins.at(url, lambda: {turns.flow.origin for turns in self._all()})
        if origin is None:
            self._said.once("too many servers at once:", str(MOST), "; no other is recorded until one is idle")
        return origin

    def _all(self) -> list[Turns]:
        return [turns for flows in self._flows.values() for turns in flows.values()]

    def _turns(self, flow: Any) -> Turns | None:
        return self._flows.get(flow.client_conn.id, {}).get(flow.id)

    def _afterwards(self, flow: Any, record: Callable[[Flow, int], object]) -> None:
        """Record something of a flow when what caused it has been forwarded; `record` gets the time of now."""
        if self._turns(flow):
            self._later(flow.client_conn.id, flow.id, record)

    def _later(self, client: str, flow: str, record: Callable[[Flow, int], object]) -> None:
        flows = self._flows[client]

        def run(recording: Flow, t: int) -> None:
            record(recording, t)
            if recording.over:
                del flows[flow]
                if not flows:
                    del self._flows[client]

        flows[flow].add(run)


def tee(turns: Turns, *, by_client: bool) -> Callable[[bytes], bytes]:
    """Passes chunks on, and has them recorded when they are gone."""

    def pass_on(chunk: bytes) -> bytes:
        turns.feed(chunk, by_client=by_client)
        return chunk

    return pass_on


def _read_with_room(flow: Any, socket: GatedSocket) -> None:
    """Have mitmproxy read from a peer of a WebSocket only while the gate does not hold too much of it.

    mitmproxy has no setting for that, and no buffer of its own that is limited. The peer itself waits in the end: the
    stream of asyncio has a limit. A client of the mode `local` has a stream of mitmproxy's, which is always read.
    """
    handler = ctx.master.addons.get("proxyserver").connections.get(flow.client_conn.id)
    for sender, connection in (("client", flow.client_conn), ("server", flow.server_conn)):
        stream = handler.transports.get(connection) if handler else None
        if stream and isinstance(stream.reader, asyncio.StreamReader):
            room = functools.partial(socket.room, sender)
            stream.reader.read = functools.partial(_read, stream.reader.read, room)  # type: ignore[method-assign]


async def _read(read: Callable[[int], Awaitable[bytes]], room: Callable[[], Awaitable[None]], size: int) -> bytes:
    await room()
    return await read(size)
