"""The size of the measurement, and the directory of its files."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the measurement."""

    size: int = 500_000_000
    """Size of the large capture in bytes."""
    rounds: int = 3
    """How often the large capture is opened."""
    starts: int = 7
    """How often only the imports are timed."""
    live_seconds: float = 12
    seconds: float = 180
    """The time limit of each step."""


QUICK = Scale(size=5_000_000, rounds=1, starts=1, live_seconds=2, seconds=30)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. All files are written to `folder`."""

    scale: Scale
    folder: str
