"""How much time a wrapper takes: figures of runs, bare and through it. They vary, so they are told and never judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mcpspy.text import duration_text


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of one kind, in nanoseconds."""

    bare: tuple[int, ...]
    through: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """What was timed."""

    starts: Timing
    """From the start of a process, or of a connection, to the first answer."""
    latencies: Timing
    """Of one request, one after the other."""
    request: str
    """Which request that is."""


def quantile(values: Sequence[int], share: float) -> int | None:
    """The value that so many do not exceed (nearest rank); None where there are none."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else None


def middle(values: Sequence[int]) -> int | None:
    """The median; None where there are no values."""
    return round(median(values)) if values else None


def figure_lines(figures: Figures) -> list[tuple[str, str]]:
    """The figures for people: what they are of, and the figures."""
    starts, latencies = figures.starts, figures.latencies
    found = []
    if starts.bare and starts.through:
        of = f"median of {min(len(starts.bare), len(starts.through))}"
        found.append(
            ("start-up", f"{_shown(middle(starts.bare))} bare, {_shown(middle(starts.through))} through ({of})")
        )
    if latencies.bare and latencies.through:
        pairs = [
            f"{_quantiles(values)} {how}" for values, how in ((latencies.bare, "bare"), (latencies.through, "through"))
        ]
        count = min(len(latencies.bare), len(latencies.through))
        found.append((f"{figures.request} latency", f"{', '.join(pairs)} ({count:,} requests)"))
    return found


def _quantiles(values: Sequence[int]) -> str:
    return f"p50 {_shown(quantile(values, 0.5))}, p99 {_shown(quantile(values, 0.99))}"


def _shown(nanoseconds: int | None) -> str:
    return duration_text(nanoseconds or 0)
