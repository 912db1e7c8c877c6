"""Where in messages stand the values that one side issues and the other gives back, and what else is new each time.

A cursor, a `requestState`, the id of a task: one side makes it up, the other returns it, and nobody may look into it.
In another session it is another one, so it is put in place of the recorded one where it goes back, and never compared:
only whether it is there. Where such values stand is known from the specification; it is the one table here, and nothing
is guessed from what values look like.
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
_TASK = (("result", "task"), ("result",), ("result", "tasks", "*"), ("params",))  # the places of a task

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

_INPUTS = ("result", "inputRequests")  # 2026-07-28: the names of the inputs come back in `inputResponses`
_RESPONSES = ("params", "inputResponses")

GIVEN_BACK = frozenset(
    ["inputResponses", *(path[1] for paths in _RETURNED.values() for path in paths if len(path) == 2)]
)
"""The params of the client that hold such values, or are named by them."""

OPAQUE: tuple[Path, ...] = (
    *(path for paths in _ISSUED.values() for path in paths),
    ("params", "progressToken"),
    ("params", "requestId"),
    ("params", "elicitationId"),
    (*_META, SUBSCRIPTION_ID),
)
"""Of these only the presence is compared."""

VOLATILE: tuple[Path, ...] = (
    *((*task, moment) for task in _TASK for moment in ("createdAt", "lastUpdatedAt")),
    ("result", "serverInfo", "version"),
    ("result", "_meta", "io.modelcontextprotocol/serverInfo", "version"),
)
"""Not compared: when a task was at work, and the number of the server, which a new release changes in every answer."""

Scope = tuple[str, str | None, str | None]
"""Within which a value is known: its kind, and for a cursor or a state the method and name of the request."""


class Values:
    """The values issued in a recorded session, and the corresponding values of another one."""

    def __init__(self) -> None:
        self._now: dict[tuple[Scope, str], Any] = {}

    def learn(self, method: str, params: Any, recorded: Any, observed: Any) -> None:
        """Take two messages of the server that correspond; `method` and `params` are those of the request."""
        for kind, paths in _ISSUED.items():
            for path in paths:
                for before, now in zip(_values(recorded, path), _values(observed, path), strict=False):
                    self._now[_scope(kind, method, params), canonical(before)] = now
        before, now = _first(recorded, _INPUTS), _first(observed, _INPUTS)
        if isinstance(before, dict) and isinstance(now, dict):
            for name, other in renamed(before, now).items():
                self._now[_scope("input", method, params), canonical(name)] = other

    def changes(self, method: str, params: Any, message: Any) -> dict[Path, Any]:
        """The values to put into a recorded message of the client, by path."""
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
    """The names of inputs in one session by those in another: the same where they are, else by their order."""
    if before.keys() == now.keys() or len(before) != len(now):
        return {name: name for name in before}
    return dict(zip(before, now, strict=True))


def matches(path: Path, pattern: Path) -> bool:
    """Whether `path` matches a pattern; `*` in it is any one step."""
    return len(path) == len(pattern) and begins(path, pattern)


def begins(path: Path, pattern: Path) -> bool:
    """Whether `path` matches a pattern, or is below a path that does."""
    return len(path) >= len(pattern) and all(
        known in ("*", str(step)) for step, known in zip(path, pattern, strict=False)
    )


def _scope(kind: str, method: str, params: Any) -> Scope:
    """Cursors and states are the server's own words in one listing or call: two of those may use the same."""
    return (kind, method, subject(method, params)) if kind in ("cursor", "state", "input") else (kind, None, None)


def canonical(value: Any) -> str:
    """A text that equal JSON values share, whatever the order of their members."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a lone surrogate, a number of many digits, a great depth
        try:
            return json.dumps(value, sort_keys=True)
        except RecursionError:
            return "too deep to tell"


def _first(value: Any, path: Path) -> Any:
    return next(_values(value, path), None)


def _values(value: Any, path: Path) -> Iterator[Any]:
    """The values at the places that match `path`."""
    if not path:
        yield value
    elif path[0] == "*":
        for item in value if isinstance(value, list) else ():
            yield from _values(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values(value[path[0]], path[1:])
