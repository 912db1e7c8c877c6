"""From samples to verdicts: percentiles, ratios per round, and whether the machine was quiet enough for a verdict."""

from dataclasses import dataclass
from math import isnan, nan
from statistics import median

ROUNDS_TO_JUDGE = 5
SPREAD = 0.15
"""The maximum spread of a control's p50 over the rounds, relative to its median, for a verdict."""

Rounds = dict[str, list[float]]
"""Variant -> one figure per round."""


@dataclass(frozen=True, slots=True)
class Target:
    """The limit for a median. `unit` is empty for a ratio."""

    limit: float
    aim: float | None = None
    unit: str = ""
    at_least: bool = False

    def __str__(self) -> str:
        text = f"{'at least' if self.at_least else 'at most'} {self.limit:g} {self.unit}".strip()
        return text + (f"; aim {self.aim:g}" if self.aim is not None else "")

    def kept(self, figure: float) -> bool:
        """Return whether a figure is within the limit. The aim does not count."""
        return figure >= self.limit if self.at_least else figure <= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the figure of every round, or only a `text`."""

    what: str
    values: list[float]
    target: Target | None = None
    controls: tuple[list[float], ...] = ()
    """The p50 per round of each variant that the figure is compared with. They must be steady."""
    text: str = ""
    broken: bool = False
    """Whether the set could not be measured. The reason is in `text`."""

    @property
    def figure(self) -> str:
        """The text in the table: the median, and the range from lowest to highest round."""
        if self.text or not self.values:
            return self.text or "-"
        unit = f" {self.target.unit}" if self.target and self.target.unit else ""
        if len(self.values) == 1:
            return f"{self.values[0]:.2f}{unit}"
        return f"{median(self.values):.2f}{unit} ({min(self.values):.2f} to {max(self.values):.2f})"

    def verdict(self, judged: bool) -> str:
        """Return ok, MISSED, INCONCLUSIVE (always if not `judged`), or info for a row without a target."""
        if self.broken:
            return "MISSED"
        if self.target is None:
            return "info"
        if not judged or not self.values or any(map(isnan, self.values)) or any(map(unsteady, self.controls)):
            return "INCONCLUSIVE"
        return "ok" if self.target.kept(median(self.values)) else "MISSED"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one set of measurements: rows for the table, and their figures by variant and round."""

    rows: list[Row]
    raw: dict[str, Rounds]


def unsteady(control: list[float]) -> bool:
    """Return whether a control changed too much between rounds, or there are too few rounds."""
    return len(control) < ROUNDS_TO_JUDGE or max(control) - min(control) > SPREAD * median(control)


def percentile(samples: list[int], share: float) -> float:
    """Return the nearest-rank percentile of nanoseconds, in microseconds."""
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * share))] / 1e3


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Return the quotient of each round; not a number if the control cost nothing."""
    return [a / b if b > 0 else nan for a, b in zip(above, below, strict=True)]


def added(rounds: Rounds, variant: str, base: str) -> list[float]:
    """Return for each round how much longer `variant` took than `base`."""
    return [a - b for a, b in zip(rounds[variant], rounds[base], strict=True)]
