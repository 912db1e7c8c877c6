"""Folders for what a query needs while it runs: what does not fit into memory, and a result that becomes a file.

Each has a file that is locked while the query runs, as a live capture is. So what a killed process has left is known,
and goes with the next query: it can be gigabytes.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import mkdtemp

from mcpspy.capture.format import is_live, take
from mcpspy.capture.location import make_directory
from mcpspy.errors import UsageError
from mcpspy.query.cache import root

_LOCK = "lock"
_NEW = 60  # seconds in which a folder may have no lock yet


@contextmanager
def scratch() -> Iterator[str]:
    """A folder of one's own, private to the user, that is deleted in the end. Raises UsageError."""
    above = os.path.join(root(), "running")
    try:
        make_directory(above)
        _forget_killed(above)
        folder = mkdtemp(dir=above)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or above}: {error.strerror or error}") from error
    try:
        with open(os.path.join(folder, _LOCK), "xb") as lock:
            take(lock.fileno())
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forget_killed(above: str) -> None:
    """Delete the folders of processes that have ended without doing so."""
    for entry in os.scandir(above):
        if entry.stat(follow_symlinks=False).st_mtime < time.time() - _NEW and not _in_use(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)


def _in_use(folder: str) -> bool:
    try:
        with open(os.path.join(folder, _LOCK), "rb") as lock:
            return is_live(lock.fileno(), without_locks=True)
    except OSError:
        return False
