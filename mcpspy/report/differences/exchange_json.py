"""A compared exchange as values for JSON, and JSON of any value that peers sent."""

import json
from typing import Any

import orjson

from mcpspy.replay.compare.sessions import Compared
from mcpspy.replay.compare.values import ABSENT, Difference

_LEVELS = 200  # levels of JSON that are kept if Python cannot write it unchanged


def exchange_fields(it: Compared) -> dict[str, Any]:
    """Return the outcome of an exchange, for programs."""
    fields = {"request": it.request, "method": it.method, "name": it.name, "outcome": it.outcome}
    return fields | {"differences": [difference_fields(one) for one in it.differences], "reason": it.reason}


def difference_fields(difference: Difference) -> dict[str, Any]:
    """Return a difference, for programs. A missing value has no member."""
    sides = {"recorded": difference.recorded, "observed": difference.observed}
    return {"pointer": difference.pointer} | {name: value for name, value in sides.items() if value is not ABSENT}


def to_json(value: Any) -> str:
    """Return compact JSON of values that peers sent, which may contain lone surrogates and long numbers."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        pass
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return json.dumps(_cut(value, _LEVELS), separators=(",", ":"))


def _cut(value: Any, levels: int) -> Any:
    """Return a value in which deeper nesting is replaced by a sentence."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return "what is nested too deeply to show"
    if isinstance(value, dict):
        return {name: _cut(inner, levels - 1) for name, inner in value.items()}
    return [_cut(inner, levels - 1) for inner in value]
