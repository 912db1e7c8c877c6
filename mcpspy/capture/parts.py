"""A capture and the files that it goes on in (`--max-capture`), read as one file.

The last record of a file that a writer has left names the next one, and that one's header names the one before; both
must agree. Of each further file the header and the channels that it opens again are left out, so what is read is what
one large file would hold. Lines are numbered through.
"""

import json
import os
import stat
from typing import BinaryIO, NamedTuple, Self

from mcpspy.capture.format import is_live
from mcpspy.errors import CaptureError, NotACapture

_TAIL = 1024  # bytes at the end of a file in which the record stands that names the next
_CONTINUED = b'{"kind":"continued",'
_HEAD = 1 << 20  # bytes of the longest header
_MOST = 10_000  # files of one capture


class _Part(NamedTuple):
    file: BinaryIO
    path: str
    start: int
    """Where it begins in the whole."""
    skipped: int
    """Bytes at its beginning that are left out."""

    @property
    def end(self) -> int:
        """Where it ends in the whole."""
        return self.start + max(os.fstat(self.file.fileno()).st_size - self.skipped, 0)


class JoinedFiles:
    """The files of one capture; `read`, `seek` and `tell` are those of a binary file without a buffer."""

    def __init__(self, path: str) -> None:
        """Open the first file. Raises CaptureError where it cannot be read."""
        self._parts = [_Part(_open(path), path, 0, 0)]
        self._place = 0
        self._waiting = False  # the next file exists, and its header is not complete yet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every file."""
        for part in self._parts:
            part.file.close()

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes from here, never across the border of two files; none at the end."""
        part = next((part for part in reversed(self._parts) if self._place >= part.start), self._parts[0])
        part.file.seek(self._place - part.start + part.skipped)
        end = limit if part is self._parts[-1] else min(limit, part.end - self._place)
        found = part.file.read(end)
        if not found and part is self._parts[-1] and self._extend():
            return self.read(limit)
        self._place += len(found)
        return found

    def seek(self, place: int) -> None:
        """Go to a place in the whole."""
        self._place = place

    def tell(self) -> int:
        """The place in the whole."""
        return self._place

    @property
    def live(self) -> bool:
        """Whether a relay is writing to the last file."""
        while self._extend():
            pass
        return self._waiting or is_live(self._parts[-1].file.fileno())

    @property
    def size(self) -> int:
        """Bytes of the whole, as far as its files are known."""
        return self._parts[-1].end

    @property
    def linked(self) -> bool:
        """Whether the first file still has a name."""
        return os.fstat(self._parts[0].file.fileno()).st_nlink > 0

    @property
    def paths(self) -> list[str]:
        """The files, first to last."""
        while self._extend():
            pass
        return [part.path for part in self._parts]

    def _extend(self) -> bool:
        """Open the next file, if the last one names it; tells whether it did."""
        last = self._parts[-1]
        self._waiting = False
        if len(self._parts) >= _MOST or is_live(last.file.fileno()):
            return False
        name = _next_name(last.file)
        if name is None:
            return False
        path = os.path.join(os.path.dirname(last.path), name)
        try:
            file = _open(path)
        except CaptureError:  # it was deleted
            return False
        try:
            skipped = _preamble(file, _header_id(last.file))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # it is another file
            skipped = None
        self._waiting = skipped == 0 and is_live(file.fileno())
        if not skipped:
            file.close()
            return False
        self._parts.append(_Part(file, path, last.end, skipped))
        return True


def _open(path: str) -> BinaryIO:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise NotACapture(f"{path} is not a regular file")  # opening a FIFO would wait for a writer
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error


def _next_name(file: BinaryIO) -> str | None:
    """The name of the file that goes on after this one; None if it is the last."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(size - _TAIL, 0))
    line = file.read(_TAIL).rstrip(b"\n").rpartition(b"\n")[2]
    if not line.startswith(_CONTINUED):
        return None
    try:
        name = json.loads(line)["file"]
    except (ValueError, KeyError):
        return None
    return name if isinstance(name, str) and name == os.path.basename(name) and name not in ("", ".", "..") else None


def _header_id(file: BinaryIO) -> str:
    file.seek(0)
    return str(json.loads(file.read(_HEAD).partition(b"\n")[0])["id"])


def _preamble(file: BinaryIO, before: str) -> int:
    """The bytes of a file that repeat what stands in the one whose id is `before`; 0 while they are not all there.

    Raises ValueError, KeyError or TypeError for a file that does not go on from that one.
    """
    file.seek(0)
    head = file.read(_HEAD)
    line, newline, _ = head.partition(b"\n")
    if not newline:
        return 0
    continues = json.loads(line)["continues"]
    if continues["id"] != before:
        raise ValueError("it goes on from another capture")
    lines = int(continues["lines"])
    file.seek(0)
    place = 0
    while lines > 0 and (chunk := file.read(_HEAD)):
        at = -1
        while lines > 0 and (found := chunk.find(b"\n", at + 1)) >= 0:
            at, lines = found, lines - 1
        place += at + 1 if not lines else len(chunk)
    return 0 if lines else place
