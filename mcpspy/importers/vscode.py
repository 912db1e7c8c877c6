r"""The log of VS Code about one server: the output channel *MCP: NAME*, and the files `mcpServer.ID.log`.

    2026-07-24 02:03:14.031 [info] Starting server weather
    2026-07-24 02:03:14.089 [debug] [editor -> server] {"jsonrpc":"2.0","id":1,"method":"initialize",…}
    2026-07-24 02:03:14.095 [warning] [server stderr] listening
    2026-07-24 02:03:14.151 [warning] Failed to parse message: "hello\n"
    2026-07-24 02:03:15.002 [info] Connection state: Error Process exited with code 1

The format is not documented; these forms are from the source of VS Code, and older ones from public issues. Times are
local, without a zone. VS Code logs messages only at the level Debug or Trace, or with `dev` in the configuration. It
parses and serialises them again. It logs a line that is not JSON as a whole. The lines with the name and the state of
the server are in the language of the user, so without them a log is read as one start of a server.
"""

import json
import re
from datetime import datetime
from typing import BinaryIO

from mcpspy.importers.captures import Captures, ImportedServer, epoch
from mcpspy.importers.client_log import record_message
from mcpspy.importers.text import lines

LINE = re.compile(
    rb"[ \t]*(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \[(?:error|warning|info|debug|trace)\] (?P<rest>.*)"
)
_MESSAGE = re.compile(r"\[(editor -> server|server -> editor|Client Says|Server Says)\] (?=[{\[])")
_ROLES = {"editor -> server": "stdin", "Client Says": "stdin", "server -> editor": "stdout", "Server Says": "stdout"}
_STDERR, _NOT_JSON, _STATE = "[server stderr] ", "Failed to parse message: ", "Connection state: "
_START = re.compile(r"Starting server (?!from \S+ extension host$)(.+)")
_EXIT = re.compile(r"Error Process exited with code (\d{1,10})$")
KNOWN = re.compile(
    rb'\[(?:editor -> server|server -> editor|(?:Client|Server) Says|server stderr)\] |Failed to parse message: "'
    rb"|Starting server |Connection state: |Server command line: "
)
"""How the text of a line begins that only this log has."""
_FIELDS = {"transport": "stdio", "argv": []}
_KEY = ""  # a log is about one server


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the messages in a log; each start of the server begins a new capture.

    Raises CaptureError if captures cannot be written.
    """
    log, account = _ServerLog(captures), captures.account
    for line in lines(file):
        account.read += 1
        account.advance(len(line or b"") + 1)
        found = LINE.fullmatch(line) if line is not None else None
        if line is None:
            log.lose("the log has a line that is too long to be read")
        elif found:  # other lines continue an error of VS Code
            try:
                wall = epoch(datetime.fromisoformat(found["time"].decode()).timestamp())
            except (ValueError, OverflowError, OSError):
                log.lose("the log has a line with an impossible time")
            else:
                log.line(found["rest"].decode("utf-8", "replace"), wall)
    log.finish()


class _ServerLog:
    """What was read so far of the start of a server."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self._name = captures.name
        self._wall = 0
        self._server: ImportedServer | None = None
        self._runs = False

    def line(self, rest: str, wall: int) -> None:
        """Record a line of VS Code, if it is about the traffic or the state of the server."""
        self._wall = wall
        if said := _MESSAGE.match(rest):
            self._message(said[1], rest, said.end())
        elif rest.startswith(_STDERR):
            self._recorded().line("stderr", wall, rest.removeprefix(_STDERR).encode())
        elif rest.startswith(_NOT_JSON):
            self._not_json(rest.removeprefix(_NOT_JSON))
        elif found := _START.fullmatch(rest):
            self.finish()
            self._name = found[1]
            self._recorded()
        elif rest.startswith(_STATE):
            self._state(rest.removeprefix(_STATE))

    def lose(self, why: str) -> None:
        """Take note of a line that cannot be read."""
        self._captures.account.lost += 1
        if self._server:
            self._server.gap(self._wall, 1, why)

    def finish(self) -> None:
        """End the capture, if there is one; what follows belongs to another start of the server."""
        if self._server and self._runs and not self._server.spoke:
            self._server.gap(self._wall, 1, "the log has no messages: VS Code logs them at the level Debug or Trace")
        self._captures.finish(_KEY)
        self._server, self._runs = None, False

    def _recorded(self) -> ImportedServer:
        if self._server is None:
            self._server = self._captures.get(_KEY, self._wall, self._name, _FIELDS)
        return self._server

    def _message(self, direction: str, rest: str, start: int) -> None:
        end = record_message(self._recorded(), _ROLES[direction], self._wall, rest, start)
        if rest[end:].strip():
            self.lose("the log has more on the line of a message, which cannot be read")

    def _not_json(self, quoted: str) -> None:
        """Record a line of the server that is not JSON; it is quoted as a JSON string, with its line feed."""
        try:
            text = str(json.loads(quoted))
        except (ValueError, RecursionError):
            self._recorded().gap(self._wall, 1, "the log has a line of the server only in part")
        else:
            self._recorded().line("stdout", self._wall, text.removesuffix("\n").encode("utf-8", "replace"))

    def _state(self, state: str) -> None:
        self._runs |= state == "Running"
        if found := _EXIT.match(state):
            self._recorded().ended(self._wall, code=int(found[1]))
        elif state.startswith("Error ") and not self._recorded().answers:
            self._recorded().ended(self._wall, why=state.removeprefix("Error "))
