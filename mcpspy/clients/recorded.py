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
from dataclasses import dataclass, field

from mcpspy.capture.location import shown
from mcpspy.capture.records import Header
from mcpspy.capture.user_key import proves_itself
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
_NAMED = 8  # variables that are named


@dataclass(frozen=True, slots=True)
class Recorded:
    """A command or a URL."""

    argv: Sequence[str] = ()
    cwd: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    """The variables that the client's configuration adds."""
    url: str = ""

    def variables(self) -> dict[bytes, bytes]:
        """Return the environment of the command."""
        return environment() | {os.fsencode(name): os.fsencode(value) for name, value in self.environ.items()}


def refusal(path: str, header: Header) -> str | None:
    """Return why the server that a capture names is not used; None if it may be, once the user agrees."""
    if header.imported:
        return f"{shown(path)} was imported, so mcpspy does not start what it names"
    if not proves_itself(path):
        return f"no relay of yours wrote the header of {shown(path)} as it is, so mcpspy does not start what it names"
    if not (header.argv or header.url):
        return f"{shown(path)} names no server"
    return None


def recorded(header: Header, ask: Callable[[str], str]) -> Recorded:
    """Return what a header names; `ask` returns the value for a word in which it is redacted. Raises UsageError."""
    if header.url:
        if MARK.search(header.url):
            raise UsageError("the URL of the capture has redacted values: give it by --url")
        return Recorded(url=header.url)
    machine, entry = Machine.here(), _entry(header)
    argv, environ = [*header.argv], dict[str, str]()
    if entry:
        client = entry.found.client
        words = [expanded(word, client, machine) for word in entry.words]
        argv = [word if MARK.search(clean) else clean for word, clean in zip(words, argv, strict=True)]
        environ = {name: expanded(value, client, machine) for name, value in entry.environ.items()}
    return Recorded([_complete(word, ask) for word in argv], header.cwd, environ)


def _complete(word: str, ask: Callable[[str], str]) -> str:
    return MARK.sub(lambda _: ask(MARK.sub("…", word)), word)


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
    yield f"starts       {shlex.join(MARK.sub('…', word) for word in header.argv)}"
    yield f"in           {server.cwd or os.getcwd()}"
    if server.environ:
        yield f"with         {_names([*server.environ])} of the client's configuration"
    missing = {*header.env} - {os.fsdecode(name) for name in server.variables()}
    if missing:
        names = sorted(missing, key=lambda name: (not is_secret_name(name), name))
        yield f"without      {_names(names)}, which it had when it was recorded"


def _names(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return series([*(printable(name, 60) for name in names[:_NAMED]), *more])
