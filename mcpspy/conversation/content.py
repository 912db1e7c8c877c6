"""What a row shows of a message beside its method, and of a record that is none.

That is what a log message or progress says, who introduces itself, how the server ended, which gates are in force.

The theory. A row has room for some words, and a message may have megabytes, so no more is written than a row can hold.
Peers send anything: what has another shape than the specification gives it is shown as the JSON that it is (R-14).
"""

import json
import signal as signals
from collections.abc import Callable
from typing import Any

from mcpspy.capture.records import End, Gap, Gates, Signal
from mcpspy.json_values import excerpt, member

_LONGEST = 300  # characters
_META = "io.modelcontextprotocol/"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def content(kind: str, method: str | None, value: Any) -> str | None:
    """The words for a decoded message of a kind and a method (of a response: its request's); None for most messages."""
    look = _SHOWN.get((kind, method))
    return (look(value) or None) if look and isinstance(value, dict) else None


def has_content(kind: str, method: str | None) -> bool:
    """Whether `content` may have words for such messages."""
    return (kind, method) in _SHOWN


def _log(value: Any) -> str:
    """`log info: text`, with the logger in brackets (server/utilities/logging)."""
    level, logger, data = (member(value, "params", name) for name in ("level", "logger", "data"))
    start = "log" if level is None else f"log {_text(level)}"
    words = ([] if logger is None else [f"[{_text(logger)}]"]) + ([] if data is None else [_text(data)])
    return f"{start}: {' '.join(words)}"


def _progress(value: Any) -> str:
    """`2/3: message` (basic/utilities/progress)."""
    done, total, message = (member(value, "params", name) for name in ("progress", "total", "message"))
    if done is None:
        return ""
    found = _text(done) if total is None else f"{_text(done)}/{_text(total)}"
    return found if message is None else f"{found}: {_text(message)}"


def _introduction(*path: str) -> Callable[[Any], str]:
    """Takes `name version` from the implementation at a path."""

    def look(value: Any) -> str:
        found = member(value, *path)
        parts = (member(found, "name"), member(found, "version"))
        return " ".join(_text(part) for part in parts if part is not None)

    return look


def _text(value: Any) -> str:
    """A string as it is, 2.0 as 2, another value as JSON; no more than a row can hold."""
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # Python peers count in floats
    found = ""
    try:
        for piece in _ENCODER.iterencode(value):
            found += piece[:_LONGEST]
            if len(found) > _LONGEST:
                break
    except RecursionError:
        return excerpt(value)
    return found


_SHOWN: dict[tuple[str, str | None], Callable[[Any], str]] = {
    ("notification", "notifications/message"): _log,
    ("notification", "notifications/progress"): _progress,
    ("request", "initialize"): _introduction("params", "clientInfo"),
    ("result", "initialize"): _introduction("result", "serverInfo"),
    ("request", "server/discover"): _introduction("params", "_meta", f"{_META}clientInfo"),
    ("result", "server/discover"): _introduction("result", "_meta", f"{_META}serverInfo"),
}
"""By kind and method: what finds the words."""


def record_text(record: Gap | Signal | Gates | End) -> str:
    """What a row shows of a record that is no frame."""
    if isinstance(record, Gap):
        return f"{record.lost} lost: {record.why}"
    if isinstance(record, Signal):
        return _signal_text(record)
    return _gates_text(record) if isinstance(record, Gates) else _end_text(record)


def _signal_text(signal: Signal) -> str:
    try:
        name = signals.Signals(signal.signal).name
    except ValueError:
        name = str(signal.signal)
    if signal.to == "group":
        return f"{name} to the process group" + (", forwarded to the server" if signal.forwarded else "")
    return f"{name} to mcpspy, {'' if signal.forwarded else 'not '}forwarded to the server"


def _gates_text(gates: Gates) -> str:
    names = ", ".join(str(gate.get("name", "?")) for gate in gates.gates) or "none in force"
    return f"{names} (set by {'the gate file' if gates.by == 'file' else 'a viewer'})"


def _end_text(end: End) -> str:
    if end.signal is not None:
        return f"the server was killed by signal {end.signal}"
    if end.code is None:
        return end.why or "the recording ended"
    return end.why or f"the server exited with code {end.code}"
