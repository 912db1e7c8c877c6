"""The session logs of mcpsnoop: `~/.local/state/mcpsnoop/sessions/*.jsonl`, and the output of its `--trace-file`.

Each line is one object, the `Envelope` of its `internal/proxy/frame.go`. It contains the sender (`c2s`, `s2c`,
`stderr`), the time, and the message as `raw`, or as `text` if it is not JSON. The first line contains the wrapped
command (`meta`). Its encoder compacts a message and escapes `<`, `>` and `&` in it. For HTTP it keeps a few values and
no heads, so such a session is recorded as lines.
"""

import json
from typing import Any, BinaryIO

from mcpspy.importers.captures import DAMAGED, Captures, Torn, iso, lose
from mcpspy.importers.text import lines, members, sound

_ROLES = {"c2s": "stdin", "s2c": "stdout", "stderr": "stderr"}
_NAMES = ("session_id", "server_label", "direction")


def record(file: BinaryIO, captures: Captures) -> None:
    """Record each session of a log in a capture of its own. Raises CaptureError if captures cannot be written."""
    try:
        _lines(file, captures)
    except Torn as torn:
        captures.account.fault = str(torn)


def _lines(file: BinaryIO, captures: Captures) -> None:
    commands: dict[str, dict[str, Any]] = {}
    counted: dict[str, int] = {}
    for line in lines(file):
        if line == b"":
            continue
        captures.account.read += 1
        captures.account.advance(len(line or b"") + 1)
        try:
            _envelope((line or b"").decode("utf-8", "replace"), captures, commands, counted)
        except DAMAGED as error:
            lose(captures.account, error)


def _envelope(line: str, captures: Captures, commands: dict[str, dict[str, Any]], counted: dict[str, int]) -> None:
    written = members(line)
    session, label, direction = (json.loads(written[key]) for key in _NAMES)
    wall, number = iso(json.loads(written["ts"])), int(written["seq"])
    if direction == "meta":
        command = sound(json.loads(written["raw"]))
        commands[session] = {"argv": [str(word) for word in command["command"]], "cwd": command.get("cwd")}
    before, counted[session] = counted.get(session, number - 1), number
    if direction not in _ROLES:
        return
    fields = {"transport": "stdio", "argv": []} | commands.get(session, {})
    recording = captures.get(session, wall, sound(label) or "server", fields)
    if number > before + 1:
        recording.gap(wall, number - before - 1, "mcpsnoop lost frames: their numbers are missing")
    said = written["raw"] if "raw" in written else json.loads(written["text"])
    recording.line(_ROLES[direction], wall, said.encode("utf-8", "replace"))
    if written.get("truncated") == "true":
        recording.gap(wall, 1, "mcpsnoop kept only the beginning of this message")
