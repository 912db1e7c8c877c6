"""What changed from one capture to another, for people and for programs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from mcpspy.conversation.offers import HANDSHAKES, LISTED
from mcpspy.replay.differences import LISTINGS, Difference
from mcpspy.replay.offers import Change, changes, surface, told_differences
from mcpspy.replay.script import Script
from mcpspy.replay.sessions import FINE, Compared, Ignored, Pairs, Rules, compare, pair
from mcpspy.report.differences import (
    difference_fields,
    different_lines,
    exchange_fields,
    outcomes_text,
    to_json,
    totals,
    value_lines,
)
from mcpspy.report.words import CHANGES, SLOWER
from mcpspy.text import duration_text, plural, printable

_NOTABLE = 2.0  # the factor by which a latency must rise or fall to be reported
_LEAST = 5_000_000  # nanoseconds; below that a latency is noise


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a method took, for one tool, prompt or resource: medians in nanoseconds."""

    method: str
    name: str | None
    recorded: float
    observed: float

    @property
    def notable(self) -> bool:
        """Whether people should look at it."""
        short, long = sorted((self.recorded, self.observed))
        return long >= _LEAST and long >= _NOTABLE * short


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes from one capture to another."""

    told: list[Difference]
    changes: list[Change]
    compared: list[Compared]
    latencies: list[Latency]

    @property
    def differs(self) -> bool:
        """Whether anything except latencies is different."""
        return bool(self.told or self.changes) or any(it.outcome not in FINE for it in self.compared)


def examine(old: Script, new: Script, ignore: Iterable[Ignored]) -> Changes:
    """Compare two sessions. The handshake and the listings are compared as what the server offers, not as calls."""
    rules = Rules(tuple(ignore))
    before, now = surface(old), surface(new)
    pairs = pair(old, new)
    apart = (*HANDSHAKES, *LISTED)
    calls = [turns for turns in pairs if not any(turn and turn.method in apart for turn in turns)]
    told = [it for it in told_differences(before, now) if not _covered(rules, "initialize", it.path)]
    changed = [it for it in changes(before, now) if not _ignored(rules, it)]
    return Changes(told, changed, compare(old, new, calls, rules), list(_latencies(pairs)))


def _ignored(rules: Rules, change: Change) -> bool:
    """Return whether all of a change is expected. Pointers are those into the result of the listing."""
    method = next(method for method, kind in LISTED.items() if kind == change.kind)
    start = ("result", change.kind, change.name)
    paths = [(*start, *it.path) for it in change.differences] or [start]
    return all(_covered(rules, method, path) for path in paths)


def _covered(rules: Rules, method: str, path: tuple[str | int, ...]) -> bool:
    return any(rule.covers(method, None, path) for rule in rules.ignore)


def _latencies(pairs: Pairs) -> Iterator[Latency]:
    found: dict[tuple[str, str | None], tuple[list[int], list[int]]] = {}
    for turns in pairs:
        for side, turn in enumerate(turns):
            if turn and turn.exchange and turn.exchange.latency is not None:
                place = (turn.exchange.method, turn.exchange.name)
                found.setdefault(place, ([], []))[side].append(turn.exchange.latency)
    for (method, name), (recorded, observed) in found.items():
        if recorded and observed:
            yield Latency(method, name, median(recorded), median(observed))


def changes_text(report: Changes) -> str:
    """Return the report for people: what the server offers, what it answered, what takes longer or less."""
    lines = []
    if report.told:
        lines += [
            f"{CHANGES['changed']} the server's own description",
            *(line for it in report.told for line in value_lines(it)),
        ]
    for change in report.changes:
        lines += _change_lines(change)
    lines += different_lines(report.compared)
    lines += [f"{SLOWER} {latency_text(latency)}" for latency in report.latencies if latency.notable]
    breaking = sum(bool(change.breaking) for change in report.changes)
    offered = f"{plural(len(report.changes), 'change')} in listings, {breaking} breaking"
    return "\n".join([*lines, f"{offered}; answers: {outcomes_text(totals(report.compared)) or 'none'}"]) + "\n"


def change_title(change: Change) -> str:
    """Return the change of a tool, resource, template or prompt, on one line."""
    what = f"{change.kind.removesuffix('s')} {printable(change.name, 100)}"
    return f"{what}: {change.change}{', breaking' if change.breaking else ', compatible'}"


def _change_lines(change: Change) -> Iterator[str]:
    yield f"{CHANGES[change.change]} {change_title(change)}"
    for difference in change.differences:
        yield from value_lines(difference)
    for where in filter(None, change.breaking):
        yield f"    breaking: {printable(where, 200)}"


def latency_text(latency: Latency) -> str:
    """Return a latency before and after."""
    what = printable(latency.method, 60) + (f" {printable(latency.name, 60)}" if latency.name else "")
    recorded, observed = (duration_text(round(it)) for it in (latency.recorded, latency.observed))
    return f"{what}: {recorded} became {observed}"


def changes_json(report: Changes) -> str:
    """Return the report on one line. `docs/replay.md` describes it."""
    fields: dict[str, Any] = {"server": [difference_fields(it) for it in report.told]}
    fields |= {kind: [_change_fields(it) for it in report.changes if it.kind == kind] for kind in LISTINGS}
    fields["exchanges"] = [exchange_fields(it) for it in report.compared]
    fields["latencies"] = [
        {"method": it.method, "name": it.name, "recorded": it.recorded / 1e9, "observed": it.observed / 1e9}
        for it in report.latencies
    ]
    return to_json(fields | {"totals": totals(report.compared)}) + "\n"


def _change_fields(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "change": change.change,
        "breaking": list(change.breaking),
        "differences": [difference_fields(it) for it in change.differences],
    }


CHANGE_FORMATS: dict[str, Callable[[Changes], str]] = {"text": changes_text, "json": changes_json}
"""By the name that `--format` accepts, the default first."""
