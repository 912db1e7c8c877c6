"""Decide who may use our port (H-02, A-06): a web page must not reach a server through us by DNS rebinding.

A server checks Host and Origin against its own address. Since we rewrite the Host, we have to check in its place. A
Host is accepted if it is a name of this machine, an IP address (which cannot be rebound) or a name that the user
allows. An Origin, which only browsers send, is accepted if its host is a name of this machine or allowed. Pages of
other sites can also load a URL without an Origin, as an image or a link. Such requests are refused; the header
Sec-Fetch-Site shows them (W3C Fetch Metadata). A page with an allowed Origin may belong to another site.
"""

import ipaddress
import socket
from collections.abc import Iterable

from mcpspy.relay.http.heads import RawHeaders, every, first, origin_of, text


class Guard:
    """Checks requests; `allowed` are host names, with or without a port, given with `option`."""

    def __init__(self, listen: str, allowed: Iterable[str], option: str = "--allow-host") -> None:
        self._option = option
        names = {host.lower() for host in allowed}
        names |= {listen.lower(), "localhost", "127.0.0.1", "::1"} - {"", "0.0.0.0", "::"}  # noqa: S104 (compared only)
        self._names = frozenset(names)

    def refusal(self, headers: RawHeaders) -> str | None:
        """Return why a request with these headers is refused; None if it is accepted."""
        host = first(headers, b"host")
        if host is None or "," in every(headers, b"host"):
            return "the request must have exactly one Host header"
        origin = origin_of(f"http://{text(host)}")
        if origin is None or not (self._known(origin[1], text(host)) or _is_address(origin[1])):
            return f"the Host {text(host)!r} is not one of this proxy's: add {self._option} {text(host).split(':')[0]}"
        source = first(headers, b"origin")
        if source is not None:
            found = origin_of(text(source))
            if found is None or not self._known(found[1], text(source).partition("//")[2]):
                name = found[1] if found else "HOST"
                return f"the Origin {text(source)!r} is not allowed: add {self._option} {name}"
        elif every(headers, b"sec-fetch-site").strip().lower() == "cross-site":
            return "a page of another site sent it (Sec-Fetch-Site: cross-site)"
        return None

    def _known(self, host: str, authority: str) -> bool:
        return host in self._names or authority.lower() in self._names or host.endswith(".localhost")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listener on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def arrives_at(there: str, own: str) -> bool:
    """Return whether a connection to the address `there` reaches a listener on `own`; the ports are the same."""
    dialled, listening = _address(there), _address(own)
    if dialled.is_unspecified:
        dialled = _address("127.0.0.1" if dialled.version == 4 else "::1")
    if not listening.is_unspecified:
        return dialled == listening
    if dialled.version > listening.version:
        return False
    with socket.socket(socket.AF_INET if dialled.version == 4 else socket.AF_INET6) as trial:
        try:
            trial.bind((str(dialled), 0))
        except OSError:  # an address of another machine
            return False
    return True


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.ip_address(text.partition("%")[0])
    return getattr(found, "ipv4_mapped", None) or found


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
