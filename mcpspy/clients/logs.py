"""A client's own log of a stdio server: why the last start failed, in the words of the client.

The table of clients has the places of these logs. Most have one line for each event; Claude Code writes a JSON object
for each. Of the newest file only the end is read. The reason is the first error after the last beginning of a start, if
no success follows it.
"""

import glob
import os
import re
from collections.abc import Iterator

from mcpspy.clients.check import NOTE, Check
from mcpspy.clients.places import Machine, paths_of
from mcpspy.clients.servers import Server
from mcpspy.foreign_file import open_foreign
from mcpspy.json_values import parsed
from mcpspy.secrets.redactor import Withheld
from mcpspy.secrets.tokens import replaced

_TAIL = 128 << 10  # bytes
_LONGEST = 300  # characters of a line
_BEGINS = re.compile(r"(?i)initializing server|starting server|connection state: starting|starting connection")
_FAILS = re.compile(r"(?i)\[error\]|\berror:|\bENOENT\b|connection state: error|could not start|connection failed")
_WORKS = re.compile(r"(?i)connection state: running|discovered \d+ tools|successfully connected|message from server")


def of_log(server: Server, machine: Machine) -> Iterator[Check]:
    """Yield what the client's log says about the last start of a server, if it failed after the last change."""
    try:
        path = newest(server, machine)
        if path and os.path.getmtime(path) >= os.path.getmtime(server.found.path) and (line := last_error(path)):
            name = server.found.client.name
            yield Check(NOTE, f"{name}'s log of its last start: {line}", f"the rest is in {path}")
    except OSError:  # it has just been deleted, or belongs to another user
        return


def newest(server: Server, machine: Machine) -> str:
    """Return the path of the newest log of a server; empty if there is none. Raises OSError."""
    name = server.name
    if not name or name.startswith(".") or any(separator in name for separator in ("/", "\\", "\0")):
        return ""  # a name must not lead to another file
    found: list[str] = []
    for log in server.found.client.logs:
        template = log if isinstance(log, str) else log.get(machine.platform, "")
        for path in paths_of(template, machine, name) if template else ():
            found += glob.glob(path) if "*" in path else [path]
    times = {path: os.path.getmtime(path) for path in found if os.path.isfile(path)}
    return max(times, key=lambda path: times[path], default="")


def last_error(path: str) -> str:
    """Return the first error of the last start in a log, without secrets; empty if it did not fail. Raises OSError."""
    reason = ""
    for line in _lines(path):
        if _BEGINS.search(line) or _WORKS.search(line):
            reason = ""
        elif not reason and _FAILS.search(line):
            reason = line
    words = Withheld().argv(reason.split())
    return replaced(" ".join(words), lambda _: "«withheld»")[:_LONGEST]


def _lines(path: str) -> Iterator[str]:
    """Yield the lines at the end of a log; of a JSON object its error or its message."""
    with open_foreign(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _TAIL, 0))
        text = file.read(_TAIL).decode(errors="replace")
    for line in text.splitlines()[size > _TAIL :]:
        yield _of_object(line) if line.startswith("{") else line


def _of_object(line: str) -> str:
    try:
        value = parsed(line.encode())
    except ValueError:
        return line
    if not isinstance(value, dict):
        return line
    return f"error: {value['error']}" if "error" in value else str(value.get("debug", ""))
