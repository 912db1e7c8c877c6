"""The words of a definition: what a model reads of a tool, prompt or resource, and what people approve it by.

A client passes descriptions, including those of arguments, to a model, and shows titles and annotations to
the user who approves a call. A server that changes them can make both do something else while its schemas stay the
same. So words are compared separately from all other members. If a property is added or removed together with its
words, that is a change of the schema and not a change of words.

Definitions come from a peer: nothing is examined below `DEEPEST` levels, and nothing here recurses.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpspy.json_values import Path, excerpt

DEEPEST = 100
"""The number of levels of a definition in which words are searched."""
WORDS = ("description", "title", "annotations")
"""Members of a tool, prompt or resource that are words as a whole; so is the name of a resource, which has a URI."""
_SHOWN = 120  # characters of a text
_BEFORE = 30  # characters shown before the place where two texts differ
_TEXTS = ("description", "title", "$comment")
_SAMPLES = ("default", "examples")
_APART = ("_meta", "icons")
_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Members whose own members are named by the author: `properties` may contain one called `default`."""


class Reworded(NamedTuple):
    """A place where the words of two definitions differ; None for a definition without words there."""

    path: Path
    old: Any
    new: Any


def reworded(old: Any, new: Any) -> Iterator[Reworded]:
    """Yield where the words of two definitions of one tool, prompt or resource differ."""
    open_: list[tuple[Path, Any, Any]] = [((), old, new)]
    while open_:
        path, one, other = open_.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            for name in [*one, *(name for name in other if name not in one)]:
                before, now = one.get(name), other.get(name)
                if _is_word(path, name, before, now):
                    if not same(before, now):
                        yield Reworded((*path, name), before, now)
                elif len(path) < DEEPEST and not (not path and name in _APART):
                    open_.append(((*path, name), before, now))
        elif isinstance(one, list) and isinstance(other, list):
            open_ += [((*path, place), *pair) for place, pair in enumerate(_paired(one, other))]


def _is_word(path: Path, name: str, old: Any, new: Any) -> bool:
    """Return whether a member contains words; in a map of names only texts can."""
    if not path and (name in WORDS or name == "name"):
        return True
    if _maps_names(path):
        return False
    return (name in _TEXTS and (isinstance(old, str) or isinstance(new, str))) or (bool(path) and name in _SAMPLES)


def _maps_names(path: Path) -> bool:
    """Return whether a path points to a map of names; the value of a property called `properties` is a schema again."""
    count = 0
    while count < len(path) and path[-1 - count] in _NAMES:
        count += 1
    return count % 2 == 1


def _paired(old: list[Any], new: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the elements of two arrays in pairs: by name if they have one, such as the arguments of a prompt."""
    named = {item["name"]: item for item in old if isinstance(item, dict) and isinstance(item.get("name"), str)}
    for place, item in enumerate(new):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and name in named:
            yield named[name], item
        else:
            yield (old[place] if place < len(old) and name is None else None), item


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; False if they are nested too deeply to tell."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


def apart(old: Any, new: Any) -> tuple[str, str]:
    """Return two values that differ as short JSON, from shortly before the difference; not made printable."""
    one, other = (_text(value) for value in (old, new))
    common = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    start = common - _BEFORE if common > 2 * _BEFORE and max(len(one), len(other)) > _SHOWN else 0
    return _clipped(one, start), _clipped(other, start)


def _clipped(text: str, start: int) -> str:
    shown = ("…" if start else "") + text[start:]
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return excerpt(value)
