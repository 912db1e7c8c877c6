"""The captures of a directory: list them, find the live ones, and delete others."""

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from mcpspy.capture.location import SUFFIX
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.errors import CaptureError
from mcpspy.foreign_file import open_foreign
from mcpspy.text import plural

try:
    import fcntl
except ImportError:  # Windows
    pass


HEADERS = 2000
"""How many files are read at most to find the newest capture, if file times do not show it."""
_NAMED = 3  # files listed in a sentence
_NAME = re.compile(r"\d{8}T\d{6}Z-", re.ASCII)
_COARSE = 2  # seconds by which the time of a file may be behind the clock


@dataclass(frozen=True, slots=True)
class Listed:
    """One capture of a directory."""

    capture: Capture
    size: int
    """Size of all its files in bytes."""
    live: bool
    started: float
    """Seconds since the epoch."""
    ended: float
    """When it was last written, in seconds since the epoch; infinite while it is live."""

    @property
    def header(self) -> Header:
        """Its header."""
        return self.capture.header


Refused = dict[str, str]
"""Path -> why the file cannot be read as a capture."""


def captures(folder: str, refused: Refused | None = None) -> list[Listed]:
    """Return the captures in `folder`, live ones first, then the newest. Skip other files and add them to `refused`."""
    refused = {} if refused is None else refused
    found = [read for path in _files(folder) if (read := _read(path, refused))]
    return sorted(_first_files(found), key=lambda listed: (not listed.live, -listed.started))


def newest(folder: str, refused: Refused) -> Listed | None:
    """Return the capture in `folder` that started last.

    Files that may be newer but are not captures are added to `refused`.

    A capture cannot have started after its file was last written, or after the time in its name. So files are read in
    descending order of these times, down to the start of the newest capture found. If neither time helps, as with many
    copies made at once under other names, HEADERS files are read.
    """
    found: list[tuple[Listed, list[str]]] = []
    started = -math.inf
    files = sorted(((_started_by(path), path) for path in _files(folder)), reverse=True)
    for number, (bound, path) in enumerate(files):
        if found and (bound < started or number >= HEADERS):
            break
        if read := _read(path, refused):
            found.append(read)
            started = max(started, read[0].started)
    return max(_first_files(found), key=lambda listed: listed.started, default=None)


def _started_by(path: str) -> float:
    """Return the latest possible start of the capture in a file, in seconds since the epoch."""
    try:
        written = os.path.getmtime(path) + _COARSE
    except OSError:  # deleted meanwhile
        return -math.inf
    name = os.path.basename(path)
    if _NAME.match(name):  # as written by `capture.location.file_name`
        with suppress(ValueError):
            return min(written, datetime.fromisoformat(name[:16]).timestamp() + 1)
    return written


def _first_files(found: list[tuple[Listed, list[str]]]) -> list[Listed]:
    """Return the captures among some files, without files that continue another one."""
    joined = {path for _, paths in found for path in paths[1:]}
    return [listed for listed, _ in found if listed.capture.path not in joined]


def omitted(refused: Refused) -> str:
    """Return one sentence about files that are not shown as captures; empty if there are no such files."""
    if not refused:
        return ""
    paths = sorted(refused)
    reasons = [refused[path].replace(path, os.path.basename(path)) for path in paths[:_NAMED]]
    if len(paths) > _NAMED:
        reasons.append(f"and {len(paths) - _NAMED} more")
    return f"{plural(len(paths), 'file')} not shown: {'; '.join(reasons)}"


def _files(folder: str) -> Iterator[str]:
    """Yield the paths of the files in `folder` that may be captures."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"cannot list {folder}: {error.strerror}") from error
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(SUFFIX) and os.path.isfile(path):
            yield path


def _read(path: str, refused: Refused) -> tuple[Listed, list[str]] | None:
    """Return the capture in a file (maybe a continuation) and the paths of its files; None if it is not a capture."""
    try:
        capture = Capture(path)
        started = datetime.fromisoformat(capture.header.started).timestamp()
        paths = capture.paths
        size = sum(map(os.path.getsize, paths))
        live = capture.live
        ended = math.inf if live else os.path.getmtime(paths[-1])
        return Listed(capture, size, live, started, ended), paths
    except CaptureError as error:
        if os.path.lexists(path):  # not deleted meanwhile
            refused[path] = str(error)
    except OSError:  # deleted meanwhile
        pass
    return None


def delete(listed: Listed) -> bool:
    """Delete a capture with all its files, unless it is live by now. Return whether it was deleted."""
    try:
        first, *others = listed.capture.paths
    except CaptureError:  # deleted meanwhile
        return False
    return not listed.capture.live and all(map(_delete, [*others, first]))


def _delete(path: str) -> bool:
    try:
        with _unused(path):
            os.unlink(path)
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        raise CaptureError(f"cannot delete {path}: {error.strerror}") from error
    return True


@contextmanager
def _unused(path: str) -> Iterator[None]:
    """Ensure that no other process has locked a file. Raises BlockingIOError otherwise."""
    if sys.platform == "win32":  # Windows cannot delete an open file, even if we opened it
        yield
        return
    with open_foreign(path) as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
