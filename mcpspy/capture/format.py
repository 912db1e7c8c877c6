"""Constants of the capture format that the writer and the readers share; `docs/capture-format.md` describes the file.

Imported on the `wrap` path: no heavy imports, and none from the package.
"""

import sys
import time

try:
    import fcntl
except ImportError:  # Windows
    pass

FORMAT = 1
"""The format number that this version writes; it is independent of the version of the program."""

MAGIC = b'{"mcpspy":'
"""The start of every capture."""

FRAME_LINE = b'{"kind":"frame",'
"""The start of a line that holds a frame, as our writer writes it."""

MORE = b'"more"'
"""The member of a partial frame as written in the line; inside a JSON string its quotes would be escaped."""

VIEWER = "viewer"
"""`by` of gates set by a viewer, of a request sent by a viewer, and of the response to it."""

RELOAD = "reload"
"""`by` of everything that `wrap --reload` changed, held, dropped or sent while it replaced the server."""

OWN_ID = "mcpspy-"
"""The prefix of the ids of requests sent by a viewer or by `wrap --reload`."""


def take(fd: int) -> bool:
    """Acquire the lock that marks a live capture; False if another process has it. Without file locks, always True."""
    if sys.platform == "win32":
        return True
    for _ in range(3):  # a viewer that checks whether the file is live has a shared lock for a moment
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:
            return True
    return False


def is_live(fd: int, without_locks: bool = False) -> bool:
    """Return whether a process has locked this file; `without_locks` is the result on systems without file locks."""
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
