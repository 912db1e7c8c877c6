"""Which items of two arrays correspond, so that one item more at the top is one difference and not all of them (R-15).

Where every item has a name, a URI or an id of its own, items correspond that share it, wherever they stand. In other
arrays the order counts: equal items that stand in the same order are kept, as in an edit script. What stands between
two kept items has changed: there, items of one structure correspond first, and then the first with the first.

Pure, in n log n. Two arrays the other way round give the same pairs the other way round.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Pair = tuple[int | None, int | None]
"""The places of two items that correspond; None where one has no counterpart."""
Key = Callable[[Any], str]
"""Takes an item, and gives a text that is the same for items that are alike."""

_NAMES = ("name", "uri", "uriTemplate", "id")


def aligned(one: Sequence[Any], other: Sequence[Any], keys: Sequence[Key]) -> list[Pair]:
    """The pairs of two arrays, by name where the items have one, else by `by_order`."""
    return _by_name(one, other) or list(by_order(one, other, keys))


def _by_name(one: Sequence[Any], other: Sequence[Any]) -> list[Pair] | None:
    """The pairs by a member that tells items apart; None where no member does, or the two arrays share no item."""
    for name in _NAMES:
        places, there = _places(one, name), _places(other, name)
        if places and there and places.keys() & there.keys():
            pairs: list[Pair] = [(place, there.get(key)) for key, place in places.items()]
            return [*pairs, *((None, place) for key, place in there.items() if key not in places)]
    return None


def _places(items: Sequence[Any], name: str) -> dict[Any, int] | None:
    """The places of items by a member that each has, with another value in each; None where that is not so."""
    found: dict[Any, int] = {}
    for place, item in enumerate(items):
        value = item.get(name) if isinstance(item, dict) else None
        if type(value) not in (str, int) or value in found:
            return None
        found[value] = place
    return found


def by_order(one: Sequence[Any], other: Sequence[Any], keys: Sequence[Key]) -> Iterator[Pair]:
    """The pairs by an edit script of the first of `keys`, and between what that keeps by one of the next."""
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
    """The places of items that are alike and stand in the same order: the longest such row of n-th occurrences."""
    if other < one:  # of rows of one length the same is taken both ways
        return [(first, second) for second, first in _kept(other, one)]
    seen: Counter[str] = Counter()
    places: dict[tuple[str, int], int] = {}
    for place, key in enumerate(other):
        places[key, seen[key]] = place
        seen[key] += 1
    seen.clear()
    ends: list[int] = []  # by the length of a row, less one: the smallest place in `other` that such a row ends at
    rows: list[tuple[int, int, int]] = []  # the two places of each match, and the match before it in its row
    last: list[int] = []  # by the length of a row, less one: the match that it ends with
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
