"""The addon for mitmproxy: it records flows, and passes them through the gate if there is one.

    client ── TLS with our certificate ──▶ mitmproxy ── TLS ──▶ server
                                              └─ Interceptor ─▶ Flow ─▶ one capture for each origin

While no gate is in force, every body is streamed, so that an event is forwarded when it arrives. The tee that gets each
chunk only schedules its recording in the event loop. So recording comes after forwarding, and a failure of it cannot
affect the flow (S-01, M-03). If a gate can come into force, `gated` decides what is streamed and what is collected.

In a reverse mode, the port takes the place of a server, so Host and Origin are checked (A-06). mitmproxy is configured
to keep the client's Host. An accepted request gets the Host of its server here, as mitmproxy would have set it. A
refused request is answered with 403.
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
from mcpspy.network.access import Access
from mcpspy.recording.http_exchange import Fields
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.heads import Head, every
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.local_replies import answer
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm import layers
from mcpspy.relay.mitm.allowlist import Hosts, names
from mcpspy.relay.mitm.flow import MOST_ORIGINS, Flow, Origin, Origins, Turns
from mcpspy.relay.mitm.gated import GatedFlow, GatedSocket
from mcpspy.relay.mitm.notices import Bugs, Notices, no_listening, no_tls
from mcpspy.secrets.redactor import unquoted
from mcpspy.wire.http_head import authority_of


def _reverse_refusal(guard: Guard, flow: Any) -> str | None:
    """Return why the request of a flow is refused; None if it is accepted, and then set the Host of its server."""
    request, server = flow.request, flow.server_conn
    headers = list(request.headers.fields)
    if request.authority and "host" not in request.headers:  # HTTP/2
        headers.append((b"host", request.authority.encode()))
    why = guard.refusal(headers)
    if why is None:
        request.host_header = authority_of("https" if server.tls else "http", *server.address[:2])
    return why


def _forbidden(request: Any, why: str) -> tuple[Head, bytes]:
    """Return the answer to a refused request, whose body has arrived."""
    is_json = request.method == "POST" and "json" in every(list(request.headers.fields), b"content-type").lower()
    return answer(403, why, json_request=(request.raw_content or b"null") if is_json else None)


_REFUSAL = "mcpspy refusal"  # key in a flow's metadata: why the flow is refused
_ANSWERED = "mcpspy answered"  # key in a flow's metadata: the response is our own
_NO_WAY = re.compile(r"Upstream proxy (\S+) refused HTTP CONNECT request: (\d+)")
_LOGIN = "it requires a user and a password (407): put them into https_proxy, and use --mode upstream without a URL"
_PLAIN = Access()


@dataclass(frozen=True, slots=True)
class MitmSettings:
    """The options of the user."""

    host: str
    port: int
    mode: str
    hosts: Hosts
    everything: bool
    access: Access = _PLAIN
    login: str | None = None
    """The user and the password for the proxy of the mode `upstream`."""


class Interceptor:
    """The hooks that mitmproxy calls by name; flows of hosts that are not allowed pass unseen."""

    def __init__(
        self,
        settings: MitmSettings,
        begin: Callable[[str, Clock], Recording],
        ready: Callable[[int | None], None],
        say: Callable[[str], None],
        gate: Callable[[Callable[[str], None]], LiveGate] | None,
    ) -> None:
        """`gate` returns the gate of an origin; its argument is called with notices."""
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
        """End every flow and every capture."""
        self.bugs.silent = True
        for turns in self._all():
            turns.finish()
            turns.flow.end(turns.flow.origin.now(), "shutdown", "shutdown")
        self._flows.clear()
        self._origins.end()

    def running(self) -> None:
        """Called when mitmproxy listens, or failed to."""
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
        """Called with the head of a request."""
        request = flow.request
        refusal = _reverse_refusal(self._guard, flow) if self._guard else None
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
        """Called at the end of a request."""
        gated = flow.metadata.get(layers.GATED)
        if gated and gated.collecting:
            if answer := await gated.request(flow):
                flow.metadata[_ANSWERED] = True
                flow.response = http.Response.make(*answer)
            return
        refusal, turns = flow.metadata.get(_REFUSAL), self._turns(flow)
        if refusal and turns:  # the request was not streamed, so its body is complete here
            turns.feed(flow.request.raw_content or b"", by_client=True)
        self._afterwards(flow, lambda recording, t: recording.request_ended(t))
        if refusal:
            flow.metadata[_ANSWERED] = True
            head, body = _forbidden(flow.request, refusal)
            flow.response = http.Response.make(403, body, head.headers)
            self._afterwards(flow, lambda recording, t: recording.refuse(t, 403, "Forbidden", refusal))

    def responseheaders(self, flow: Any) -> None:
        """Called with the head of a response."""
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
        """Called at the end of a response; it may be followed by a WebSocket."""
        gated, switch = flow.metadata.get(layers.GATED), flow.websocket is not None
        if gated and gated.collecting:
            await gated.response(flow)
        self._afterwards(flow, lambda recording, t: recording.response_ended(t, switch=switch))
        if gated and switch and self._turns(flow):
            wake = functools.partial(ctx.master.commands.call, "inject.websocket", flow, True, b"")
            _read_with_room(flow, gated.open_socket(wake))

    def error(self, flow: Any) -> None:
        """Called when a flow broke off: a peer has disconnected, or the server could not be reached."""
        error = flow.error.msg
        if refused := _NO_WAY.match(error):
            why = _LOGIN if refused[2] == "407" else f"it refuses to connect us ({refused[2]})"
            self._said.once("no way through the proxy", refused[1], f": {why}")
        left = not flow.client_conn.connected or "reset by client" in error
        cancelled = "reset by server (CANCEL)" in error  # then the stream to the client is reset, too

        def break_off(recording: Flow, t: int) -> None:
            if left:
                recording.end(t, "reset", "abort")
            elif recording.response or cancelled:
                recording.end(t, "abort", "reset")
            else:
                recording.refuse(t, 502, "Bad Gateway", unquoted(error))

        self._afterwards(flow, break_off)

    def client_disconnected(self, client: Any) -> None:
        """Called when a client has disconnected; its unfinished flows end."""
        for flow in list(self._flows.get(client.id, ())):
            self._later(client.id, flow, lambda recording, t: recording.end(t, "reset", "abort"))

    async def websocket_message(self, flow: Any) -> None:
        """Called with a message; clears mitmproxy's list, which would otherwise grow for ever."""
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
        """Called before a WebSocket is closed; only if there is a gate."""
        socket = flow.metadata[layers.GATED].socket
        if socket:
            await socket.closing(by_client=flow.websocket.closed_by_client)

    def tcp_message(self, flow: Any) -> None:
        """Called with bytes that are neither TLS nor HTTP; clears mitmproxy's list, which would otherwise grow."""
        flow.messages.clear()

    def websocket_end(self, flow: Any) -> None:
        """Called when a WebSocket was closed."""
        socket, gated = flow.websocket, flow.metadata.get(layers.GATED)
        if gated and gated.closed:
            self._afterwards(flow, lambda recording, t: recording.end(t, "abort", "abort"))
            return
        code, reason, by_client = socket.close_code, socket.close_reason or "", bool(socket.closed_by_client)
        self._afterwards(flow, lambda recording, t: recording.socket_ended(t, code, reason, by_client=by_client))

    def tls_clienthello(self, hello: Any) -> None:
        """Called when a client begins TLS; a server that --allow has only by another name or address passes unseen."""
        address = hello.context.server.address
        if address is None:  # the client uses us as its proxy
            return
        host, port = address[:2]
        name = names(self._mode, host, hello.client_hello.sni, "")[-1]
        if not self._settings.hosts.named(name, port=port):
            hello.ignore_connection = True
            self._said.once("passed unseen:", f"{name}:{port}", ", which --allow has only by another name or address")

    def tls_failed_client(self, handshake: Any) -> None:
        """Called when a client did not accept our certificate, disconnected, or does not use TLS."""
        client, server = handshake.conn, handshake.context.server
        host = client.sni or (server.address[0] if server.address else "the server")
        if news := no_tls(host, client.error, greeted=bool(handshake.ssl_conn)):
            self._said.once(*news)

    def tls_failed_server(self, handshake: Any) -> None:
        """Called when a server's certificate cannot be verified, or the server does not use TLS."""
        server = handshake.conn
        host, port = server.address[:2]
        advice = "give --ca FILE, or --insecure to accept any" if "erify" in server.error else "is it http:// instead?"
        self._said.once("no TLS with", f"{server.sni or host}:{port}", f" ({server.error}): {advice}")

    def server_connect_error(self, connecting: Any) -> None:
        """Called when a server cannot be reached."""
        host, port = connecting.server.address[:2]
        proxy = self._mode == "upstream"  # then only the proxy is connected to
        if proxy or self._settings.hosts.named(host, port=port):
            what = "cannot reach the proxy" if proxy else "cannot reach"
            self._said.once(what, f"{host}:{port}", f": {connecting.server.error}")

    def _origin(self, flow: Any) -> Origin | None:
        """Return the origin of a request; None if it is not allowed or there are too many origins."""
        request, server = flow.request, flow.server_conn
        host, port, secure = request.host, request.port, request.scheme == "https"
        if server.address:  # a tunnel, or a reverse mode
            (host, port), secure = server.address[:2], server.tls
        sni = flow.client_conn.sni if server.address and secure else None
        name = self._settings.hosts.named(*names(self._mode, host, sni, request.pretty_host), port=port)
        if name is None:
            return None
        scheme = "https" if secure else "http"
        url = f"{scheme}://{authority_of(scheme, name, port)}"
        origin = self._origins.at(url, lambda: {turns.flow.origin for turns in self._all()})
        if origin is None:
            self._said.once("too many servers at once:", str(MOST_ORIGINS), "; no other is recorded until one is idle")
        return origin

    def _all(self) -> list[Turns]:
        return [turns for flows in self._flows.values() for turns in flows.values()]

    def _turns(self, flow: Any) -> Turns | None:
        return self._flows.get(flow.client_conn.id, {}).get(flow.id)

    def _afterwards(self, flow: Any, record: Callable[[Flow, int], object]) -> None:
        """Record something about a flow after the forward; `record` gets the current time."""
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
    """Return a function that passes chunks on, and schedules their recording."""

    def pass_on(chunk: bytes) -> bytes:
        turns.feed(chunk, by_client=by_client)
        return chunk

    return pass_on


def _read_with_room(flow: Any, socket: GatedSocket) -> None:
    """Make mitmproxy read from a peer of a WebSocket only while the gate does not hold too much of it.

    mitmproxy has no setting for that, and its own buffers have no limit. The limit of asyncio's stream makes the peer
    wait. A client of the mode `local` has a stream of mitmproxy, which cannot be paused.
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
