"""Which elements of two arrays correspond, so that one more element at the top is one difference (R-15).

If every element has a name, a URI or an id of its own, elements with the same one correspond, wherever they are. In
other arrays the order matters: equal elements in the same order are kept, as in an edit script. What is between two
kept elements has changed: there, elements with the same structure correspond first, and then the remaining ones by
their position.

Pure, in n log n. If the two arrays are swapped, the pairs are swapped too.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

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
