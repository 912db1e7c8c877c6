"""Rows that show which program is better: the quotient of mcpspy and another per round, and the figures behind it."""

from dataclasses import replace
from statistics import median

from benchmarks.proxy.plan import DIRECT, PROXY
from benchmarks.relay.figures import ROUNDS_TO_JUDGE, Result, Rounds, Row, Target, added, ratios, unsteady
from benchmarks.relay.plan import BARE, WRAP
from benchmarks.rival.plan import OURS

_BASES = {BARE, DIRECT}


def versus(
    what: str, unit: str, rounds: Rounds, more: bool = False, targets: dict[str, Target] | None = None
) -> Result:
    """Compare mcpspy with every other variant.

    If there is a bare variant, the figures that the variants add to it are compared. Higher figures are better with
    `more`, else lower ones.
    """
    rounds = {OURS if variant in (WRAP, PROXY) else variant: values for variant, values in rounds.items()}
    base = next((variant for variant in rounds if variant in _BASES and not more), None)
    rows = []
    for other in (variant for variant in rounds if variant not in {*_BASES, OURS}):
        quotients = _compared(rounds, other, base)
        controls = tuple(rounds[name] for name in (base, other) if name)
        row = Row(f"{what}, {OURS} / {other}", quotients, (targets or {}).get(other), controls)
        rows.append(_ahead(row, more))
    figures = ", ".join(f"{variant} {_short(median(values))}" for variant, values in rounds.items())
    name = what.replace(": added ", ": ")
    return Result([*rows, Row(f"{name}, {unit}", [], text=figures)], {f"{name}, {unit}": rounds})


def joined(*results: Result) -> Result:
    """Return all rows and figures in order."""
    rows = [row for result in results for row in result.rows]
    return Result(rows, {what: rounds for result in results for what, rounds in result.raw.items()})


def _compared(rounds: Rounds, other: str, base: str | None) -> list[float]:
    if base is None:
        return ratios(rounds[OURS], rounds[other])
    return ratios(added(rounds, OURS, base), added(rounds, other, base))


def _ahead(row: Row, more: bool) -> Row:
    """Return the row with a verdict if there are enough rounds: "wins" or "loses" only if all rounds agree.

    If the control itself was not steady, all rounds may agree and be wrong, because two programs share a busy core
    unequally.
    """
    if len(row.values) < ROUNDS_TO_JUDGE:
        return row
    better = [quotient > 1 if more else quotient < 1 for quotient in row.values]
    word = "mcpspy wins" if all(better) else "even" if any(better) else "mcpspy loses"
    word = "not steady" if any(map(unsteady, row.controls)) else word
    return replace(row, text=f"{row.figure}: {word}")


def _short(figure: float) -> str:
    """Return a figure with three significant digits."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
