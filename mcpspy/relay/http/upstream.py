"""Connections to one upstream, and the reasons why there is none.

aiohttp provides connections and the parser. Requests are written and responses read without its client session, which
would add headers, follow redirects, keep cookies and set time-outs. Only connecting has a time-out: a stream may be
idle for any time (H-06).
"""

import os
import ssl

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError

from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.http1 import LARGEST, Connections, HeadTooLarge, ServerConnection

TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_read=None, sock_connect=30)

_IDLE = 4.0  # seconds that an idle connection is kept; common servers close theirs after 5


class Upstream:
    """Opens connections to one origin; keeps idle ones for the next request."""

    def __init__(self, address: Address, *, ca: str | None = None, insecure: bool = False) -> None:
        scheme = address.origin[0]
        self.authority = f"{scheme}://{address.authority}"
        self._tls = _context(ca, insecure=insecure) if scheme == "https" else None
        self._connections: Connections | None = None

    async def connect(self) -> tuple[Connection, bool]:
        """Return a connection, and whether it was used before. Raises exceptions that `failure` explains."""
        if self._connections is None:
            self._connections = Connections(self.authority, self._tls, _IDLE)
        while True:
            connection = await self._connections.open(TIMEOUT)
            protocol = connection.protocol
            assert isinstance(protocol, ServerConnection)
            if not protocol.used or not protocol.should_close:
                return connection, protocol.used
            connection.close()  # it received bytes that belong to no request; they would be read as the next response

    async def close(self) -> None:
        """Close the idle connections."""
        if self._connections:
            await self._connections.close()

    def failure(self, error: BaseException) -> tuple[int, str]:
        """Return the status and the explanation for a client whose request failed because of `error`."""
        if isinstance(error, TimeoutError):
            return 504, f"cannot reach {self.authority}: no connection within {TIMEOUT.sock_connect} seconds"
        return 502, f"{self.authority} {self._why(error)}"

    def _why(self, error: BaseException) -> str:
        cause = getattr(error, "os_error", None) or error
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return "cannot be reached: its name cannot be resolved"
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
            reason = getattr(getattr(error, "certificate_error", error), "verify_message", None) or error
            return f"has a certificate that cannot be verified ({reason}): give --ca FILE, or --insecure to accept any"
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "reason", None) or str(cause)
            if "APPLICATION_PROTOCOL" in reason:
                return "speaks only HTTP/2, which mcpspy does not: put a server in between that speaks HTTP/1.1"
            return f"cannot be reached by TLS ({reason}): is it http:// instead?"
        if isinstance(error, aiohttp.ClientConnectorError):
            return f"cannot be reached: {os.strerror(error.errno).lower() if error.errno else cause}"
        if isinstance(error, HeadTooLarge):
            return f"answers with a head of more than {LARGEST} bytes, which mcpspy does not pass on"
        if isinstance(error, HttpProcessingError):
            fault = error.message.partition(":")[0]
            if fault == "Bad status line":
                return "does not answer in HTTP/1.1: it may want https://, or speak only HTTP/2"
            return f"sends a response that is not valid HTTP/1.1: {fault}"
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return "closed the connection without an answer"
        return f"broke off: {getattr(error, 'strerror', None) or error or type(error).__name__}"


def protocol_of(connection: Connection) -> ServerConnection:
    """Return the protocol of an open connection. Raises ServerDisconnectedError if it has just closed."""
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ServerDisconnectedError
    assert isinstance(protocol, ServerConnection)
    return protocol


def _context(ca: str | None, *, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context()
        if ca:
            context.load_verify_locations(cadata=read_foreign(ca, named=True).decode("ascii", "ignore"))
    except (OSError, ValueError) as error:  # ValueError: there is no certificate in it
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read certificates from {ca}: {why}") from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
