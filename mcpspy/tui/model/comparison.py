"""Two values side by side as an outline, with equal parts folded, and the changes between two sessions.

A pairing is two values that correspond. Its parts come from `mcpspy.replay.differences.step`, so the differences
here are exactly those that `mcpspy diff` reports. Equal parts are made only when they are unfolded. If a text of
several lines has changed, its lines are shown as parts, but the whole text counts as one difference. The changes of two
sessions are the report of `mcpspy diff`, as entries with the frames and messages of both.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

from mcpspy.json_values import Path, pointer
from mcpspy.replay.differences import ABSENT, Difference, by_order, excerpt, step
from mcpspy.replay.offers import surface
from mcpspy.replay.script import Script
from mcpspy.replay.sessions import FINE
from mcpspy.replay.tolerance import Rules
from mcpspy.replay.volatile import looks_volatile
from mcpspy.report.differences import Changes, change_title, examine, latency_text, outcome_text, outcomes_text, totals
from mcpspy.report.words import CHANGES, SLOWER
from mcpspy.text import plural
from mcpspy.timeline import Row

State = Literal["same", "parts", "changed", "missing", "extra", "volatile", "passed"]
DIFFERENT: frozenset[State] = frozenset(("changed", "missing", "extra", "volatile"))
MOST = 5_000
"""The maximum number of lines of an outline."""

_ENVELOPE = ("jsonrpc", "id")
_SHORT = 60  # characters of a value that is shown folded, on one line, although it has parts
_DEEP = 12  # levels that are unfolded automatically


@dataclass(slots=True, eq=False)
class Pairing:
    """Two values that correspond; one of them may be ABSENT."""

    label: str
    """The name or place of the values, as a person reads it."""
    path: Path
    recorded: Any
    observed: Any
    state: State
    """parts: parts of it differ; missing, extra: only one value exists; volatile: it differs, as values that are new in
    each run do; passed: it differs only in parts that are not compared."""
    parts: "list[Pairing] | None" = None
    """None if there are none, or if they are not made yet."""
    differing: int = 0
    """The number of differences in it."""
    volatile: int = 0
    """The number of these that look volatile."""
    is_line: bool = False
    """Whether the two values are lines of texts."""

    @property
    def opens(self) -> bool:
        """Whether it has parts."""
        if self.parts:
            return True
        if self.state in ("changed", "volatile"):
            return not self.is_line and all(isinstance(it, str) and "\n" in it for it in (self.recorded, self.observed))
        value = self.observed if self.recorded is ABSENT else self.recorded
        return self.state in ("same", "missing", "extra") and isinstance(value, dict | list) and bool(value)

    def opened(self) -> "list[Pairing]":
        """Return the parts; make them if necessary."""
        if self.parts is None:
            if self.state == "same":
                self.parts = _equal_parts(self)
            elif self.state in ("changed", "volatile"):
                self.parts = _lines(self)
            else:
                self.parts = _one_sided(self)
        return self.parts


def comparable(rows: list[Row]) -> Any:
    """Return the comparable content of a frame: its messages without envelope, or the text if it is not a message."""
    values = [_comparable(row) for row in rows]
    return values[0] if len(values) == 1 else values


def _comparable(row: Row) -> Any:
    if row.value is None:
        return row.raw.decode(errors="replace") if row.raw else row.text or ""
    return bare(row.value)


def bare(value: Any) -> Any:
    """Return a message without its envelope (`jsonrpc` and `id`)."""
    if not isinstance(value, dict):
        return value
    return {name: inner for name, inner in value.items() if name not in _ENVELOPE}


def compared(recorded: Any, observed: Any) -> Pairing:
    """Return the pairing of two values, with all their differences."""
    try:
        return _pairing("", (), recorded, observed)
    except RecursionError:  # as in `differences`
        return Pairing("", (), recorded, observed, "changed", differing=1)


def listed(differences: Iterable[Difference]) -> Pairing:
    """Return a pairing that lists the given differences, one below the other."""
    parts = [_different(pointer(*it.path) or "(the whole)", it) for it in differences]
    volatile = sum(it.volatile for it in parts)
    return Pairing("", (), None, None, "parts", parts, len(parts), volatile)


def _pairing(label: str, path: Path, recorded: Any, observed: Any) -> Pairing:
    found = step(recorded, observed, path)
    if isinstance(found, Difference):
        return _different(label, found)
    parts = _parts(found, path)
    differing = sum(it.differing for it in parts)
    if differing:
        return Pairing(label, path, recorded, observed, "parts", parts, differing, sum(it.volatile for it in parts))
    passed = found is None and recorded != observed
    return Pairing(label, path, recorded, observed, "passed" if passed else "same")


def _parts(found: Any, path: Path) -> list[Pairing]:
    if not isinstance(found, list):
        return []
    return [_pairing(_label(name), (*path, name), first, second) for name, first, second in found]


def _different(label: str, found: Difference) -> Pairing:
    state: State = "changed"
    if found.observed is ABSENT or found.recorded is ABSENT:
        state = "missing" if found.observed is ABSENT else "extra"
    elif looks_volatile(found):
        state = "volatile"
    return Pairing(
        label, found.path, found.recorded, found.observed, state, differing=1, volatile=int(state == "volatile")
    )


def _equal_parts(pairing: Pairing) -> list[Pairing]:
    try:
        return _parts(step(pairing.recorded, pairing.observed, pairing.path), pairing.path)
    except RecursionError:
        return []


def _one_sided(pairing: Pairing) -> list[Pairing]:
    """Return the parts of a value that only one side has."""
    value = pairing.observed if pairing.recorded is ABSENT else pairing.recorded
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for name, inner in parts:
        first, second = (ABSENT, inner) if pairing.state == "extra" else (inner, ABSENT)
        found.append(Pairing(_label(name), (*pairing.path, name), first, second, pairing.state))
    return found


def _lines(pairing: Pairing) -> list[Pairing]:
    """Return the lines of two texts, aligned like the elements of arrays."""
    one, other = pairing.recorded.split("\n"), pairing.observed.split("\n")
    found = []
    for place, there in by_order(one, other, (str,)):
        first, second = ABSENT if place is None else one[place], ABSENT if there is None else other[there]
        state: State = (
            "same" if first == second else "missing" if there is None else "extra" if place is None else "changed"
        )
        if state == "changed" and pairing.state == "volatile":
            state = "volatile"
        found.append(Pairing("", pairing.path, first, second, state, is_line=True))
    return found


def _label(name: str | int) -> str:
    return f"[{name}]" if isinstance(name, int) else name


class ComparedLine(NamedTuple):
    """A line of an outline."""

    pairing: Pairing
    depth: int
    folded: bool | None
    """None if it has no parts."""
    run: tuple[Pairing, ...] = ()
    """Adjacent equal parts, all represented by this line."""


class ComparisonOutline:
    """The lines of a pairing, some of them folded."""

    def __init__(self, root: Pairing) -> None:
        self.root = root
        self.everything = False
        """Whether equal parts are unfolded too."""
        self._turned: set[tuple[str, int]] = set()  # the lines that the user has folded or unfolded

    def lines(self) -> list[ComparedLine]:
        """Return the visible lines, at most `MOST`."""
        found: list[ComparedLine] = []
        first = self._below(self.root, 0) if self.root.opens else [self._line(self.root, 0)]
        stack = first[::-1]
        while stack and len(found) < MOST:
            line = stack.pop()
            found.append(line)
            if line.folded is False:
                inner = [self._line(it, line.depth + 1) for it in line.run] or self._below(line.pairing, line.depth + 1)
                stack += inner[::-1]
        return found

    def turn(self, line: ComparedLine) -> None:
        """Fold or unfold a line."""
        self._turned ^= {_key(line.pairing, line.run)}

    def show_everything(self, everything: bool) -> None:
        """Unfold or fold all equal parts."""
        self.everything = everything
        self._turned.clear()

    def _below(self, pairing: Pairing, depth: int) -> list[ComparedLine]:
        found: list[ComparedLine] = []
        parts = pairing.opened()
        apart = self.everything or all(it.state == "same" for it in parts)
        for equal, group in groupby(parts, lambda it: it.state == "same"):
            run = tuple(group)
            if equal and len(run) > 1 and not apart:
                found.append(ComparedLine(run[0], depth, _key(run[0], run) not in self._turned, run))
            else:
                found += [self._line(it, depth) for it in run]
        return found

    def _line(self, pairing: Pairing, depth: int) -> ComparedLine:
        if not pairing.opens:
            return ComparedLine(pairing, depth, None)
        folded = pairing.state == "same" and not self.everything
        if pairing.state in ("missing", "extra"):
            value = pairing.observed if pairing.recorded is ABSENT else pairing.recorded
            folded = depth > _DEEP or len(excerpt(value, 2 * _SHORT)) <= _SHORT
        return ComparedLine(pairing, depth, folded != (_key(pairing) in self._turned))


def _key(pairing: Pairing, run: tuple[Pairing, ...] = ()) -> tuple[str, int]:
    return "run" if run else "one", id(pairing)


class ChangeEntry(NamedTuple):
    """One change between two sessions."""

    sign: str
    """`+`: only in the second; `-`: only in the first; `~`: changed; `·`: a difference in time."""
    text: str
    """Printable text."""
    differences: tuple[Difference, ...] = ()
    lines: tuple[int | None, int | None] = (None, None)
    """Its line number in each capture."""
    values: tuple[Any, Any] = (ABSENT, ABSENT)
    """The whole value in each capture."""


def change_entries(old: Script, new: Script) -> tuple[str, list[ChangeEntry]]:
    """Return a line of totals, and all changes: offers, responses, and calls that are much slower or faster."""
    report = examine(old, new, Rules())
    found = [*_offers(report, old, new), *_answers(report, old, new)]
    found += [ChangeEntry(SLOWER, latency_text(it)) for it in report.latencies if it.notable]
    offered = plural(len(report.changes) + bool(report.told), "change")
    return f"{offered} in listings · answers: {outcomes_text(totals(report.compared)) or 'none'}", found


def _offers(report: Changes, old: Script, new: Script) -> Iterator[ChangeEntry]:
    before, now = surface(old), surface(new)
    if report.told:
        lines, values = (before.told_in, now.told_in), ({"result": before.told}, {"result": now.told})
        yield ChangeEntry(CHANGES["changed"], "the description of the server", tuple(report.told), lines, values)
    for change in report.changes:
        sides = [(it.listings[change.kind].get(change.name, ABSENT), it.listed_in[change.kind]) for it in (before, now)]
        (first, there), (second, here) = sides
        lines = there.get(change.name), here.get(change.name)
        differences = change.differences or (Difference((), first, second),)
        yield ChangeEntry(CHANGES[change.change], change_title(change), differences, lines, (first, second))


def _answers(report: Changes, old: Script, new: Script) -> Iterator[ChangeEntry]:
    sides = [{turn.cause.n: turn.response for turn in it.turns} for it in (old, new)]
    said = [{it.n: it for it in script.messages} for script in (old, new)]
    for it in report.compared:
        if it.outcome in FINE:
            continue
        messages = []
        for n, answers, by_line in zip((it.request, it.observed), sides, said, strict=True):
            messages.append(answers.get(n) or by_line.get(n) if n is not None else None)
        first, second = messages
        values = tuple(bare(message.body.value) if message else ABSENT for message in messages)
        lines = first.n if first else None, second.n if second else None
        yield ChangeEntry(CHANGES[it.outcome], outcome_text(it), it.differences, lines, (values[0], values[1]))
