"""What a collector has accepted of a capture, so that nothing is sent twice after a restart (T-04).

After a restart the capture is read from its beginning, which gives the same spans with the same ids. The line number of
the request identifies a span that was accepted. Spans are finished when their exchanges end. So below a line number all
spans were accepted except those of requests that are still open, and above it they are stored one by one. A request
that stays open for days therefore costs one entry. Log entries have no ids and always come in the same order, so their
number is enough. A capture that has ended and has not changed since need not be read again.

There is one small file for each capture and endpoint, replaced after each batch, in a directory of the user.
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
from mcpspy.foreign_file import read_foreign

try:
    import fcntl
except ImportError:  # Windows
    pass


Place = tuple[int, int]
"""The line number of a request, and its position in a batch, else 0."""


@dataclass(slots=True)
class Checkpoint:
    """What was accepted of one capture."""

    below: int = 0
    """The spans of requests on lines before this one were accepted, except for those that are `open`."""
    open: set[Place] = field(default_factory=set)
    taken: set[Place] = field(default_factory=set)
    """The requests from that line on whose spans were accepted."""
    logs: int = 0
    """The number of log entries that were accepted."""
    size: int | None = None
    """The size of the capture in bytes, once all of it was accepted."""

    def has(self, place: Place) -> bool:
        """Return whether the span of the request at `place` was accepted."""
        return place not in self.open if place[0] < self.below else place in self.taken

    def take(self, spans: Iterable[Place], waiting: Iterable[Place], below: int) -> None:
        """Record accepted spans; all requests on lines before `below` were read, and those in `waiting` are open."""
        self.taken.update(spans)
        if below > self.below:
            self.open.update(place for place in waiting if self.below <= place[0] < below)
            self.below = below
        self.open -= self.taken
        self.taken = {place for place in self.taken if place[0] >= self.below}


def folder(endpoint: str) -> str:
    """Return the directory of the checkpoints for an endpoint."""
    return os.path.join(home(), "otel", blake2b(endpoint.encode(), digest_size=4).hexdigest())


def file_of(place: str, capture: str) -> str:
    """Return the file in the directory `place` for the capture with an id, which may be any text."""
    name = blake2b(capture.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return os.path.join(place, f"{name}.json")


class Claims:
    """The captures of a directory of checkpoints that this process sends; no other process sends them meanwhile.

    One file has the locks of all captures, one byte for each, so that thousands of captures need one descriptor. The
    locks end with the process. Without locks (Windows) every capture is free.
    """

    def __init__(self, place: str) -> None:
        """Raise UsageError if the directory cannot be written."""
        path = os.path.join(place, "lock")
        try:
            make_directory(place)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"cannot write the checkpoints in {place}: {error.strerror}") from error

    def take(self, path: str) -> bool:
        """Lock the capture with the checkpoint at `path`; return False if another process has it."""
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
        """Unlock a capture, so that other processes may send it."""
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(path))

    def close(self) -> None:
        """Release all locks."""
        os.close(self._file)


def _byte(path: str) -> int:
    return int.from_bytes(blake2b(os.path.basename(path).encode(), digest_size=7).digest())


def load(path: str) -> Checkpoint:
    """Return the checkpoint in a file; if it is missing or damaged, that of a capture which was not exported yet."""
    try:
        fields: Any = orjson.loads(read_foreign(path))
        waiting, taken = ({(int(n), int(part)) for n, part in fields[name]} for name in ("open", "taken"))
        size = fields["size"]
        return Checkpoint(
            int(fields["below"]), waiting, taken, int(fields["logs"]), None if size is None else int(size)
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Checkpoint()


def save(path: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a reader sees the old one or the new one. Raises UsageError if that is impossible."""
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
