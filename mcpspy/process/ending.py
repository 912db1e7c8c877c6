"""How a server ends that was started by us: by itself after its stdin is closed, else by SIGTERM, else by SIGKILL.

A signal goes to the process group of the server, so it reaches all processes that the server started and that stayed in
the group. A caller whose server shares our group sends the signals in its own way.
"""

import os
import signal
import sys
from collections.abc import Callable

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no process survives; Windows has only one way to end a process."""


def end(gone: Callable[[float], bool], send: Callable[[int], object], leaves: float, terminates: float) -> None:
    """Make a process exit whose stdin is closed, or about to be.

    `gone` waits so many seconds and returns whether the process has exited; `send` sends a signal. `leaves` is how long
    it may take to exit by itself, `terminates` how long after SIGTERM. After SIGKILL nothing is waited for.
    """
    for seconds, number in ((leaves, signal.SIGTERM), (terminates, KILL)):
        if gone(seconds):
            return
        send(number)


def signal_group(leader: int, number: int) -> bool:
    """Send a signal to a process that leads a group, and to all processes of the group; return whether it was sent."""
    try:
        if sys.platform == "win32":
            os.kill(leader, number)
        else:
            os.killpg(leader, number)
    except OSError:  # it has just exited, or runs as another user; macOS raises PermissionError for zombies
        return False
    return True
