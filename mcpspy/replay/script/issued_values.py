"""Where messages contain values that one side issues and the other returns, and other values that are always new.

A cursor, a `requestState`, the id of a task: one side creates the value, the other side returns it, and it is opaque.
Another session has another value. So the new value replaces the recorded one where it is returned, and the values are
never compared; only their presence is. The specification defines where such values are. That is the one table here, and
nothing is guessed from the form of values.
"""

import json
from collections.abc import Iterator
from typing import Any

import orjson

from mcpspy.json_values import Path
from mcpspy.spec.revisions import SUBSCRIPTION_ID
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
    if not path:
        yield value
    elif path[0] == "*":
        for item in value if isinstance(value, list) else ():
            yield from _values(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values(value[path[0]], path[1:])
