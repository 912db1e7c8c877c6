"""The differences between two JSON values, by JSON Pointer (RFC 6901).

Two values are walked side by side. Numbers are equal by value (1 equals 1.0, but not true). A text that contains a JSON
object or array is parsed and compared as that, and the pointer continues inside it. In a listing (tools, resources,
templates, prompts) the entries are matched by their names, and the pointer contains the name instead of an index. The
elements of other arrays are aligned. A pointer contains the index in the recorded array, or, for an element that only
the observed array has, the index there. So one more element at the top is one difference and not twenty. With `shape`
only the structure counts: the names and types of members, and the kinds of elements in an array, not their number.

Two arrays are aligned like this (R-15). If every element has a name, a URI or an id of its own, elements with the same
one correspond, wherever they are. In other arrays the order matters: equal elements in the same order are kept, as in
an edit script. What is between two kept elements has changed: there, elements with the same structure correspond first,
and then the remaining ones by their position. This takes n log n. If the two arrays are swapped, the pairs are swapped
too.

Elements are aligned by their whole content, again at each level of nested arrays. Hostile values would make that take
very long, so it has a limit (`Effort`). Beyond the limit, elements are distinguished only by their type and length.

Pure: a value never differs from itself, and a difference in one direction is a difference in the other.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from mcpspy.json_values import Number, Path, pointer
from mcpspy.replay.issued_values import OPAQUE, VOLATILE, canonical, matches, renamed
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import decode

Pair = tuple[int | None, int | None]
"""The indexes of two elements that correspond; None for an element without a counterpart."""
Key = Callable[[Any], str]
"""A function that returns a text for an element; the text is the same for similar elements."""

_NAMES = ("name", "uri", "uriTemplate", "id")


def aligned(one: Sequence[Any], other: Sequence[Any], keys: Sequence[Key]) -> list[Pair]:
    """Return the pairs of two arrays: by name if the elements have one, else by `by_order`."""
    return _by_name(one, other) or list(by_order(one, other, keys))


def _by_name(one: Sequence[Any], other: Sequence[Any]) -> list[Pair] | None:
    """Return the pairs by a member that is unique; None if there is no such member, or no element in common."""
    for name in _NAMES:
        places, there = _places(one, name), _places(other, name)
        if places and there and places.keys() & there.keys():
            pairs: list[Pair] = [(place, there.get(key)) for key, place in places.items()]
            return [*pairs, *((None, place) for key, place in there.items() if key not in places)]
    return None


def _places(items: Sequence[Any], name: str) -> dict[Any, int] | None:
    """Return the indexes of elements by a member; None if an element lacks it or two have the same value."""
    found: dict[Any, int] = {}
    for place, item in enumerate(items):
        value = item.get(name) if isinstance(item, dict) else None
        if type(value) not in (str, int) or value in found:
            return None
        found[value] = place
    return found


def by_order(one: Sequence[Any], other: Sequence[Any], keys: Sequence[Key]) -> Iterator[Pair]:
    """Yield the pairs of an edit script by the first of `keys`; use the next key between the elements that it keeps."""
    if not one or not other or not keys:
        yield from zip(range(len(one)), range(len(other)), strict=False)
        yield from ((place, None) for place in range(len(other), len(one)))
        yield from ((None, place) for place in range(len(one), len(other)))
        return
    at = there = 0
    for kept in [*_kept([keys[0](item) for item in one], [keys[0](item) for item in other]), (len(one), len(other))]:
        for first, second in by_order(one[at : kept[0]], other[there : kept[1]], keys[1:]):
            yield None if first is None else first + at, None if second is None else second + there
        if kept != (len(one), len(other)):
            yield kept
        at, there = kept[0] + 1, kept[1] + 1


def _kept(one: list[str], other: list[str]) -> list[tuple[int, int]]:
    """Return the indexes of similar elements in the same order: the longest such sequence of n-th occurrences."""
    if other < one:  # of sequences with the same length, choose the same one in both directions
        return [(first, second) for second, first in _kept(other, one)]
    seen: Counter[str] = Counter()
    places: dict[tuple[str, int], int] = {}
    for place, key in enumerate(other):
        places[key, seen[key]] = place
        seen[key] += 1
    seen.clear()
    ends: list[int] = []  # by length of a sequence, minus one: the smallest index in `other` at which one ends
    rows: list[tuple[int, int, int]] = []  # the two indexes of each match, and the match before it in its sequence
    last: list[int] = []  # by length of a sequence, minus one: its last match
    for place, key in enumerate(one):
        there = places.get((key, seen[key]))
        seen[key] += 1
        if there is None:
            continue
        length = bisect_left(ends, there)
        rows.append((place, there, last[length - 1] if length else -1))
        ends[length : length + 1] = [there]
        last[length : length + 1] = [len(rows) - 1]
    found, match = [], last[-1] if last else -1
    while match >= 0:
        place, there, match = rows[match]
        found.append((place, there))
    return found[::-1]


LISTINGS: Final = {"tools": "name", "resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}
"""The arrays of listings, and the member that identifies their entries."""

_TEXT = 8  # bytes of a text with JSON that cost as much as one value

_VOLATILE_ENDS, _OPAQUE_ENDS = ({path[-1:] for path in paths} for paths in (VOLATILE, OPAQUE))
_IS_ERROR = ("result", "isError")  # "If not set, this is assumed to be false" (server/tools)


class Absent:
    """The type of `ABSENT`: there is no value."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = Absent()


@dataclass(slots=True)
class Effort:
    """How much one comparison may still examine to align elements, counted in values and bytes of text."""

    left: int = 2_000_000

    def allows(self, *values: Any) -> bool:
        """Return whether enough is left to examine all of these values, and subtract what that costs."""
        inner = list(values)
        while inner and self.left > 0:
            value = inner.pop()
            self.left -= 1
            if isinstance(value, str):
                self.left -= len(value) // _TEXT
            elif isinstance(value, list | dict) and len(value) < self.left:
                inner.extend(value.values() if isinstance(value, dict) else value)
            elif isinstance(value, list | dict):
                self.left = 0
        return self.left > 0


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where two values differ."""

    path: Path
    recorded: Any
    observed: Any
    matcher: str = ""
    """What the values here have to match, if they may differ: `is date-time`."""

    @property
    def pointer(self) -> str:
        """The place as a JSON Pointer; empty for the whole value."""
        return pointer(*self.path)


Part = tuple[str | int, Any, Any]
"""A member or an element of two values: its name or index, and its value in each of them."""


def excerpt(value: Any, limit: int = 60) -> str:
    """Return a value as one short line of JSON."""
    if value is ABSENT:
        return "nothing"
    try:
        return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")), limit)
    except RecursionError:
        return "what is nested too deeply to show"


def differences(recorded: Any, observed: Any, *, shape: bool = False) -> list[Difference]:
    """Return where two messages differ, or parts of them that begin with `result`, `error` or `params`."""
    try:
        return list(_walk(recorded, observed, (), shape, Effort()))
    except RecursionError:  # some hundred levels: not a real message, but perhaps an attack
        return [Difference((), recorded, observed)]


def answer_differences(recorded: Any, observed: Any, *, shape: bool = False) -> list[Difference]:
    """Return where two responses differ, each `{"result": …}` or `{"error": …}`.

    A result and an error differ as a whole.
    """
    if recorded.keys() != observed.keys():
        return [Difference((), recorded, observed)]
    return differences(recorded, observed, shape=shape)


def step(
    one: Any, other: Any, path: Path, *, shape: bool = False, effort: Effort | None = None
) -> Difference | list[Part] | None:
    """Take one step of a comparison: return the parts of two values at `path`, their difference, or None."""
    if path[-1:] in _VOLATILE_ENDS and any(matches(path, pattern) for pattern in VOLATILE):
        return None
    if path == _IS_ERROR:
        one, other = [False if value is ABSENT else value for value in (one, other)]
    if one is ABSENT or other is ABSENT:
        return None if one is other else Difference(path, one, other)
    if path[-1:] in _OPAQUE_ENDS and any(matches(path, pattern) for pattern in OPAQUE):
        return None
    parsed = _parsed(one), _parsed(other)
    if parsed[0] is not ABSENT and parsed[1] is not ABSENT:
        one, other = parsed
    if isinstance(one, dict) and isinstance(other, dict):
        return _members(one, other, path)
    if isinstance(one, list) and isinstance(other, list):
        return _items(one, other, path, shape, effort or Effort())
    same = _same_type(one, other) if shape and path != _IS_ERROR else _equal(one, other)
    return None if same else Difference(path, one, other)


def _walk(one: Any, other: Any, path: Path, shape: bool, effort: Effort) -> Iterator[Difference]:
    found = step(one, other, path, shape=shape, effort=effort)
    if isinstance(found, Difference):
        yield found
        return
    for name, first, second in found or ():
        yield from _walk(first, second, (*path, name), shape, effort)


def _members(one: dict[str, Any], other: dict[str, Any], path: Path) -> list[Part]:
    if path[-1:] == ("inputRequests",):
        names = {now: before for before, now in renamed(one, other).items()}
        other = {names.get(name, name): value for name, value in other.items()}
    names_of_both = [*one, *(name for name in other if name not in one)]
    return [(name, one.get(name, ABSENT), other.get(name, ABSENT)) for name in names_of_both]


def _items(one: list[Any], other: list[Any], path: Path, shape: bool, effort: Effort) -> list[Part]:
    named = by_name(one, path), by_name(other, path)
    if named[0] is not None and named[1] is not None:
        return _members(named[0], named[1], path)
    whole = effort.allows(one, other)
    look = _structure if whole else _outside
    if shape:
        if not one or not other:
            return []  # the kinds of the elements are not known
        kinds = _kinds(one, look), _kinds(other, look)
        pairs = list(by_order(list(kinds[0]), list(kinds[1]), (str,)))
        one, other = (list(kind.values()) for kind in kinds)
    else:
        pairs = aligned(one, other, (canonical, look) if whole else (look,))
    found: list[Part] = []
    for place, there in pairs:
        name = place if place is not None else there
        assert name is not None  # a pair has at least one
        found.append((name, ABSENT if place is None else one[place], ABSENT if there is None else other[there]))
    return found


def by_name(items: list[Any], path: Path) -> dict[str, Any] | None:
    """Return the entries of a listing by name; None for another array, or if two have the same name."""
    key = LISTINGS.get(str(path[-1])) if len(path) == 2 and path[0] == "result" else None
    if key is None:
        return None
    found = {item[key]: item for item in items if isinstance(item, dict) and isinstance(item.get(key), str)}
    return found if len(found) == len(items) else None


def _kinds(items: list[Any], look: Key) -> dict[str, Any]:
    """Return one element of each structure, in an order that does not depend on theirs."""
    kinds: dict[str, Any] = {}
    for item in items:
        kinds.setdefault(look(item), item)
    return dict(sorted(kinds.items(), key=lambda kind: kind[0]))


def _structure(value: Any) -> str:
    """Return a text that values of one structure share: JSON with type names in place of scalar values."""
    parsed = _parsed(value)
    value = value if parsed is ABSENT else parsed
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json.dumps(name)}: {_structure(value[name])}" for name in sorted(value)]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(sorted({_structure(item) for item in value})) + "]"
    return f'"{_type(value)}"'


def _outside(value: Any) -> str:
    """Return a text that values of one type and length share: the structure of a value too large to examine."""
    return f"{_type(value)} {len(value)}" if isinstance(value, dict | list) else _type(value)


def _parsed(value: Any) -> Any:
    """Return the JSON object or array that a text contains, else ABSENT."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value.encode("utf-8", "surrogatepass"))
        except orjson.JSONDecodeError:
            pass
    return ABSENT


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 (NaN, which peers do send)


def _same_type(one: Any, other: Any) -> bool:
    return _type(one) == _type(other)


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {int: "number", float: "number", Number: "number", dict: "object", list: "array"}.get(type(value), "string")
