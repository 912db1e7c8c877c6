"""The proxy that leads to a server, by the variables that curl reads.

The variable is `http_proxy` or `https_proxy`, by the scheme of the server's URL, and else `all_proxy`. Each may be in
upper case; lower case wins, and an empty variable counts as unset. `HTTP_PROXY` is ignored in a CGI script, where the
header `Proxy` of a request sets it; `REQUEST_METHOD` shows that. A proxy without a scheme is an HTTP proxy, and without
a port it has 1080.

`no_proxy` lists servers that are reached directly: a host with all its subdomains, an address, a network such as
10.0.0.0/8, each with a port or without one, or `*` for all. A server on this machine is always reached directly.
"""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from mcpspy.errors import UsageError
from mcpspy.secrets.redactor import shown
from mcpspy.wire.http_head import PORTS, authority_of

_PORT = 1080
_LOGIN_REFUSED = (401, 407)  # tinyproxy answers a wrong password with 401
_EXAMPLE = "http://proxy.example:3128"
_SEPARATOR = re.compile(r"[,\s]+")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ProxyRefusal(OSError):
    """A proxy has refused a request with this status, or with 0 if it does not answer in HTTP.

    `asks` has the values of `Proxy-Authenticate`.
    """

    def __init__(self, status: int = 0, reason: str = "", asks: Iterable[str] = ()) -> None:
        super().__init__(f"{status} {reason}".strip())
        self.status = status
        self.asks = [*asks]


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """An HTTP proxy, and the variable that names it."""

    host: str
    port: int
    variable: str
    login: str | None = field(default=None, repr=False)
    """The user and the password, joined by a colon."""

    @property
    def url(self) -> str:
        """Its URL, without user and password."""
        return f"http://{authority_of('http', self.host, self.port)}"

    @property
    def authorization(self) -> str | None:
        """The value of `Proxy-Authorization`."""
        return None if self.login is None else f"Basic {b64encode(self.login.encode()).decode()}"

    def unreachable(self, why: str, host: str) -> str:
        """Return a sentence that begins with the server on a host: the proxy cannot be connected to."""
        return f"{self._through}: {why}; correct {self.variable}, or put {host} into no_proxy to reach it directly"

    def refusal(self, error: ProxyRefusal, host: str) -> str:
        """Return a sentence that begins with the server on a host: the proxy has refused the request."""
        if error.status == 0:
            return f"{self._through}: it does not answer in HTTP; correct {self.variable}"
        if error.status not in _LOGIN_REFUSED:
            direct = f"put {host} into no_proxy to reach it directly"
            return f"{self._through}: it refuses the connection ({error}); ask who runs it to allow this, or {direct}"
        kinds = [value.split()[0].strip(",") for value in error.asks if value.strip()]
        if kinds and "basic" not in [kind.lower() for kind in kinds]:
            known = "mcpspy has only Basic; put a local proxy in between that has it"
            return f"{self._through}: it requires a login by {', '.join(kinds)} ({error.status}), and {known}"
        if self.login is None:
            form = f"http://USER:PASSWORD@{authority_of('', self.host, self.port)}"
            return (
                f"{self._through}: it requires a user and a password ({error.status}); put them into {self.variable}, "
                f"as {form}"
            )
        return (
            f"{self._through}: it does not accept the user and the password in {self.variable} ({error.status}); "
            "correct them, and write special characters as %XX"
        )

    @property
    def _through(self) -> str:
        return f"cannot be reached through the proxy {self.url} ({self.variable})"


def proxy_for(url: str, environ: Mapping[str, str]) -> ForwardProxy | None:
    """Return the proxy for a server; None if it is reached directly. Raises UsageError for one that we cannot use."""
    there = urlsplit(url)
    host = there.hostname or ""
    variable = _variable(there.scheme, environ)
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if not variable or _is_local(host) or _is_exempt(host, there.port or PORTS[there.scheme], exempt):
        return None
    return _parsed(variable, environ[variable].strip())


def _variable(scheme: str, environ: Mapping[str, str]) -> str | None:
    """Return the name of the variable that counts."""
    for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"):
        if environ.get(name, "").strip() and not (name == "HTTP_PROXY" and "REQUEST_METHOD" in environ):
            return name
    return None


def _parsed(variable: str, value: str) -> ForwardProxy:
    scheme, given, rest = value.partition("://")
    scheme, rest = (scheme.lower(), rest) if given else ("http", value)
    direct = "or put the server's host into no_proxy to reach it directly"
    if scheme.startswith("socks"):
        raise UsageError(f"{variable} is a SOCKS proxy, which mcpspy cannot use: set it to an HTTP proxy, {direct}")
    if scheme == "https":
        raise UsageError(
            f"{variable} is a proxy with TLS (https://), which mcpspy cannot use: set it to an http:// proxy, {direct}"
        )
    try:
        there = urlsplit(f"http://{rest}")
        host, port = there.hostname, there.port or _PORT
    except ValueError:
        host, port = None, _PORT
    if scheme != "http" or not host:
        raise UsageError(f"{variable} is not the URL of a proxy, such as {_EXAMPLE}: {shown(value)!r}")
    login = there.netloc.rpartition("@")[0] if "@" in there.netloc else None
    if login is not None:
        user, _, password = login.partition(":")
        login = f"{unquote(user)}:{unquote(password)}"
    return ForwardProxy(host, port, variable, login)


def _is_local(host: str) -> bool:
    """Return whether a host is this machine itself."""
    address = _address(host)
    if address is None:
        name = host.rstrip(".")
        return name == "localhost" or name.endswith(".localhost")
    return address.is_loopback


def _is_exempt(host: str, port: int, entries: str) -> bool:
    """Return whether one of the entries of `no_proxy` names a host and a port."""
    address, name = _address(host), host.rstrip(".")
    for entry in filter(None, _SEPARATOR.split(entries.lower())):
        place, number = _split_port(entry)
        if number and number != str(port):
            continue
        suffix = place.lstrip("*").strip(".")
        if place == "*" or (address is not None and _is_within(address, place)):
            return True
        if address is None and suffix and (name == suffix or name.endswith("." + suffix)):
            return True
    return False


def _split_port(entry: str) -> tuple[str, str]:
    """Return the host and the port of an entry; the port is empty if there is none."""
    if entry.startswith("["):
        place, _, rest = entry[1:].partition("]")
        if rest.startswith("/"):  # [fd00::]/8
            return place + rest, ""
        return place, rest.removeprefix(":")
    if entry.count(":") == 1:
        place, _, port = entry.partition(":")
        return place, port
    return entry, ""


def _address(host: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_within(address: _Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
