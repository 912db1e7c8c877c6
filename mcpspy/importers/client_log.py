"""What the logs of clients have in common: a line that ends with a message, as the client parsed it."""

import json
from typing import Any

from mcpspy.conversation.preview import INTRODUCE
from mcpspy.importers.captures import ImportedServer
from mcpspy.importers.text import checked
from mcpspy.json_values import member
from mcpspy.spec.revisions import PROTOCOL_VERSION

_SIDES = {"stdin": "client", "stdout": "server"}
_REVISION = ("params", "_meta", PROTOCOL_VERSION)
"""Where a request states its revision if it needs no handshake (2026-07-28)."""


def record_message(server: ImportedServer, role: str, wall: int, text: str, start: int) -> int:
    """Record the message that begins at `start` in the text of a log line; return where it ends.

    A message that is not whole is a gap. If a session does not begin with the first message, a gap precedes it: the log
    is the later part of a file, or its level was changed during the session.
    """
    first, server.spoke = not server.spoke, True
    try:
        message, end = json.JSONDecoder().raw_decode(checked(text), start)
    except (ValueError, RecursionError):
        server.gap(wall, 1, f"the log has a message of the {_SIDES[role]} only in part")
        return len(text)
    if first and not _begins_session(message):
        server.gap(wall, 1, "the log does not have the beginning of this session")
    server.line(role, wall, text[start:end].encode())
    return end


def _begins_session(message: Any) -> bool:
    return member(message, "method") in INTRODUCE or member(message, *_REVISION) is not None
