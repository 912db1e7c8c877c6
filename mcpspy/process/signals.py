"""Register a callback for the signals that end a server: one call for the event loop of a command."""

import signal
from collections.abc import Callable
from typing import Protocol

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


class SignalLoop(Protocol):
    """The part of an asyncio loop that handles signals."""

    def add_signal_handler(self, sig: int, callback: Callable[[], object], /) -> None:
        """Call `callback` in the loop when the signal is received."""


def on_ending_signal(loop: SignalLoop, end: Callable[[], object]) -> None:
    """Call `end` in the loop at SIGINT, SIGTERM or SIGHUP."""
    for name in _ENDING:
        try:
            loop.add_signal_handler(getattr(signal, name), end)
        except (AttributeError, NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            continue
