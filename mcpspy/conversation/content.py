"""What a row shows of a message beside its method: what a log message or progress says, and who introduces itself.

The theory. A row has room for some words, and a message may have megabytes, so no more is written than a row can hold.
Peers send anything: what has another shape than the specification gives it is shown as the JSON that it is (R-14).
"""

import json
from collections.abc import Callable
from typing import Any

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
