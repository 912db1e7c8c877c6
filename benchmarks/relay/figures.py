"""From samples to verdicts: percentiles, per-round ratios, and whether the machine was quiet enough to judge."""

from dataclasses import dataclass
from math import isnan, nan
from statistics import median

ROUNDS_TO_JUDGE = 5
SPREAD = 0.15
"""By how much a control's own p50 may spread over the rounds before nothing can be said."""

Rounds = dict[str, list[float]]
"""One figure of each variant for each round."""


@dataclass(frozen=True, slots=True)
class Target:
    """The bound that a median must keep; `unit` is empty for a ratio."""

    limit: float
    aim: float | None = None
    unit: str = ""
    at_least: bool = False

    def __str__(self) -> str:
        text = f"{'at least' if self.at_least else 'at most'} {self.limit:g} {self.unit}".strip()
        return text + (f"; aim {self.aim:g}" if self.aim is not None else "")

    def kept(self, figure: float) -> bool:
        """Whether a figure keeps the bound; the aim decides nothing."""
        return figure >= self.limit if self.at_least else figure <= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the figure of every round, or a `text` that is information only."""

    what: str
    values: list[float]
    target: Target | None = None
    controls: tuple[list[float], ...] = ()
    """p50s, round by round, of the variants that the figure is compared with: they must be steady."""
    text: str = ""
    broken: bool = False
    """The set could not be measured, for the reason in `text`."""

    @property
    def figure(self) -> str:
        """The table's text: median, and lowest to highest round."""
        if self.text or not self.values:
            return self.text or "-"
        unit = f" {self.target.unit}" if self.target and self.target.unit else ""
        if len(self.values) == 1:
            return f"{self.values[0]:.2f}{unit}"
        return f"{median(self.values):.2f}{unit} ({min(self.values):.2f} to {max(self.values):.2f})"

    def verdict(self, judged: bool) -> str:
        """Return ok, MISSED, INCONCLUSIVE (always when not `judged`), or info for a row without a target."""
        if self.broken:
            return "MISSED"
        if self.target is None:
            return "info"
        if not judged or not self.values or any(map(isnan, self.values)) or any(map(unsteady, self.controls)):
            return "INCONCLUSIVE"
        return "ok" if self.target.kept(median(self.values)) else "MISSED"


@dataclass(frozen=True, slots=True)
class Result:
    """What one set of measurements gave: rows for the table, and the figures behind them by variant and round."""

    rows: list[Row]
    raw: dict[str, Rounds]


def unsteady(control: list[float]) -> bool:
    """Whether a control moved too much, or was not seen often enough to know."""
    return len(control) < ROUNDS_TO_JUDGE or max(control) - min(control) > SPREAD * median(control)


def percentile(samples: list[int], share: float) -> float:
    """Return the nearest-rank percentile of nanoseconds, in microseconds."""
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * share))] / 1e3


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Return round by round quotients; not a number where the control did not cost anything."""
    return [a / b if b > 0 else nan for a, b in zip(above, below, strict=True)]


def added(rounds: Rounds, variant: str, base: str) -> list[float]:
    """Return what `variant` took longer than `base` in the same round."""
    return [a - b for a, b in zip(rounds[variant], rounds[base], strict=True)]
