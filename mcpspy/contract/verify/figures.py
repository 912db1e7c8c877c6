"""How much time a wrapper adds: figures of runs, bare and through it.

They vary with the machine, so they are only shown. Only a delay that cannot be chance counts as a difference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mcpspy.contract.verify.differences import Aspect
from mcpspy.text import duration_text, plural

_DELAY = 100_000_000  # nanoseconds by which the median exceeds the slowest bare request


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of one kind, in nanoseconds."""

    bare: tuple[int, ...]
    through: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The measured times."""

    starts: Timing
    """From the start of a process, or of a connection, to the first answer."""
    latencies: Timing
    """The latencies of one request, sent one after the other."""
    request: str
    """The name of that request."""


def quantile(values: Sequence[int], share: float) -> int | None:
    """Return the value that this share of the values does not exceed (nearest rank), or None if there are none."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else None


def middle(values: Sequence[int]) -> int | None:
    """Return the median, or None if there are no values."""
    return round(median(values)) if values else None


def delay_checks(figures: Figures) -> list[Aspect]:
    """Check whether requests are delayed. Return nothing if none were timed."""
    bare, through = figures.latencies.bare, figures.latencies.through
    if not bare or not through:
        return []
    late = (quantile(through, 0.5) or 0) - max(bare)
    found = f"half of the requests take {duration_text(late)} longer than the slowest bare one, or more"
    return [Aspect("delay", f"under {duration_text(_DELAY)} for a request", (found,) if late >= _DELAY else ())]


def figure_lines(figures: Figures) -> list[tuple[str, str]]:
    """Return the figures for people: title and text of each."""
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
        found.append((f"{figures.request} latency", f"{', '.join(pairs)} ({plural(count, 'request')})"))
    return found


def _quantiles(values: Sequence[int]) -> str:
    return f"p50 {_shown(quantile(values, 0.5))}, p99 {_shown(quantile(values, 0.99))}"


def _shown(nanoseconds: int | None) -> str:
    return duration_text(nanoseconds or 0)
