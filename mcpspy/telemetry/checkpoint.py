"""What a collector has taken of a capture, so that nothing is sent twice after a restart (T-04).

Whoever starts again reads a capture from its beginning, and gets the same spans with the same ids. Which of them were
taken is known by the line number of the request. Spans come out when they end, so below a bound all were taken but
those of requests that are still open, and above it they are known one by one. So a request that stays open for days
costs one entry. Log entries have no ids and come out in one order: how many were taken is enough. A capture that has
ended and is unchanged since need not be read again.

One small file for each capture and endpoint, written anew after each batch, in a directory of the user's.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from mcpspy.capture.location import home, make_directory
from mcpspy.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows
    pass


Place = tuple[int, int]
"""The line number of a request, and its place in a batch, else 0."""


@dataclass(slots=True)
class Checkpoint:
    """What was taken of one capture."""

    below: int = 0
    """The spans of requests on lines before this one were taken, but for those that are `open`."""
    open: set[Place] = field(default_factory=set)
    taken: set[Place] = field(default_factory=set)
    """The requests from that line on whose spans were taken."""
    logs: int = 0
    """How many log entries were taken."""
    size: int | None = None
    """The bytes of the capture, once all of it was taken."""

    def has(self, place: Place) -> bool:
        """Whether the span of the request at `place` was taken."""
        return place not in self.open if place[0] < self.below else place in self.taken

    def take(self, spans: Iterable[Place], waiting: Iterable[Place], below: int) -> None:
        """These spans were taken; all requests on lines before `below` were read, and those `waiting` are open."""
        self.taken.update(spans)
        if below > self.below:
            self.open.update(place for place in waiting if self.below <= place[0] < below)
            self.below = below
        self.open -= self.taken
        self.taken = {place for place in self.taken if place[0] >= self.below}


def folder(endpoint: str) -> str:
    """The directory of the checkpoints for an endpoint."""
    return os.path.join(home(), "otel", blake2b(endpoint.encode(), digest_size=4).hexdigest())


def file_of(place: str, capture: str) -> str:
    """The file in the directory `place` for the capture with an id, which may be any text."""
    name = blake2b(capture.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return os.path.join(place, f"{name}.json")


class Claims:
    """Which captures of a directory of checkpoints this process sends; no other process sends them meanwhile.

    One file holds the locks of all captures, a byte for each, so that thousands of captures need one descriptor. Its
    locks end with the process. Without locks (Windows) every capture is free.
    """

    def __init__(self, place: str) -> None:
        """Raises UsageError where the directory cannot be written."""
        path = os.path.join(place, "lock")
        try:
            make_directory(place)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"cannot write the checkpoints in {place}: {error.strerror}") from error

    def take(self, path: str) -> bool:
        """Take the capture with the checkpoint at `path`; False if another process has it."""
        if sys.platform == "win32":
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(path))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def release(self, path: str) -> None:
        """Other processes may send the capture."""
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(path))

    def close(self) -> None:
        """Release all."""
        os.close(self._file)


def _byte(path: str) -> int:
    return int.from_bytes(blake2b(os.path.basename(path).encode(), digest_size=7).digest())


def load(path: str) -> Checkpoint:
    """The checkpoint in a file; if the file is missing or damaged, the one of a capture not exported yet."""
    try:
        with open(path, "rb") as file:
            fields: Any = orjson.loads(file.read())
        waiting, taken = ({(int(n), int(part)) for n, part in fields[name]} for name in ("open", "taken"))
        size = fields["size"]
        return Checkpoint(
            int(fields["below"]), waiting, taken, int(fields["logs"]), None if size is None else int(size)
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Checkpoint()


def save(path: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a reader sees the old one or the new one. Raises UsageError where that is impossible."""
    fields = {
        "below": checkpoint.below,
        "open": sorted(checkpoint.open),
        "taken": sorted(checkpoint.taken),
        "logs": checkpoint.logs,
        "size": checkpoint.size,
    }
    partial = f"{path}.{os.getpid()}"
    try:
        make_directory(os.path.dirname(path))
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(orjson.dumps(fields))
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(partial)
        raise UsageError(f"cannot write the checkpoint {path}: {error.strerror}") from error
