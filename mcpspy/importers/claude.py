"""The logs of Claude Desktop: `mcp-server-NAME.log`, and `mcp.log` for all servers together.

    2025-06-27T07:58:07.774Z [info] [weather] Message from client: {"method":"initialize",…}
    2025-07-28T21:22:03.986Z [weather] [info] Message from server: {"jsonrpc":"2.0",…} { metadata: undefined }

The format is not published. These forms, old and new, are from logs that users paste into issues. A line with a time
comes from the client. A line without a time is stderr of the server, unless it continues an object that such a line
began. The client logs messages after parsing, so they are not byte for byte. For a line that it could not parse, it
logs only that fact.
"""

import json
import re
from typing import BinaryIO

from mcpspy.importers.captures import Captures, iso
from mcpspy.importers.text import checked, lines

LINE = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\dT[\d:.]{8,15}Z) "
    rb"(?:\[(?P<early>[^\]]*)\] )?\[(?P<level>error|warn|info|debug|trace|verbose|silly)\] (?:\[(?P<late>[^\]]*)\] )?"
    rb"(?P<rest>.*)"
)
_MESSAGE = re.compile(r"Message from (client|server): (?=[{\[])")
_NOT_JSON = re.compile(r"is not valid JSON|in JSON at position|after JSON at position")
_ROLES = {"client": "stdin", "server": "stdout"}
_FIELDS = {"transport": "stdio", "argv": []}


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the messages of each server in a log; each start of a server begins a new capture.

    Raises CaptureError if captures cannot be written.
    """
    account = captures.account
    server, wall, inside = captures.name, 0, False
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
            rest = found["rest"].decode("utf-8", "replace")
            inside = rest.endswith("{") and not _MESSAGE.match(rest)
            _log(rest, captures, server, wall)
        elif inside:
            inside = not line.startswith(b"}")
        elif line and wall:
            captures.get(server, wall, server, _FIELDS).line("stderr", wall, line)


def _log(rest: str, captures: Captures, server: str, wall: int) -> None:
    """Record a line of the client."""
    said = _MESSAGE.match(rest)
    if rest.startswith("Initializing server"):
        captures.finish(server)
    elif said:
        recording = captures.get(server, wall, server, _FIELDS)
        try:
            _, end = json.JSONDecoder().raw_decode(checked(rest), said.end())
        except (ValueError, RecursionError):
            recording.gap(wall, 1, f"the log has a message of the {said[1]} only in part")
        else:
            recording.line(_ROLES[said[1]], wall, rest[said.end() : end].encode())
    elif _NOT_JSON.search(rest):
        why = f"Claude Desktop could not read a line of the server, which the log does not hold: {rest[:200]}"
        captures.get(server, wall, server, _FIELDS).gap(wall, 1, why)
