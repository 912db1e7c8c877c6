"""Which hosts an interceptor may look into: those that the user names, and no other (M-04).

A name is a glob over host names, `*.example.com`, on any port unless it has one of its own. What no name matches is not
decrypted and not recorded. A name in other letters than ASCII stands for its IDNA form, which is what clients send. The
dot that may end a name (RFC 1034, 3.1) makes no difference.
"""

import re
from collections.abc import Iterable
from fnmatch import translate

from mcpspy.errors import UsageError
from mcpspy.redact import shown

_PORT = re.compile(r"(?:\]|^[^:]*):[0-9*?]+$")  # of `host:port` and `[v6]:port`, not of a bare IPv6 address
_GLOB = re.compile(
    r"(?!\.+(?::|$))[\w.*?-]+(?::[0-9*?]+)?|\[[0-9a-f:.*?]+\](?::[0-9*?]+)?|[0-9a-f.*?]*:[0-9a-f.*?]*:[0-9a-f:.*?]*"
)


class Hosts:
    """The hosts that `globs` name. Raises UsageError for what can name none, such as a URL."""

    def __init__(self, globs: Iterable[str]) -> None:
        self.patterns = [_pattern(glob) for glob in globs]
        """Regular expressions to be searched in `host:port`, whatever the case."""
        self._compiled = [re.compile(pattern, re.IGNORECASE) for pattern in self.patterns]

    def allow(self, *names: str, port: int) -> bool:
        """Whether one of the names of a server on `port` is among them."""
        return any(pattern.search(f"{name}:{port}") for pattern in self._compiled for name in names)


def _pattern(name: str) -> str:
    glob = name.lower()
    try:
        if not glob.isascii():
            host, colon, port = glob.partition(":")
            glob = host.encode("idna").decode() + colon + port
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
