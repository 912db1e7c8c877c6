"""The way to one server: where to connect, what to ask of a proxy, and why it failed.

    http://    client ── absolute form, Proxy-Authorization ──▶ proxy ──▶ server
    https://   client ── CONNECT, then TLS through the proxy ────────────▶ server

`Dialer` opens blocking connections. The relay of `mcpspy proxy` opens its own, with the same values and sentences.
The login for the proxy is in none of them.
"""

import os
import re
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from mcpspy.errors import UsageError
from mcpspy.network.access import Access, tls_failure
from mcpspy.network.proxies import ForwardProxy, ProxyRefusal, proxy_for
from mcpspy.secrets.redactor import shown
from mcpspy.wire.http_head import PORTS, authority_of

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ?([^\r\n]*)")
_LARGEST = 65536  # bytes of a proxy's response to CONNECT
_DIRECT = Access()
_SOON = 0.1  # seconds


class NotReached(OSError):
    """There is no connection to a server. The text continues a sentence that begins with the server."""


class Dialer:
    """The way to the server of a URL."""

    def __init__(self, url: str, access: Access = _DIRECT, environ: Mapping[str, str] = os.environ) -> None:
        """Raises UsageError if the URL, a variable or an option cannot be used."""
        try:
            there = urlsplit(url)
            host, port = there.hostname, there.port
        except ValueError:
            there, host, port = urlsplit(""), None, None
        if there.scheme not in PORTS or not host:
            raise UsageError(f"{shown(url)!r} is not a URL of a server, such as http://127.0.0.1:8000/mcp")
        self.host = host
        self.port = port or PORTS[there.scheme]
        self.origin = f"{there.scheme}://{authority_of(there.scheme, host, self.port)}"
        """The server, for messages and for the absolute form."""
        self.unix = access.unix
        self.cert = access.cert
        if self.unix and there.scheme == "https":
            raise UsageError("--unix connects without TLS: write the URL with http://")
        if self.unix and sys.platform == "win32":
            raise UsageError("--unix needs a system with Unix sockets")
        self.tls: ssl.SSLContext | None = access.context() if there.scheme == "https" else None
        self.proxy: ForwardProxy | None = None if self.unix else proxy_for(url, environ)

    @property
    def first_hop(self) -> tuple[str, int]:
        """Where TCP connects to."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.host, self.port)

    @property
    def forwards(self) -> bool:
        """Whether the proxy reads our requests: for http."""
        return self.proxy is not None and self.tls is None

    def target(self, target: str) -> str:
        """Return the target of a request in the form that the next hop needs (RFC 9112, 3.2)."""
        return f"{self.origin}{'' if target == '*' else target}" if self.forwards else target

    def headers(self) -> dict[str, str]:
        """Return what the head of each request needs for the next hop alone."""
        authorization = self.proxy.authorization if self.proxy and self.forwards else None
        return {"Proxy-Authorization": authorization} if authorization else {}

    def head(self, head: bytes) -> bytes:
        """Return the head of a request, or the beginning of one, as the next hop needs it."""
        if not self.forwards:
            return head
        line, newline, fields = head.partition(b"\r\n")
        method, _, rest = line.partition(b" ")
        target, _, version = rest.rpartition(b" ")
        ours = "".join(f"{name}: {value}\r\n" for name, value in self.headers().items())
        target = self.origin.encode() + (b"" if target == b"*" else target)
        return b"%b %b %b%b%b%b" % (method, target, version, newline, ours.encode(), fields)

    def connect(self, seconds: float | None) -> socket.socket:
        """Return a connection over which requests can be sent. Raises NotReached; `seconds` is the time for each step.

        The connection has the same limit.
        """
        try:
            sock = self._dialed(seconds)
        except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name
            raise NotReached(self.unreachable(error)) from error
        try:
            if self.tls is None:
                return sock
            if self.proxy:
                self._tunnel(sock, self.proxy)
            return self.tls.wrap_socket(sock, server_hostname=self.host)
        except (OSError, ValueError) as error:
            sock.close()
            raise NotReached(self.why(error)) from error

    def check(self, seconds: float) -> None:
        """Connect once. Raises NotReached.

        In TLS 1.3 a server refuses the certificate of a client after the handshake, so wait for that a little.
        """
        begun = time.monotonic()
        with self.connect(seconds) as sock:
            if not isinstance(sock, ssl.SSLSocket) or sock.version() != "TLSv1.3":
                return
            sock.settimeout(max(_SOON, 2 * (time.monotonic() - begun)))
            try:
                sock.recv(1)
            except TimeoutError:
                pass
            except OSError as error:
                raise NotReached(self.why(error)) from error

    def _dialed(self, seconds: float | None) -> socket.socket:
        if self.unix and sys.platform != "win32":
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(seconds)
            try:
                sock.connect(self.unix)
            except BaseException:
                sock.close()
                raise
            return sock
        return socket.create_connection(self.first_hop, seconds)

    def _tunnel(self, sock: socket.socket, proxy: ForwardProxy) -> None:
        """Ask the proxy for a tunnel. Raises ProxyRefusal, or OSError if there is no answer."""
        place = authority_of("", self.host, self.port)
        login = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
        sock.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:  # nothing follows it: in TLS the client begins
            part = sock.recv(4096)
            head += part
            if not part or len(head) > _LARGEST:
                raise ProxyRefusal
        found = _STATUS.match(head)
        if found is None:
            raise ProxyRefusal
        if not found[1].startswith(b"2"):
            fields = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
            asks = [value.decode("latin-1") for name, _, value in fields if name.lower() == b"proxy-authenticate"]
            raise ProxyRefusal(int(found[1]), found[2].decode("latin-1"), asks)

    def unreachable(self, error: BaseException) -> str:
        """Return why the first hop cannot be connected to."""
        if isinstance(error, socket.gaierror | UnicodeError):
            why = "its name cannot be resolved"
        elif isinstance(error, TimeoutError):
            why = "no connection in time"
        else:
            number = getattr(error, "errno", None)
            why = os.strerror(number).lower() if number else str(error)
        if self.unix:
            return f"cannot be reached at {self.unix}: {why}"
        if self.proxy:
            return self.proxy.unreachable(why, self.host)
        return f"cannot be reached: {why}"

    def why(self, error: BaseException) -> str:
        """Return why a connection was of no use."""
        if isinstance(error, ProxyRefusal) and self.proxy:
            return self.proxy.refusal(error, self.host)
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return tls_failure(error, self.cert)
        if isinstance(error, TimeoutError):
            return "does not answer in time"
        if isinstance(error, ssl.SSLEOFError):
            return "closed the connection without an answer"
        return f"broke off: {getattr(error, 'strerror', None) or error or type(error).__name__}"
