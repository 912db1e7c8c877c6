"""Values that one side issues and the other returns, other values that are always new, and messages with new values.

A cursor, a `requestState`, the id of a task: one side creates the value, the other side returns it, and it is opaque.
Another session has another value. So the new value replaces the recorded one where it is returned, and the values are
never compared; only their presence is. The specification defines where such values are. That is the one table here, and
nothing is guessed from the form of values.

A mock answers with the ids of its current client, and a client returns the cursors of its current server. Everything
else must be as recorded, down to the spaces, the order of members and the digits of a number. So the text of a message
is edited, not decoded and encoded again. If members have the same name, the last one counts, as in JSON parsers.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from mcpspy.conversation.model import Message
from mcpspy.json_values import Path
from mcpspy.spec.revisions import SUBSCRIPTION_ID
from mcpspy.wire.jsonrpc import Id
from mcpspy.wire.subject import subject

_META = ("params", "_meta")
_RELATED = ("_meta", "io.modelcontextprotocol/related-task", "taskId")  # 2025-11-25, tasks
_TASK = (("result", "task"), ("result",), ("result", "tasks", "*"), ("params",))  # where a message has a task

_ISSUED: dict[str, tuple[Path, ...]] = {
    "cursor": (("result", "nextCursor"),),
    "state": (("result", "requestState"),),
    "task": (*((*task, "taskId") for task in _TASK), ("result", *_RELATED), ("params", *_RELATED)),
    "token": ((*_META, "progressToken"),),
}
"""In messages of the server, by the kind of value."""

_RETURNED: dict[str, tuple[Path, ...]] = {
    "cursor": (("params", "cursor"),),
    "state": (("params", "requestState"),),
    "task": (("params", "taskId"), ("params", *_RELATED), ("result", *_RELATED)),
    "token": (("params", "progressToken"),),
}
"""In messages of the client."""

_INPUTS = ("result", "inputRequests")  # 2026-07-28: the names of the inputs are returned in `inputResponses`
_RESPONSES = ("params", "inputResponses")

GIVEN_BACK = frozenset(
    ["inputResponses", *(path[1] for paths in _RETURNED.values() for path in paths if len(path) == 2)]
)
"""The params of the client that contain such values, or members named by them."""

OPAQUE: tuple[Path, ...] = (
    *(path for paths in _ISSUED.values() for path in paths),
    ("params", "progressToken"),
    ("params", "requestId"),
    ("params", "elicitationId"),
    (*_META, SUBSCRIPTION_ID),
)
"""Values that are compared by presence only."""

VOLATILE: tuple[Path, ...] = (
    *((*task, moment) for task in _TASK for moment in ("createdAt", "lastUpdatedAt")),
    ("result", "serverInfo", "version"),
    ("result", "_meta", "io.modelcontextprotocol/serverInfo", "version"),
)
"""Values that are not compared: the times of tasks, and the server's version, which changes with each release."""

Scope = tuple[str, str | None, str | None]
"""The scope of a value: its kind, and for a cursor or a state the method and name of the request."""


class Values:
    """The values issued in a recorded session, and the corresponding values of another one."""

    def __init__(self) -> None:
        self._now: dict[tuple[Scope, str], Any] = {}

    def learn(self, method: str, params: Any, recorded: Any, observed: Any) -> None:
        """Learn from two messages of the server that correspond; `method` and `params` are those of the request."""
        for kind, paths in _ISSUED.items():
            for path in paths:
                for before, now in zip(_values(recorded, path), _values(observed, path), strict=False):
                    self._now[_scope(kind, method, params), canonical(before)] = now
        before, now = _first(recorded, _INPUTS), _first(observed, _INPUTS)
        if isinstance(before, dict) and isinstance(now, dict):
            for name, other in renamed(before, now).items():
                self._now[_scope("input", method, params), canonical(name)] = other

    def changes(self, method: str, params: Any, message: Any) -> dict[Path, Any]:
        """Return the values to put into a recorded message of the client, by path."""
        changes: dict[Path, Any] = {}
        for kind, paths in _RETURNED.items():
            scope = _scope(kind, method, params)
            for path in paths:
                for value in _values(message, path):
                    now = self._now.get((scope, canonical(value)), value)
                    if now != value:
                        changes[path] = now
        responses = _first(message, _RESPONSES)
        if isinstance(responses, dict):
            scope = _scope("input", method, params)
            names = {name: self._now.get((scope, canonical(name)), name) for name in responses}
            if any(name != other for name, other in names.items()):
                changes[_RESPONSES] = {names[name]: value for name, value in responses.items()}
        return changes


def issued(method: str, params: Any, message: Any) -> set[tuple[Scope, str]]:
    """Return the values that a message of the server issues; `method` and `params` are those of its request."""
    return _found(_ISSUED, method, params, message)


def returned(method: str, params: Any, message: Any) -> set[tuple[Scope, str]]:
    """Return the values of the server that a message of the client returns."""
    return _found(_RETURNED, method, params, message)


def _found(table: Mapping[str, Sequence[Path]], method: str, params: Any, message: Any) -> set[tuple[Scope, str]]:
    return {
        (_scope(kind, method, params), canonical(value))
        for kind, paths in table.items()
        for path in paths
        for value in _values(message, path)
    }


def reissued(recorded: Any, observed: Any) -> dict[Path, Any]:
    """Return the recorded values that are different in a message of another session, by their path in it."""
    found: dict[Path, Any] = {}
    for pattern in OPAQUE:
        now = dict(_places(observed, pattern))
        found |= {path: value for path, value in _places(recorded, pattern) if now.get(path, value) != value}
    return found


def renamed(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """Return the names of inputs in the new session by the recorded names: the same if equal, else by their order."""
    if before.keys() == now.keys() or len(before) != len(now):
        return {name: name for name in before}
    return dict(zip(before, now, strict=True))


def matches(path: Path, pattern: Path) -> bool:
    """Return whether `path` matches a pattern; `*` in it is any one step."""
    return len(path) == len(pattern) and begins(path, pattern)


def begins(path: Path, pattern: Path) -> bool:
    """Return whether `path` matches a pattern, or is below a path that does."""
    return len(path) >= len(pattern) and all(
        known in ("*", str(step)) for step, known in zip(path, pattern, strict=False)
    )


def _scope(kind: str, method: str, params: Any) -> Scope:
    """Return the scope of a value: cursors and states are unique only within one listing or call."""
    return (kind, method, subject(method, params)) if kind in ("cursor", "state", "input") else (kind, None, None)


def canonical(value: Any) -> str:
    """Return a text that equal JSON values share, whatever the order of their members."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a lone surrogate, a number of many digits, deep nesting
        try:
            return json.dumps(value, sort_keys=True)
        except RecursionError:
            return "too deep to tell"


def _first(value: Any, path: Path) -> Any:
    return next(_values(value, path), None)


def _values(value: Any, path: Path) -> Iterator[Any]:
    """Yield the values at the places that match `path`."""
    return (found for _, found in _places(value, path))


def _places(value: Any, pattern: Path, before: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the places that match a pattern, with their values."""
    if not pattern:
        yield before, value
    elif pattern[0] == "*":
        for place, item in enumerate(value if isinstance(value, list) else ()):
            yield from _places(item, pattern[1:], (*before, place))
    elif isinstance(value, dict) and pattern[0] in value:
        yield from _places(value[pattern[0]], pattern[1:], (*before, pattern[0]))


_SPACE = re.compile("[ \t\r\n\ufeff]*")  # also a byte order mark, which lenient peers skip
_scan = json.JSONDecoder(strict=False).raw_decode


def rewritten(message: Message, changes: Mapping[Path, Any]) -> bytes:
    """Return the bytes of a message, changed by `edited`."""
    return edited(message.frame.raw, message.part, changes)


def edited(raw: bytes, part: int, changes: Mapping[Path, Any]) -> bytes:
    """Return element `part` of a frame, on one line, with `changes[path]` in place of the JSON value at each path.

    Paths that do not exist are ignored. An `Id` stands for the id with its own digits. An element of a batch is
    returned alone. A frame that is not JSON is returned unchanged.
    """
    batch = raw.lstrip()[:1] == b"["
    if not batch and not changes:
        return _one_line(raw)
    text = raw.decode("utf-8", "surrogateescape")
    try:
        whole = _span(text, 0, (part,) if batch else ()) or (0, len(text))
        spans = [(span, value) for path, value in changes.items() if (span := _span(text, whole[0], path))]
    except (ValueError, IndexError, RecursionError):
        return _one_line(raw)
    start, end = whole if batch else (0, len(text))
    parts = []
    for (first, last), value in sorted(spans, key=lambda found: found[0], reverse=True):
        parts += [text[last:end], json_text(value)]
        end = first
    parts.append(text[start:end])
    return _one_line("".join(reversed(parts)).encode("utf-8", "surrogateescape"))


def _one_line(raw: bytes) -> bytes:
    """Return a message as a line of stdio: in JSON, newlines only separate tokens, so a space is equivalent."""
    return raw.replace(b"\n", b" ")


def json_text(value: Any) -> str:
    """Return a value as JSON; an `Id` with its own digits."""
    if isinstance(value, Id):
        return value.text
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _span(text: str, at: int, path: Path) -> tuple[int, int] | None:
    """Return the start and end of the value at `path`, in the value that begins at `at`."""
    at = _skip(text, at)
    if not path:
        return at, _scan(text, at)[1]
    found = None
    for step, start in _members(text, at):
        if step == path[0]:
            found = _span(text, start, path[1:])
    return found


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Yield the name or index of each member of the object or array at `at`, and where its value begins."""
    named = text[at] == "{"
    if not named and text[at] != "[":
        return
    at = _skip(text, at + 1)
    place = 0
    while text[at] not in "]}":
        step: str | int = place
        if named:
            step, at = _scan(text, at)
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        yield step, at
        at = _skip(text, _scan(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
        place += 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
