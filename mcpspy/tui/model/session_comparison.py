"""The report of `mcpspy diff` on two captures, as entries with the frames and messages of both."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpspy.replay.differences import ABSENT, Difference
from mcpspy.replay.offers import surface
from mcpspy.replay.script import Script
from mcpspy.replay.sessions import FINE
from mcpspy.report.differences import Changes, change_title, examine, latency_text, outcome_text, outcomes_text, totals
from mcpspy.report.words import CHANGES, SLOWER
from mcpspy.text import plural
from mcpspy.tui.model.comparison import bare


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


def entries(old: Script, new: Script) -> tuple[str, list[ChangeEntry]]:
    """Return a line of totals, and all changes: offers, responses, and calls that are much slower or faster."""
    report = examine(old, new, [])
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
