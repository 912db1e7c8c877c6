"""How a server that serves until a signal comes is told of it: one call for the loop of a command."""

import signal
from collections.abc import Callable
from typing import Protocol

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


class SignalLoop(Protocol):
    """What an asyncio loop has for signals."""

    def add_signal_handler(self, sig: int, callback: Callable[[], object], /) -> None:
        """Call `callback` in the loop when the signal comes."""


def on_ending_signal(loop: SignalLoop, end: Callable[[], object]) -> None:
    """Call `end` in the loop at SIGINT, SIGTERM or SIGHUP."""
    for name in _ENDING:
        try:
            loop.add_signal_handler(getattr(signal, name), end)
        except (AttributeError, NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            continue
