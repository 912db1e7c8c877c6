"""How much is measured, and where it lies meanwhile."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    size: int = 500_000_000
    """Bytes of the large capture."""
    rounds: int = 3
    """How often it is opened."""
    starts: int = 7
    """How often the imports alone are timed."""
    live_seconds: float = 12
    seconds: float = 180
    """The time limit of each step."""


QUICK = Scale(size=5_000_000, rounds=1, starts=1, live_seconds=2, seconds=30)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run; everything that it writes lands in `folder`."""

    scale: Scale
    folder: str
