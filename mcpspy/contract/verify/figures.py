"""How much time a wrapper takes: figures of runs, bare and through it.

They vary with the machine, so they are told, and only a delay that cannot be chance is judged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mcpspy.contract.verify.differences import Aspect
from mcpspy.text import duration_text, plural

_DELAY = 100_000_000  # nanoseconds that half of the requests take longer than the slowest bare one


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


def delay_checks(figures: Figures) -> list[Aspect]:
    """Whether requests are held up; nothing where none were timed."""
    bare, through = figures.latencies.bare, figures.latencies.through
    if not bare or not through:
        return []
    late = (quantile(through, 0.5) or 0) - max(bare)
    found = f"half of the requests take {duration_text(late)} longer than the slowest bare one, or more"
    return [Aspect("delay", f"under {duration_text(_DELAY)} for a request", (found,) if late >= _DELAY else ())]


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
        found.append((f"{figures.request} latency", f"{', '.join(pairs)} ({plural(count, 'request')})"))
    return found


def _quantiles(values: Sequence[int]) -> str:
    return f"p50 {_shown(quantile(values, 0.5))}, p99 {_shown(quantile(values, 0.99))}"


def _shown(nanoseconds: int | None) -> str:
    return duration_text(nanoseconds or 0)
