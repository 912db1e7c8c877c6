"""The facts of the capture format that its writer and its readers share; `docs/capture-format.md` describes the file.

Imported on the `wrap` path: nothing heavy here, and nothing of the package.
"""

import sys
import time

try:
    import fcntl
except ImportError:  # Windows
    pass

FORMAT = 1
"""The format number that this version writes; it has nothing to do with the version of the program."""

MAGIC = b'{"mcpspy":'
"""How every capture begins."""

FRAME_LINE = b'{"kind":"frame",'
"""How our writer begins the line of a frame."""

MORE = b'"more"'
"""The member of a piece of a frame, as it stands in the line; inside a string its quotes would be escaped."""

VIEWER = "viewer"
"""`by` of the gates that a viewer has set, of a request that it has sent, and of the response."""

RELOAD = "reload"
"""`by` of what `wrap --reload` changed, held, dropped or sent, when it replaced the server."""

OWN_ID = "mcpspy-"
"""How the id of a request begins that a viewer, or `wrap --reload`, sends."""


def take(fd: int) -> bool:
    """Take the lock that marks a live capture; False if somebody holds it. Without locks every file is free."""
    if sys.platform == "win32":
        return True
    for _ in range(3):  # a viewer that looks whether the file is live holds a shared lock for a moment
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:
            return True
    return False


def is_live(fd: int, without_locks: bool = False) -> bool:
    """Whether somebody holds the lock on this file; `without_locks` is the answer where there are none."""
    if sys.platform == "win32":
        return without_locks
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
