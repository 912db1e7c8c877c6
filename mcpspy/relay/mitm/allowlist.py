"""The hosts that `mitm` may decrypt: only those that the user names (M-04).

A name is a glob for host names, such as `*.example.com`. It applies to any port unless it has one. What no name matches
is neither decrypted nor recorded. Names are compared in the form that clients send: in lower case, in ASCII (UTS 46; a
label in other letters is converted to its `xn--` form), without a dot at the end (RFC 1034, 3.1).
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from ipaddress import ip_address

import idna

from mcpspy.errors import UsageError
from mcpspy.secrets.redactor import shown

_PORT = re.compile(r"(?:\]|^[^:]*):[0-9*?]+$")  # matches `host:port` and `[v6]:port`, not a bare IPv6 address
_GLOB = re.compile(
    r"(?!\.*(?::|$)|.*\.\.)[\w.*?-]+(?::[0-9*?]+)?|\[[0-9a-f:.*?]+\](?::[0-9*?]+)?|[0-9a-f.*?]*:[0-9a-f.*?]*:[0-9a-f:.*?]*"
)


_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*|[0-9a-f]*:[0-9a-f.:]*(?:%[\w.-]+)?", re.ASCII)
_UNNAMED = ("socks5", "local")  # modes in which the client may connect to an address without naming a host


def names(mode: str, address: str, sni: str | None, spoken: str) -> list[str]:
    """Return the possible names of the server at `address`, the most reliable first.

    `spoken` is the Host of a request. A client can put any text there, so it is used only if there is no other name. If
    several names are returned, none is certain.
    """
    if mode == "reverse":
        return [address]
    if sni:
        return [sni]
    return [spoken, address] if mode in _UNNAMED and _is_ip(address) else [address]


class Hosts:
    """The hosts that `globs` match. Raises UsageError for a glob that can match no host, such as a URL."""

    def __init__(self, globs: Iterable[str]) -> None:
        self.globs = list(globs)
        self.patterns = [_pattern(glob) for glob in self.globs]
        """Regular expressions to search in `host:port`, ignoring case."""
        self._compiled = [re.compile(pattern, re.IGNORECASE) for pattern in self.patterns]

    def named(self, *names: str, port: int) -> str | None:
        """Return the first of these names of a server on `port` that is allowed, normalised; None if none is."""
        for name in names:
            try:
                plain = _plain(name)
            except ValueError:
                continue
            if _NAME.fullmatch(plain) and any(it.search(f"{plain}:{port}") for it in self._compiled):
                return plain
        return None


def _plain(name: str) -> str:
    """Normalise a host name or a glob. Raises ValueError if a label cannot be converted to ASCII."""
    labels = name.lower().split(".")
    return ".".join(it if it.isascii() else idna.encode(it, uts46=True).decode() for it in labels).removesuffix(".")


def _pattern(name: str) -> str:
    host, colon, port = name.partition(":")
    try:
        glob = name.lower() if name.isascii() else _plain(host) + colon + port
        if not _GLOB.fullmatch(glob):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--allow takes one host, such as mcp.example.com, '*.example.com' or host:8443, not {shown(name)!r}"
        ) from None
    place = glob if _PORT.search(glob) else f"{glob}:*"
    host, _, port = place.replace("[", "").replace("]", "").rpartition(":")
    host = host.removesuffix(".")
    return rf"\A(?:{translate(f'{host}:{port}')}|{translate(f'{host}.:{port}')})"


def _is_ip(address: str) -> bool:
    try:
        return bool(ip_address(address))
    except ValueError:
        return False
