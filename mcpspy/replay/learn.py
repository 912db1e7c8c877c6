"""What differs between runs of one server is new each time: `learned` proposes what to allow there.

A proposal is the narrowest matcher that the recorded value and those of all runs satisfy: a form (`is`), else a regular
expression of what the texts have in common (`matches`), else a wide form, else the words that the texts begin and end
with. Where a value is missing in one run, it is to
ignore the place. Places that are items of one array become one place.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from mcpspy.replay.differences import ABSENT, Difference
from mcpspy.replay.run import Replayed
from mcpspy.replay.sessions import compare
from mcpspy.replay.tolerance import PlacePattern, Rules, Tolerance

_NARROW = ("uuid", "date-time", "date", "integer", "number")
_WIDE = ("url", "base64")
_LONGEST = 500  # characters of a text from which an expression is made
_END = 100  # characters of the beginning and of the end of a text from which one is made
_ALIKE = 3  # places with one matcher that become one place: one or two may be optional members
_SHORTEST = 16  # characters of a text that is taken for base64: any word may be that

_TIMES = {
    "date": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "time": r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?",
    "day": "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*",
    "month": "(?:[0-9]{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*(?: {1,2}[0-9]{1,2}\\b)?",
    "year": r"\b20[0-9]{2}\b",
}
"""The parts of a text that change with the time, also if all runs were on the same day."""
_UUID = {"uuid": "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"}
_LEVELS = (
    _UUID | _TIMES | {"number": r"[0-9]+\.[0-9]+|[0-9]+"},
    _UUID | _TIMES | {"word": "[A-Za-z0-9]*[0-9][A-Za-z0-9]*"},
)
"""The parts of a text that may be new each time, by the name of an expression: numbers, then words with digits."""
_CLASSES = (
    "[0-9]+",
    r"[0-9]+(?:\.[0-9]+)?",
    *(_UUID | _TIMES).values(),
    "[0-9a-f]+",
    "[A-Za-z0-9]+",
    r"\S+",
)
"""The expressions for such a part in a proposal. The first one that matches in all texts is used."""
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_NEW_KEY = re.compile("[0-9]")
"""What a key has if it is an id, and not a word."""
_INCOMPLETE = r"[\w.:-]*"
"""The part of a word at which texts begin to differ."""
_WORD = r"[^\W\d_]{3}"


def learned(runs: Sequence[Replayed], rules: Rules) -> list[Tolerance]:
    """Return what to allow where runs of one server differ. A place that has a matcher already keeps it."""
    first = runs[0]
    found: dict[PlacePattern, list[Any]] = {}
    for other in runs[1:]:
        partner = dict(other.pairs)
        pairs = [(new, partner.get(old)) for old, new in first.pairs if new]
        for it in compare(first.observed, other.observed, pairs, rules):
            for difference in it.differences:
                if not rules.concern(it.method, it.name, difference.path):
                    values = found.setdefault(place_of(it.method, it.name, difference), [])
                    values += [difference.recorded, difference.observed]
    recorded = [(new, old) for old, new in first.pairs if old and new]
    for it in compare(first.observed, first.recorded, recorded, rules):
        for difference in it.differences:
            if (place := place_of(it.method, it.name, difference)) in found:
                found[place].append(difference.observed)
    return joined([narrowest(place, values) for place, values in found.items()])


def joined(found: Sequence[Tolerance]) -> list[Tolerance]:
    """Return one place for several items of an array, or several keys that are new in each run, with one matcher.

    What is below an ignored place is left out.
    """
    groups: dict[Tolerance, list[Tolerance]] = {}
    for it in found:
        groups.setdefault(_in_each(it), []).append(it)
    kept = [it for every, parts in groups.items() for it in ([every] if len(parts) >= _ALIKE else parts)]
    ignored = [it.place for it in kept if it.by == "ignore"]
    return [it for it in kept if not any(place != it.place and _covers(place, it.place) for place in ignored)]


def _in_each(it: Tolerance) -> Tolerance:
    """Return a matcher for all items of the innermost array, or for all keys beside an ignored key."""
    path = it.place.path
    steps = [place for place, step in enumerate(path) if str(step).isdecimal()]
    if it.by == "ignore" and path and _NEW_KEY.search(str(path[-1])):
        steps = [len(path) - 1]
    if not steps:
        return it
    every = (*path[: steps[-1]], "*", *path[steps[-1] + 1 :])
    return Tolerance(PlacePattern(it.place.method, it.place.name, every), it.by, it.value)


def _covers(place: PlacePattern, other: PlacePattern) -> bool:
    return place.covers(other.method, other.name, other.path)


def place_of(method: str | None, name: str | None, difference: Difference) -> PlacePattern:
    """Return the place of a difference in the messages of a method and a name."""
    return PlacePattern(method or "*", name or "*", tuple(map(str, difference.path)))


def narrowest(place: PlacePattern, values: Sequence[Any]) -> Tolerance:
    """Return the narrowest matcher that all values at a place satisfy; to ignore the place if one is missing."""
    if not place.path or ABSENT in values:
        return Tolerance(place)
    pattern = _common_pattern(values)
    found = [Tolerance(place, "is", form) for form in _NARROW]
    found += [Tolerance(place, "matches", pattern)] if pattern else []
    found += [Tolerance(place, "is", form) for form in _WIDE if form != "base64" or _are_codes(values)]
    ends = _common_ends(values)
    found += [Tolerance(place, "matches", ends)] if ends else []
    found.append(Tolerance(place, "is", "any"))
    return next(it for it in found if _accepts_all(it, values))


def _accepts_all(rule: Tolerance, values: Sequence[Any]) -> bool:
    place = rule.place
    return all(rule.accepts(place.method, place.name, Difference(place.path, values[0], it)) for it in values)


def _are_codes(values: Sequence[Any]) -> bool:
    """Return whether texts are long and have capital letters within, so that they are probably base64."""
    texts = [it for it in values if isinstance(it, str)]
    return len(texts) == len(values) and all(len(it) >= _SHORTEST and it[1:] != it[1:].lower() for it in texts)


def _common_pattern(values: Sequence[Any]) -> str | None:
    """Return a regular expression for texts that differ only in numbers, or else in words with digits."""
    texts = [it for it in values if isinstance(it, str) and len(it) <= _LONGEST]
    if len(texts) < len(values):
        return None
    for level in _LEVELS:
        parts = [_parts(text, level) for text in texts]
        skeletons = {tuple(literal for literal, _ in it) for it in parts}
        if len(skeletons) == 1:
            return f"^{''.join(map(_piece, zip(*parts, strict=True)))}$"
    return None


def _common_ends(values: Sequence[Any]) -> str | None:
    """Return a regular expression for texts of any length that begin or end with the same words."""
    texts = [it for it in values if isinstance(it, str)]
    if len(texts) < len(values):
        return None
    first = _beginning(texts)
    last = _beginning([text[len(first) :][::-1] for text in texts])[::-1]
    first, last = re.sub(rf"{_INCOMPLETE}\Z", "", first), re.sub(rf"\A{_INCOMPLETE}", "", last)
    first, last = (it if re.search(_WORD, it) else "" for it in (first, last))
    if not (first or last):
        return None
    return rf"^{_literal(first)}[\s\S]*{_literal(last)}$"


def _beginning(texts: Sequence[str]) -> str:
    """Return what all texts begin with, or the first `_END` characters of that."""
    columns = zip(*(text[:_END] for text in texts), strict=False)
    return "".join(column[0] for column in takewhile(lambda column: len({*column}) == 1, columns))


def _literal(text: str) -> str:
    """Return the expression for a text that was the same in all runs, on one day."""
    parts = _parts(text, _TIMES)
    return "".join(map(_piece, zip(parts, strict=True)))


def _parts(text: str, level: dict[str, str]) -> list[tuple[str, str]]:
    """Return the literal texts before each part that may be new, with that part; the last part is empty."""
    found, at = [], 0
    for match in re.finditer("|".join(f"(?:{pattern})" for pattern in level.values()), text):
        found.append((text[at : match.start()], match[0]))
        at = match.end()
    return [*found, (text[at:], "")]


def _piece(column: Sequence[tuple[str, str]]) -> str:
    """Return the expression for a literal text and the part after it, which stays literal if it never changes."""
    literal = _escaped(column[0][0])
    parts = {part for _, part in column}
    if len(parts) == 1 and not any(re.fullmatch(it, column[0][1]) for it in _TIMES.values()):
        return literal + _escaped(parts.pop())
    return literal + next(it for it in _CLASSES if all(re.fullmatch(it, part) for part in parts))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text).replace("\n", r"\n")
