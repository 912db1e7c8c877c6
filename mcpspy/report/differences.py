"""What differs between two sessions, for people and for programs: a replay from its capture, or two captures.

This has the words for an exchange and its values, and each format of both reports. Servers may send any text, so it
goes through `printable`, which returns one line without control characters. Only JSON has every text unchanged.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import orjson

from mcpspy.conversation.offers import HANDSHAKES, LISTED
from mcpspy.json_values import steps_of
from mcpspy.replay.differences import ABSENT, LISTINGS, Difference, excerpt
from mcpspy.replay.offers import Change, changes, surface, told_differences
from mcpspy.replay.script import Script
from mcpspy.replay.sessions import FINE, OUTCOMES, Compared, Pairs, compare, pair
from mcpspy.replay.tolerance import Rules
from mcpspy.report.ci_formats import Case, command, document
from mcpspy.report.words import CHANGES, DIFFERENT, SLOWER
from mcpspy.text import duration_text, plural, printable

_WIDTH = 160  # characters of a value
_CONTEXT = 30  # characters of the common beginning that are shown before the difference
_LEVELS = 200  # levels of JSON that are kept if Python cannot write it unchanged


# An exchange in words


def headline(it: Compared) -> str:
    """Return the outcome of an exchange, and the recorded line on which it began, as one line."""
    return f"#{it.request} {outcome_text(it)}" if it.request else outcome_text(it)


def outcome_text(it: Compared) -> str:
    """Return the outcome of an exchange, on one line."""
    why = f" ({printable(it.reason, 200)})" if it.reason else ""
    return f"{subject(it)}: {it.outcome}{why}"


def subject(it: Compared) -> str:
    """Return the method and name."""
    if it.method is None:
        said = [side for one in it.differences for side in (one.recorded, one.observed) if isinstance(side, dict)]
        answers = any("result" in side or "error" in side for side in said)
        return "a response to no request" if answers else "a line that is not a message"
    return printable(it.method, 60) + (f" {printable(it.name, 60)}" if it.name else "")


def value_lines(difference: Difference) -> list[str]:
    """Return the two values of a difference, from shortly before the first difference on."""
    recorded, observed = sides(difference)
    where = printable(difference.pointer, 200) or "(the whole message)"
    matcher = [f"      matcher   {printable(difference.matcher, _WIDTH)}"] if difference.matcher else []
    return [f"    {where}", f"      recorded  {recorded}", f"      observed  {observed}", *matcher]


def sides(difference: Difference, limit: int = _WIDTH) -> tuple[str, str]:
    """Return the two values of a difference as JSON, each on one line of at most `limit` characters."""
    texts = [excerpt(value, 1 << 20) for value in (difference.recorded, difference.observed)]
    common = next((n for n, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
    if common > 2 * _CONTEXT and max(map(len, texts)) > limit:
        texts = ["…" + text[common - _CONTEXT :] for text in texts]
    return printable(texts[0], limit), printable(texts[1], limit)


def totals(compared: Sequence[Compared]) -> dict[str, int]:
    """Return the number of exchanges with each outcome."""
    found = Counter(it.outcome for it in compared)
    return {outcome: found[outcome] for outcome in OUTCOMES}


# An exchange for programs


def exchange_fields(it: Compared) -> dict[str, Any]:
    """Return the outcome of an exchange, for programs."""
    fields = {"request": it.request, "method": it.method, "name": it.name, "outcome": it.outcome}
    found = {"differences": [difference_fields(one) for one in it.differences], "reason": it.reason}
    return fields | found | {"observed": it.observed}


def from_fields(fields: dict[str, Any]) -> Compared:
    """Return the exchange whose outcome `exchange_fields` returned."""
    differences = tuple(
        Difference(
            steps_of(it["pointer"]), it.get("recorded", ABSENT), it.get("observed", ABSENT), it.get("matcher", "")
        )
        for it in fields["differences"]
    )
    what = fields["request"], fields["method"], fields["name"], fields["outcome"]
    return Compared(*what, differences, fields["reason"], fields.get("observed"))


def difference_fields(difference: Difference) -> dict[str, Any]:
    """Return a difference, for programs. A missing value has no member, and neither has a missing matcher."""
    values = {"recorded": difference.recorded, "observed": difference.observed, "matcher": difference.matcher or ABSENT}
    return {"pointer": difference.pointer} | {name: value for name, value in values.items() if value is not ABSENT}


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


# The formats


def as_text(path: str, compared: Sequence[Compared]) -> str:
    """Return the differences, what was left out, and a line of totals."""
    skipped = [f"- {headline(it)}" for it in compared if it.outcome == "skipped"]
    closing = f"{printable(path, 200)}: {totals_text(totals(compared))}"
    return "\n".join([*different_lines(compared), *skipped, closing]) + "\n"


def different_lines(compared: Iterable[Compared]) -> Iterator[str]:
    """Yield the title and the values of each exchange that differs."""
    for it in compared:
        if it.outcome not in FINE:
            yield f"{DIFFERENT} {headline(it)}"
            yield from (line for difference in it.differences for line in value_lines(difference))


def totals_text(found: Mapping[str, int]) -> str:
    """Return the numbers of exchanges by outcome, on one line."""
    return f"{plural(sum(found.values()), 'comparison')}: {outcomes_text(found) or 'nothing to compare'}"


def outcomes_text(found: Mapping[str, int]) -> str:
    """Return the numbers of the outcomes that occurred: `3 same, 1 changed`."""
    return ", ".join(f"{number:,} {outcome}" for outcome, number in found.items() if number)


def as_json(path: str, compared: Sequence[Compared]) -> str:
    """Return the report on one line."""
    del path
    return to_json(as_fields(compared)) + "\n"


def as_fields(compared: Sequence[Compared]) -> dict[str, Any]:
    """Return the report for programs."""
    return {"exchanges": [exchange_fields(it) for it in compared], "totals": totals(compared)}


def as_junit(path: str, compared: Sequence[Compared]) -> str:
    """Return a suite with a case for each exchange."""
    return document("mcpspy replay", [(path, map(_case, compared))])


def _case(it: Compared) -> Case:
    name = subject(it) + (f" #{it.request}" if it.request else "")
    if it.outcome == "skipped":
        return Case(name, "skipped", it.reason or "")
    if it.outcome in FINE:
        return Case(name)
    lines = [line for difference in it.differences for line in value_lines(difference)]
    return Case(name, "failure", headline(it), it.outcome, lines)


def as_github(path: str, compared: Sequence[Compared]) -> str:
    """Return a workflow command for each exchange that differs. GitHub shows it beside the line of the capture."""
    different = [it for it in compared if it.outcome not in FINE]
    return "".join(command("error", path, it.request, headline(it), "; ".join(_sentences(it))) for it in different)


def _sentences(it: Compared) -> Iterator[str]:
    for difference in it.differences[:10]:
        recorded, observed = sides(difference)
        where = f"{printable(difference.pointer, 200)}: " if difference.pointer else ""
        matcher = f" (matcher: {printable(difference.matcher, 200)})" if difference.matcher else ""
        yield f"{where}recorded {recorded}, observed {observed}{matcher}"


Report = Callable[[str, Sequence[Compared]], str]
"""A format: it takes the path of the recorded capture, and the compared exchanges."""

FORMATS: dict[str, Report] = {"text": as_text, "json": as_json, "junit": as_junit, "github": as_github}
"""By the name that `--format` accepts, the default first."""


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


def examine(old: Script, new: Script, rules: Rules) -> Changes:
    """Compare two sessions. The handshake and the listings are compared as what the server offers, not as calls."""
    before, now = surface(old), surface(new)
    pairs = pair(old, new, rules)
    apart = (*HANDSHAKES, *LISTED)
    calls = [turns for turns in pairs if not any(turn and turn.method in apart for turn in turns)]
    told = rules.unexpected("initialize", None, told_differences(before, now))
    changed = [it for it in changes(before, now) if not _expected(rules, it)]
    return Changes(told, changed, compare(old, new, calls, rules), list(_latencies(pairs)))


def _expected(rules: Rules, change: Change) -> bool:
    """Return whether all of a change is expected. Pointers are those into the result of the listing."""
    method = next(method for method, kind in LISTED.items() if kind == change.kind)
    start = ("result", change.kind, change.name)
    whole = [] if change.differences else [Difference(start, ABSENT, ABSENT)]
    found = [replace(it, path=(*start, *it.path)) for it in change.differences] + whole
    return not rules.unexpected(method, None, found)


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
