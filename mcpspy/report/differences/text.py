"""The report of a replay for people: each difference with its two values, one below the other."""

from collections.abc import Mapping, Sequence

from mcpspy.replay.compare.sessions import FINE, Compared
from mcpspy.report.differences.exchange_text import headline, totals, value_lines
from mcpspy.report.words import DIFFERENT
from mcpspy.text import plural, printable


def as_text(path: str, compared: Sequence[Compared]) -> str:
    """Return the differences, what was left out, and a line of totals."""
    lines = []
    for it in compared:
        if it.outcome not in FINE:
            lines.append(f"{DIFFERENT} {headline(it)}")
            for difference in it.differences:
                lines += value_lines(difference)
    skipped = [it for it in compared if it.outcome == "skipped"]
    lines += [f"- {headline(it)}" for it in skipped]
    return "\n".join([*lines, f"{printable(path, 200)}: {totals_text(totals(compared))}"]) + "\n"


def totals_text(found: Mapping[str, int]) -> str:
    """Return the numbers of exchanges by outcome, on one line."""
    told = [f"{number:,} {outcome}" for outcome, number in found.items() if number]
    return f"{plural(sum(found.values()), 'comparison')}: {', '.join(told) or 'nothing to compare'}"
