"""Folders that a query needs while it runs: for what does not fit into memory, and for a result file.

Each has a file that is locked while the query runs, like a live capture. So the next query recognizes what a killed
process has left, and deletes it: it can be gigabytes.
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
from mcpspy.foreign_file import open_foreign
from mcpspy.query.cache import root

_LOCK = "lock"
_NEW = 60  # seconds in which a new folder may have no lock yet


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a folder that only the user can read, and delete it at the end. Raises UsageError."""
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
    """Delete the folders of processes that ended without deleting them."""
    for entry in os.scandir(above):
        if entry.stat(follow_symlinks=False).st_mtime < time.time() - _NEW and not _in_use(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)


def _in_use(folder: str) -> bool:
    try:
        with open_foreign(os.path.join(folder, _LOCK)) as lock:
            return is_live(lock.fileno(), without_locks=True)
    except OSError:
        return False
