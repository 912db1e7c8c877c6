"""What a collector has taken of a capture, so that nothing is sent twice after a restart (T-04).

The theory. Whoever starts again reads a capture from its beginning, and gets the same spans with the same ids. Which of
them were taken is known by the line number of the request: all below a bound, and some above it, since spans come out
when they end. Log entries have no ids and come out in one order: how many were taken is enough. A capture that has
ended and is unchanged since need not be read again.

One small file for each capture and endpoint, written anew after each batch, in a directory of the user's.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from mcpspy.capture.location import home, make_directory
from mcpspy.errors import UsageError


@dataclass(slots=True)
class Checkpoint:
    """What was taken of one capture."""

    below: int = 0
    """All spans of requests on lines before this one were taken."""
    taken: set[tuple[int, int]] = field(default_factory=set)
    """Lines and parts of the others."""
    logs: int = 0
    """How many log entries were taken."""
    size: int | None = None
    """The bytes of the capture, once all of it was taken."""

    def has(self, n: int, part: int) -> bool:
        """Whether the span of the request on line `n` was taken."""
        return n < self.below or (n, part) in self.taken

    def take(self, spans: list[tuple[int, int]], below: int) -> None:
        """These spans were taken; requests before line `below` are not open any more."""
        self.taken.update(spans)
        self.below = max(self.below, below)
        self.taken = {place for place in self.taken if place[0] >= self.below}


def folder(endpoint: str) -> str:
    """The directory of the checkpoints for an endpoint."""
    return os.path.join(home(), "otel", blake2b(endpoint.encode(), digest_size=4).hexdigest())


def load(path: str) -> Checkpoint:
    """The checkpoint in a file; that of a capture of which nothing was taken where there is none, or a damaged one."""
    try:
        with open(path, "rb") as file:
            fields: Any = orjson.loads(file.read())
        taken = {(int(n), int(part)) for n, part in fields["taken"]}
        size = fields["size"]
        return Checkpoint(int(fields["below"]), taken, int(fields["logs"]), None if size is None else int(size))
    except (OSError, ValueError, KeyError, TypeError):
        return Checkpoint()


def save(path: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a reader sees the old one or the new one. Raises UsageError where that is impossible."""
    fields = {
        "below": checkpoint.below,
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
