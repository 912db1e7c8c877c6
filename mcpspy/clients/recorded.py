"""The server that a capture names, to be started again: the command, with the secrets of the client's configuration.

A capture is not trusted, so only a header that a relay of this user wrote names a server (`capture.user_key`), and the
caller asks before it is started. Secrets are not in a capture: they come from the configuration of a client of the
user, or the user types them. A project may be foreign, so its configuration is not read.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mcpspy.capture.reader import parse_header
from mcpspy.capture.records import Header
from mcpspy.capture.user_key import doubt, first_line
from mcpspy.clients import routes
from mcpspy.clients.places import Machine, present
from mcpspy.clients.servers import Server, expanded, servers, wrote
from mcpspy.clients.table import PROJECT
from mcpspy.errors import ConfigError, UsageError
from mcpspy.secrets.patterns import is_secret_name
from mcpspy.text import printable, series

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment
else:
    from mcpspy.process.child import environment

MARK = re.compile("«(?:redacted|withheld)[^»]*»")
"""What is in the place of a secret."""
_OF_A_SHELL = {"_", "OLDPWD", "PWD", "SHLVL"}  # they say nothing about the server
_NAMED = 8  # variables that are named


@dataclass(frozen=True, slots=True)
class Recorded:
    """A command or a URL."""

    argv: Sequence[str] = ()
    written: Sequence[str] = ()
    """The command as it is written to captures: its secrets are replaced."""
    cwd: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    """The variables that the client's configuration adds."""
    client: str = ""
    """The name of that client."""
    url: str = ""

    def variables(self) -> dict[bytes, bytes]:
        """Return the environment of the command."""
        return environment() | {os.fsencode(name): os.fsencode(value) for name, value in self.environ.items()}

    def complete(self, ask: Callable[[str], str]) -> "Recorded":
        """Return it with the values that are still redacted; `ask` returns one for a description of its place."""
        words = list(self.argv)
        for place, word in enumerate(words):
            where = masked(f"{self.written[place - 1]} {word}" if place else word)
            words[place] = MARK.sub(partial(_answered, ask, where), word)
        return replace(self, argv=words)


def _answered(ask: Callable[[str], str], where: str, _: re.Match[str]) -> str:
    return ask(where)


def masked(text: str) -> str:
    """Return text with `…` in place of redacted values."""
    return MARK.sub("…", text)


def trusted(path: str) -> Header:
    """Return the header of a capture whose server may be used, once the user agrees.

    The same bytes are checked and parsed, so the file may change meanwhile. Raises UsageError with the reason if the
    server may not be used, and NotACapture.
    """
    try:
        line = first_line(path)
    except OSError as error:
        raise UsageError(f"the capture cannot be read again ({error.strerror})") from None
    if why := doubt(line):
        raise UsageError(why)
    header = parse_header(line)
    if not (header.argv or header.url):
        raise UsageError("the capture names no server")
    return header


def recorded(header: Header) -> Recorded:
    """Return what a header names, with the secrets of the client's configuration. Raises UsageError."""
    if header.url:
        if MARK.search(header.url):
            raise UsageError("the URL of the capture has redacted values: give it by --url")
        return Recorded(url=header.url)
    if header.cwd is not None and not os.path.isdir(header.cwd):
        raise UsageError(f"the directory of the command no longer exists: {printable(header.cwd, 400)}")
    machine, entry = Machine.here(), _entry(header)
    if entry is None:
        return Recorded(header.argv, header.argv, header.cwd)
    client = entry.found.client
    words = [expanded(word, client, machine) for word in entry.words]
    argv = [word if MARK.search(clean) else clean for word, clean in zip(words, header.argv, strict=True)]
    environ = {name: expanded(value, client, machine) for name, value in entry.environ.items()}
    return Recorded(argv, header.argv, header.cwd, environ, client.name)


def _entry(header: Header) -> Server | None:
    """Return the recorded server in a client's configuration."""
    machine, known = Machine.here(), routes.load()
    for found in present(machine):
        if found.place.scope == PROJECT:
            continue
        try:
            own = [server for server in servers(found, machine, known) if server.words and wrote(server, header)]
        except ConfigError:
            continue
        if own:
            return own[0]
    return None


def described(header: Header, server: Recorded) -> Iterator[str]:
    """Yield lines for the question: what is started, where, and with which variables."""
    if server.url:
        yield f"connects to  {server.url}"
        return
    yield f"starts       {shlex.join(masked(word) for word in header.argv)}"
    yield f"in           {server.cwd or os.getcwd()}"
    if server.environ:
        yield f"with         {_names([*server.environ])} of the configuration of {server.client}"
    missing = {*header.env} - _OF_A_SHELL - {os.fsdecode(name) for name in server.variables()}
    if missing:
        names = sorted(missing, key=lambda name: (not is_secret_name(name), name))
        yield f"without      {_names(names)}, which it had when it was recorded"


def _names(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return series([*(printable(name, 60) for name in names[:_NAMED]), *more])
