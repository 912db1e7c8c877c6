"""The logs of Claude Desktop: `mcp-server-NAME.log`, and `mcp.log` for all servers together.

    2025-06-27T07:58:07.774Z [info] [weather] Message from client: {"method":"initialize",…}
    2025-07-28T21:22:03.986Z [weather] [info] Message from server: {"jsonrpc":"2.0",…} { metadata: undefined }

The format is not published. These forms, old and new, are from logs that users paste into issues. A line with a time
comes from the client. A line without a time is stderr of the server, unless it continues an object that such a line
began, or is part of a stack trace. The client logs messages after parsing, so they are not byte for byte. Of a line
that it could not parse, it logs the error of the parser, which quotes a short line whole, of a longer one ten
characters or twenty, and of some none. In 2024, the name of the server was in the text:

    2024-12-04T12:49:49.902Z [error] Error in MCP connection to server notes: SyntaxError: Unexpected token '>', …
"""

import re
from typing import BinaryIO

from mcpspy.importers.captures import Captures, ImportedServer, iso
from mcpspy.importers.client_log import record_message
from mcpspy.importers.text import lines

LINE = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\dT[\d:.]{8,15}Z) "
    rb"(?:\[(?P<early>[^\]]*)\] )?\[(?P<level>error|warn|info|debug|trace|verbose|silly)\] (?:\[(?P<late>[^\]]*)\] )?"
    rb"(?P<rest>.*)"
)
_MESSAGE = re.compile(r"Message from (client|server): (?=[{\[])")
_NOT_JSON = re.compile(r"is not valid JSON|in JSON at position|after JSON at position|Unexpected end of JSON input")
_QUOTED = re.compile(
    r'(?:Unexpected token .{1,8}?, )?(?P<cut>\.\.\.)?"(?P<text>.*?)"(?P<more>\.\.\.)? is not valid JSON'
)
_PARTS = {(False, True): "beginning", (True, False): "end", (True, True): "middle"}
_UNSTARTED = re.compile(r"spawn (?:.{1,500}? )?E[A-Z]{3,}\b|Failed to spawn process: .{1,500}")
_EXITED = re.compile(r"Server transport closed unexpectedly[^.{]*")
_OF_SERVER = re.compile(
    r"(?P<start>Attempting to connect to) MCP server (?P<begun>.+)\.\.\.$"
    r"|Error in MCP connection to server (?P<name>.+?): (?:\w*Error: )?(?P<rest>.*)"
)
"""The lines of 2024 that name the server in their text."""
_TRACE = re.compile(rb"    at \S.*")
_START = "Initializing server"
_ROLES = {"client": "stdin", "server": "stdout"}
_FIELDS = {"transport": "stdio", "argv": []}


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the messages of each server in a log; each start of a server begins a new capture.

    Raises CaptureError if captures cannot be written.
    """
    account = captures.account
    server, wall, inside, level = captures.name, 0, False, b""
    for line in lines(file):
        account.read += 1
        account.advance(len(line or b"") + 1)
        found = LINE.fullmatch(line) if line is not None else None
        if line is None:
            account.lost += 1
        elif found:
            try:
                wall = iso(found["time"].decode())
            except ValueError:
                account.lost += 1
                continue
            server = (found["early"] or found["late"] or b"").decode("utf-8", "replace") or captures.name
            level, rest = found["level"], found["rest"].decode("utf-8", "replace")
            if named := _OF_SERVER.match(rest):
                server, rest = named["begun"] or named["name"], _START if named["start"] else named["rest"]
            inside = rest.endswith("{") and not _MESSAGE.match(rest)
            _log(rest, captures, server, wall)
        elif inside:
            inside = not line.startswith(b"}")
        elif line and wall and not (level == b"error" and _TRACE.fullmatch(line)):
            level = b""
            _stderr(line, captures, server, wall)


def _stderr(line: bytes, captures: Captures, server: str, wall: int) -> None:
    """Record a line of the server, or of the program with which the client starts servers."""
    recording = captures.get(server, wall, server, _FIELDS)
    if failed := _UNSTARTED.fullmatch(line.decode("utf-8", "replace")):
        recording.ended(wall, why=failed[0])
    else:
        recording.line("stderr", wall, line)


def _log(rest: str, captures: Captures, server: str, wall: int) -> None:
    """Record a line of the client."""
    said = _MESSAGE.match(rest)
    if rest.startswith(_START):
        captures.finish(server)
    elif said:
        record_message(captures.get(server, wall, server, _FIELDS), _ROLES[said[1]], wall, rest, said.end())
    elif _NOT_JSON.search(rest):
        _not_json(rest, captures.get(server, wall, server, _FIELDS), wall)
    elif failed := _UNSTARTED.match(rest):
        captures.get(server, wall, server, _FIELDS).ended(wall, why=failed[0])
    elif failed := _EXITED.match(rest):
        recording = captures.get(server, wall, server, _FIELDS)
        recording.ended(wall, why=None if recording.answers else failed[0])


def _not_json(error: str, recording: ImportedServer, wall: int) -> None:
    """Record what the error of the parser quotes of a line; that may be a secret, as in any text that is quoted."""
    quoted = _QUOTED.match(error)
    if quoted:
        recording.line("stdout", wall, recording.recording.redactor.url(quoted["text"]).encode())
        part = _PARTS.get((bool(quoted["cut"]), bool(quoted["more"])))
        if part:
            recording.gap(wall, 1, f"the log has only the {part} of this line")
    else:
        why = f"Claude Desktop could not read a line of the server, which the log does not hold: {error[:200]}"
        recording.gap(wall, 1, why)
