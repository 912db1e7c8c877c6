"""Which hosts an interceptor may look into: those that the user names, and no other (M-04).

A name is a glob over host names, `*.example.com`, on any port unless it has one of its own. What no name matches is not
decrypted and not recorded.
"""

import re
from collections.abc import Iterable
from fnmatch import translate

_PORT = re.compile(r"(?:\]|^[^:]*):[0-9*?]+$")  # of `host:port` and `[v6]:port`, not of a bare IPv6 address


class Hosts:
    """The hosts that `globs` name."""

    def __init__(self, globs: Iterable[str]) -> None:
        self.patterns = [_pattern(glob.strip().lower()) for glob in globs]
        """Regular expressions to be searched in `host:port`, whatever the case."""
        self._compiled = [re.compile(pattern, re.IGNORECASE) for pattern in self.patterns]

    def allow(self, *names: str, port: int) -> bool:
        """Whether one of the names of a server on `port` is among them."""
        return any(pattern.search(f"{name}:{port}") for pattern in self._compiled for name in names)


def _pattern(glob: str) -> str:
    place = glob if _PORT.search(glob) else f"{glob}:*"
    return r"\A" + translate(place.replace("[", "").replace("]", ""))
