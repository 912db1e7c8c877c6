"""The captures of a directory: which there are, which are live, and deleting the others."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from mcpspy.capture.place import SUFFIX
from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError

try:
    import fcntl
except ImportError:  # Windows: a file that is open there cannot be deleted anyway
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Listed:
    """One capture of a directory."""

    capture: Capture
    size: int
    """Bytes."""
    live: bool
    started: float
    """Seconds since the epoch."""


def captures(folder: str) -> list[Listed]:
    """The captures in `folder`, live ones first, then the newest; what is not a capture is passed over."""
    return sorted(_captures(folder), key=lambda listed: (not listed.live, -listed.started))


def _captures(folder: str) -> Iterator[Listed]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"cannot list {folder}: {error.strerror}") from error
    for name in names:
        path = os.path.join(folder, name)
        if not name.endswith(SUFFIX) or not os.path.isfile(path):
            continue
        try:
            capture = Capture(path)
            started = datetime.fromisoformat(capture.header.started).timestamp()
            yield Listed(capture, os.path.getsize(path), capture.live, started)
        except (CaptureError, OSError):  # not a capture, or deleted meanwhile
            continue


def delete(listed: Listed) -> bool:
    """Delete a capture, unless it is live by now; tells whether it did."""
    try:
        fd = os.open(listed.capture.path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        if fcntl:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(listed.capture.path)
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        raise CaptureError(f"cannot delete {listed.capture.path}: {error.strerror}") from error
    finally:
        os.close(fd)
    return True
