"""The relay of `mitm`: mitmproxy between clients and the servers that they believe to dial, and its records.

    client ── TLS with our certificate ──▶ mitmproxy ── TLS ──▶ server
                                              └─ Interceptor ─▶ Flow ─▶ one capture for each origin

The only module that imports mitmproxy (the extra `mcpspy[mitm]`; 11 on Python 3.11, 12 and later elsewhere). It takes
of it what forwards: no script, view or store. Every body is streamed, so that an event goes on when it comes; the tee
that sees a chunk on its way only asks the event loop to record it afterwards, so recording comes after the forward, and
what fails in it cannot reach the flow (S-01, M-03).
"""

import asyncio
import errno
import logging
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mitmproxy.proxy.server  # type: ignore[import-not-found]
from mitmproxy import certs, ctx
from mitmproxy.addons import core, disable_h2c, next_layer, proxyserver, tlsconfig  # type: ignore[import-not-found]
from mitmproxy.master import Master  # type: ignore[import-not-found]
from mitmproxy.net.check import is_valid_host  # type: ignore[import-not-found]
from mitmproxy.options import Options  # type: ignore[import-not-found]
from mitmproxy.proxy.layers.http import ResponseProtocolError  # type: ignore[import-not-found]
from mitmproxy.proxy.layers.http._http2 import Http2Client  # type: ignore[import-not-found]
from mitmproxy.proxy.mode_specs import ProxyMode  # type: ignore[import-not-found]

from mcpspy.authority import BASENAME, Authority, write_bundle
from mcpspy.capture.writer import Writer
from mcpspy.errors import UsageError
from mcpspy.ports import holder
from mcpspy.redact import shown
from mcpspy.relay.flow import Flow, Origin
from mcpspy.relay.hosts import Hosts

MODES = ("regular", "upstream", "reverse", "socks5", "local")
_FOR_EVER = 10 * 365 * 86400  # seconds that a connection may be idle: streams are (H-06)
_KEY_SIZE = 2048
_PORTS = {"http": 80, "https": 443}
_QUOTATION = re.compile(r"""(?<!\w)b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")  # a `repr` of bytes or text
_REFUSAL = re.compile(r"alert ([a-z ]*certificate[a-z ]*|unknown ca)")  # RFC 8446, 6.2; in the words of OpenSSL
_REASON = re.compile(r"'([^']*)'\)\]")  # the last word of an error of OpenSSL


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for; `ca` names a file of certificates to trust besides the system's."""

    host: str
    port: int
    mode: str
    hosts: Hosts
    everything: bool
    ca: str | None
    insecure: bool


def make(authority: Authority) -> None:
    """Make the authority, unless it exists, with tight modes. Raises UsageError for one that cannot be used."""
    folder = Path(authority.folder)
    try:
        authority.protect()
        if not authority.exists():
            with TemporaryDirectory(dir=folder) as draft:
                certs.CertStore.create_store(Path(draft), BASENAME, _KEY_SIZE, "mcpspy", "mcpspy")
                authority.adopt(draft)
        authority.protect()
        certs.CertStore.from_store(folder, BASENAME, _KEY_SIZE)
    except OSError as error:
        raise UsageError(f"cannot use the authority in {folder}: {error.strerror or error}") from None
    except (ValueError, TypeError):  # the latter for a key with a password
        raise UsageError(f"the authority in {folder} is damaged: move it away, and a new one is made") from None


def target(mode: str) -> tuple[str, int] | None:
    """The host and port that a reverse mode leads to; None for other modes. Raises UsageError for what is no mode."""
    name = mode.partition(":")[0]
    try:
        if name not in MODES:
            raise ValueError("there is none of that name")
        spec = ProxyMode.parse(mode)
    except ValueError as error:
        modes = "regular, upstream:URL, reverse:URL (without a path), socks5, local or local:PROGRAM"
        if "@" in mode:
            raise UsageError(f"--mode {shown(mode)!r} cannot be used: a URL in it must not hold a password") from None
        raise UsageError(f"--mode {mode!r} cannot be used ({error}); the modes are {modes}") from None
    return spec.address if name == "reverse" else None


async def run(
    settings: Settings,
    authority: Authority,
    create: Callable[[Origin], Writer | None],
    ready: Callable[[int | None], None],
    say: Callable[[str], None],
) -> None:
    """Relay until a signal comes.

    `ready` gets the port that was taken, None in a mode without one. Raises UsageError where it cannot start.
    """
    make(authority)
    with TemporaryDirectory(prefix="mcpspy-") as folder:  # of this process: another one may trust other servers
        trusted = os.path.join(folder, "trusted.pem")
        write_bundle(trusted, [settings.ca] if settings.ca else [])
        await _relay(settings, authority, trusted, create, ready, say)


async def _relay(
    settings: Settings,
    authority: Authority,
    trusted: str,
    create: Callable[[Origin], Writer | None],
    ready: Callable[[int | None], None],
    say: Callable[[str], None],
) -> None:
    """Relay; `trusted` is a file of the certificates that servers may have."""
    interceptor = Interceptor(settings, create, ready, say)
    logging.getLogger().addHandler(interceptor.bugs)
    master = Master(
        Options(
            confdir=authority.folder,
            mode=[settings.mode],
            listen_host=settings.host,
            listen_port=settings.port,
            allow_hosts=settings.hosts.patterns,
            ssl_insecure=settings.insecure,
            ssl_verify_upstream_trusted_ca=trusted,
        )
    )
    master.addons.add(core.Core(), disable_h2c.DisableH2C(), next_layer.NextLayer(), tlsconfig.TlsConfig())
    master.addons.add(proxyserver.Proxyserver(), interceptor)
    if "tcp_timeout" in master.options:  # since 12.2.1
        master.options.update(tcp_timeout=_FOR_EVER)
    else:
        mitmproxy.proxy.server.TCP_TIMEOUT = _FOR_EVER
    Http2Client.ReceiveProtocolError = _ServerError
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        try:
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), master.shutdown)
        except (AttributeError, NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            continue
    try:
        await master.run()
    finally:
        interceptor.end()
    if interceptor.failure:
        raise interceptor.failure


class _Bugs(logging.Handler):
    """Tells the user once of each kind of bug, in recording or in mitmproxy; what peers do wrong is in the capture."""

    def __init__(self, say_once: Callable[[str, str], None]) -> None:
        super().__init__(logging.ERROR)
        self._say_once = say_once
        self.silent = True
        """Before it listens, and while it ends: then it is no bug."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        what = f"{type(error).__name__}: {error}" if error else record.getMessage().partition("\n")[0]
        what = _unquoted(what)
        if not self.silent:
            self._say_once(f"a bug in recording or in mitmproxy ({what})", "; other traffic goes on")


def _why_not(settings: Settings, error: Exception) -> str:
    """Why it does not listen."""
    place = f"{settings.host}:{settings.port}"
    if isinstance(error, UnicodeError):
        return f"cannot listen on {place}: that is no name of a host"
    if not isinstance(error, OSError):
        return f"--mode {settings.mode} cannot be used here: {error}"
    if error.errno == errno.EADDRINUSE:
        who = holder(settings.port)
        by = f" by {' '.join(who.words[:1])} (pid {who.pid})" if who else ""
        return f"{place} is taken{by}: end that, or choose another port with --listen"
    return f"cannot listen on {place}: {error.strerror or error}"


class _ServerError(ResponseProtocolError):  # type: ignore[misc]
    """What a server did wrong on HTTP/2; mitmproxy says of either side that it is the client which reset a stream."""

    def __init__(self, stream_id: int, message: str, *code: object, **named: object) -> None:
        super().__init__(stream_id, message.replace("reset by client", "reset by server"), *code, **named)


def _unquoted(message: str) -> str:
    """A message of mitmproxy without what it quotes of a peer, for that may hold secrets."""
    return _QUOTATION.sub("«withheld»", message)


class Interceptor:
    """What mitmproxy calls, by name, while flows pass; flows of hosts that are not allowed pass unseen."""

    def __init__(
        self,
        settings: Settings,
        create: Callable[[Origin], Writer | None],
        ready: Callable[[int | None], None],
        say: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._create = create
        self._ready = ready
        self._say = say
        self._said: set[str] = set()
        self._origins: dict[str, Origin] = {}
        self._flows: dict[str, tuple[Any, Flow]] = {}  # by mitmproxy's id
        self._loop = asyncio.get_running_loop()
        self.bugs = _Bugs(self._say_once)
        self.failure: UsageError | None = None

    def end(self) -> None:
        """End every flow, and every capture."""
        self.bugs.silent = True
        for _, flow in self._flows.values():
            flow.end(flow.origin.now(), "shutdown", "shutdown")
        self._flows.clear()
        for origin in self._origins.values():
            origin.end()

    def running(self) -> None:
        """It listens, or could not."""
        servers = list(ctx.master.addons.get("proxyserver").servers)
        for server in servers:
            if server.last_exception is not None:
                self.failure = UsageError(_why_not(self._settings, server.last_exception))
                ctx.master.shutdown()
                return
        addresses = [address for server in servers for address in server.listen_addrs]
        self._ready(addresses[0][1] if addresses else None)
        self.bugs.silent = False

    def requestheaders(self, flow: Any) -> None:
        """The head of a request has come."""
        request = flow.request
        request.stream = True
        if not self._settings.hosts.allow(request.host, request.pretty_host, port=request.port):
            return
        origin = self._origin(request)
        head = {"method": request.method, "target": request.path, "version": request.http_version.rpartition("/")[2]}
        peer = "{}:{}".format(*flow.client_conn.peername)
        recording = Flow(origin, head, list(request.headers.fields), peer, self._say)
        if self._settings.everything:
            recording.held.release()
        self._flows[flow.id] = flow, recording
        request.stream = self._tee(recording.asked.feed, origin)
        if flow.error:  # mitmproxy refuses it
            error = flow.error.msg
            self._afterwards(flow, lambda recording, t: recording.refuse(t, 400, "Bad Request", _unquoted(error)))

    def request(self, flow: Any) -> None:
        """The request has ended."""
        self._afterwards(flow, lambda recording, t: recording.asked_all(t))

    def responseheaders(self, flow: Any) -> None:
        """The head of a response has come."""
        response = flow.response
        response.stream = True
        _, recording = self._flows.get(flow.id, (None, None))
        if recording is None:
            return
        headers = list(response.headers.fields)
        reason = response.reason or ""
        self._afterwards(flow, lambda recording, t: recording.respond(t, response.status_code, reason, headers))

        def feed(chunk: bytes, t: int) -> None:
            if recording.answer:
                recording.answer.feed(chunk, t)

        response.stream = self._tee(feed, recording.origin)

    def response(self, flow: Any) -> None:
        """The response has ended; a WebSocket may go on."""
        switch = flow.websocket is not None
        self._afterwards(flow, lambda recording, t: recording.answered_all(t, switch=switch))

    def error(self, flow: Any) -> None:
        """The flow broke off: the client has left, the server has, or it could not be reached."""
        error = flow.error.msg
        left = not flow.client_conn.connected or "reset by client" in error
        cancelled = "reset by server (CANCEL)" in error  # then the client's stream is, too

        def break_off(recording: Flow, t: int) -> None:
            if left:
                recording.end(t, "reset", "abort")
            elif recording.answer or cancelled:
                recording.end(t, "abort", "reset")
            else:
                recording.refuse(t, 502, "Bad Gateway", _unquoted(error))

        self._afterwards(flow, break_off)

    def client_disconnected(self, client: Any) -> None:
        """A client has gone, and with it what was left of its flows."""
        for flow, _ in list(self._flows.values()):
            if flow.client_conn is client:
                self._afterwards(flow, lambda recording, t: recording.end(t, "reset", "abort"))

    def websocket_message(self, flow: Any) -> None:
        """A message has come; mitmproxy would keep all of them for ever."""
        message = flow.websocket.messages[-1]
        flow.websocket.messages.clear()
        opcode, payload, from_client = int(message.type), message.content, message.from_client
        self._afterwards(flow, lambda recording, t: recording.message(t, opcode, payload, from_client=from_client))

    def tcp_message(self, flow: Any) -> None:
        """Bytes that are neither TLS nor HTTP have come; mitmproxy would keep all of them for ever."""
        flow.messages.clear()

    def websocket_end(self, flow: Any) -> None:
        """The WebSocket was closed."""
        socket = flow.websocket
        code, reason, by_client = socket.close_code, socket.close_reason or "", bool(socket.closed_by_client)
        self._afterwards(flow, lambda recording, t: recording.hang_up(t, code, reason, by_client=by_client))

    def tls_failed_client(self, handshake: Any) -> None:
        """A client did not accept our certificate, left, or speaks no TLS."""
        client, server = handshake.conn, handshake.context.server
        host = client.sni or (server.address[0] if server.address else "the server")
        why = client.error
        advice = (
            ": it does not trust the authority, so start it with 'mcpspy run -- CLIENT' (or see 'mcpspy ca env'); or it"
            " insists on the server's own certificate, and then it cannot be intercepted: leave"
            f" {host} out of --allow"
        )
        if refusal := _REFUSAL.search(why):
            self._say_once(f"a client refused our certificate for {host}", f" ({refusal[1]}){advice}")
        elif "disconnected" in why or "closed early" in why:
            if handshake.ssl_conn and "early" not in why:  # else it left before it had one
                self._say_once(f"a client hung up when it had our certificate for {host}", advice)
        else:
            reason = (_REASON.findall(why) or re.split("[:.] ", why))[0]
            self._say_once(f"no TLS with a client for {host}", f" ({reason}): its bytes are none, or of an old version")

    def tls_failed_server(self, handshake: Any) -> None:
        """A server's certificate cannot be verified, or it speaks no TLS."""
        server = handshake.conn
        host, port = server.address[:2]
        advice = "give --ca FILE, or --insecure to accept any" if "erify" in server.error else "is it http:// instead?"
        self._say_once(f"no TLS with {server.sni or host}:{port}", f" ({server.error}): {advice}")

    def server_connect_error(self, connecting: Any) -> None:
        """A server cannot be reached."""
        host, port = connecting.server.address[:2]
        if self._settings.hosts.allow(host, port=port):
            self._say_once(f"cannot reach {host}:{port}", f": {connecting.server.error}")

    def _origin(self, request: Any) -> Origin:
        port = "" if _PORTS.get(request.scheme) == request.port else f":{request.port}"
        name = request.pretty_host if is_valid_host(request.pretty_host) else request.host
        url = f"{request.scheme}://{f'[{name}]' if ':' in name else name}{port}"
        if url not in self._origins:
            self._origins[url] = Origin(url, self._create)
        return self._origins[url]

    def _tee(self, feed: Callable[[bytes, int], None], origin: Origin) -> Callable[[bytes], bytes]:
        """Passes chunks on, and has them recorded when they are gone."""

        def pass_on(chunk: bytes) -> bytes:
            self._loop.call_soon(feed, chunk, origin.now())
            return chunk

        return pass_on

    def _afterwards(self, flow: Any, record: Callable[[Flow, int], object]) -> None:
        """Record something of a flow when what caused it has been forwarded; `record` gets the time of now."""
        _, recording = self._flows.get(flow.id, (None, None))
        if recording is None:
            return
        t = recording.origin.now()

        def run() -> None:
            if not recording.over:
                record(recording, t)
            if recording.over:
                self._flows.pop(flow.id, None)

        self._loop.call_soon(run)

    def _say_once(self, what: str, details: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._say(what + details)
