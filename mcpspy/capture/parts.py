"""A capture and the files in which it continues (`--max-capture`), read as one file.

The last record of a complete file names the next file, and the header of the next file names the one before; both must
match. In the continuation files, the header and the repeated `open` records are skipped, so the content is the same as
that of one large file. Line numbers run through all files.
"""

import os
from collections.abc import Callable
from typing import BinaryIO, NamedTuple, Self

from mcpspy.capture.copies import CopiedFile, opened
from mcpspy.capture.format import is_live
from mcpspy.capture.location import STANDARD_INPUT, shown
from mcpspy.errors import CaptureError, NotACapture
from mcpspy.foreign_file import NotRegular, open_foreign, similar
from mcpspy.json_values import parsed

_TAIL = 1024  # bytes at the end of a file that contain the record with the name of the next file
_CONTINUED = b'{"kind":"continued",'
_HEAD = 1 << 20  # bytes of the longest header
_MOST = 10_000  # files of one capture


class _Part(NamedTuple):
    path: str
    start: int
    """Its start in the joined file."""
    skipped: int
    """Bytes skipped at its beginning."""
    key: tuple[int, int]
    """Device and inode."""


class JoinedFiles:
    """The files of one capture; `read`, `seek` and `tell` work as those of an unbuffered binary file.

    At most three files are open at a time: the first, the last, and the one being read. A compressed file and
    standard input (`-`) are one file: their copies are read, which are never live.
    """

    def __init__(self, path: str) -> None:
        """Open the first file. This and all other methods raise CaptureError if a file cannot be read."""
        first = _open(path, opened)
        self._copy = first if isinstance(first, CopiedFile) else None
        self._parts = [_Part(path, 0, 0, (0, 0) if self._copy else _key(first))]
        self._files = {0: first}
        self._place = 0
        self._waiting = False  # the next file exists, but its header is not complete yet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every file."""
        for file in self._files.values():
            file.close()

    def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes from the current place, never across two files; empty at the end."""
        last = len(self._parts) - 1
        number = last
        while self._place < self._parts[number].start:
            number -= 1
        part = self._parts[number]
        file = self._file(number)
        file.seek(self._place - part.start + part.skipped)
        end = limit if number == last else min(limit, self._parts[number + 1].start - self._place)
        found = _read(file, end)
        if not found and number == last and self._extend():
            return self.read(limit)
        self._place += len(found)
        return found

    def seek(self, place: int) -> None:
        """Move to a place in the joined file."""
        self._place = place

    def tell(self) -> int:
        """Return the place in the joined file."""
        return self._place

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._files[0].closed

    @property
    def live(self) -> bool:
        """Whether a relay is writing to the last file."""
        while self._extend():
            pass
        return not self._copy and (self._waiting or is_live(self._last.fileno()))

    @property
    def copied(self) -> bool:
        """Whether a copy is read, because the file is compressed or standard input."""
        return self._copy is not None

    @property
    def size(self) -> int:
        """Size of the joined file in bytes, as far as its files are known."""
        if self._copy:
            return self._copy.size
        part = self._parts[-1]
        return part.start + max(os.fstat(self._last.fileno()).st_size - part.skipped, 0)

    @property
    def linked(self) -> bool:
        """Whether the first file still has a name in its directory."""
        return self._copy is not None or os.fstat(self._files[0].fileno()).st_nlink > 0

    @property
    def stated_size(self) -> int:
        """Size of the joined file in bytes; of a compressed file, the size that it states, which may be wrong."""
        while self._extend():
            pass
        return self._copy.stated_size if self._copy else self.size

    @property
    def paths(self) -> list[str]:
        """The paths of the files, first to last; standard input has none."""
        while self._extend():
            pass
        return [part.path for part in self._parts if part.path != STANDARD_INPUT]

    @property
    def _last(self) -> BinaryIO:
        return self._file(len(self._parts) - 1)

    def _file(self, number: int) -> BinaryIO:
        file = self._files.get(number)
        if file is None:
            self._close_others()
            file = self._files[number] = _open(self._parts[number].path)
        return file

    def _extend(self) -> bool:
        """Open the next file, if the last one names it. Return whether it was opened."""
        self._waiting = False
        if self._copy:
            return False
        last = self._last
        if len(self._parts) >= _MOST or is_live(last.fileno()):
            return False
        name = _next_name(last)
        path = os.path.join(os.path.dirname(self._parts[-1].path), name or "")
        if name is None or not os.path.isfile(path):  # there is no next file, or it was deleted
            return False
        file = _open(path)
        try:
            skipped = _preamble(file, _header_id(last))
        except _NO_CONTINUATION:
            skipped = None
        self._waiting = skipped == 0 and is_live(file.fileno())
        if not skipped or _key(file) in {part.key for part in self._parts}:
            file.close()
            return False
        self._parts.append(_Part(path, self.size, skipped, _key(file)))
        self._files[len(self._parts) - 1] = file
        self._close_others()
        return True

    def _close_others(self) -> None:
        """Close the files between the first and the last; they are opened again when needed."""
        for number in set(self._files) - {0, len(self._parts) - 1}:
            self._files.pop(number).close()


_NO_CONTINUATION = (CaptureError, ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""The exceptions for a file that does not continue the one before."""


def _key(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _plain(path: str) -> BinaryIO:
    return open_foreign(path, buffering=0)


def _open(path: str, opener: Callable[[str], BinaryIO] = _plain) -> BinaryIO:
    try:
        return opener(path)
    except NotRegular as error:
        raise NotACapture(f"cannot read {path}: {error.strerror}") from error
    except OSError as error:
        raise CaptureError(f"cannot read {shown(path)}: {error.strerror}{_hint(path, error)}") from error


def _read(file: BinaryIO, limit: int) -> bytes:
    try:
        return file.read(limit)
    except OSError as error:
        raise CaptureError(f"cannot read {file.name}: {error.strerror}") from error


def _hint(path: str, error: OSError) -> str:
    """Return what to do about a path that cannot be opened."""
    if os.path.isdir(path):
        return f"; 'mcpspy ls {path}' lists the captures in it"
    if not isinstance(error, FileNotFoundError):
        return ""
    near = similar(path)
    return f"; did you mean {near}?" if near else ""


def _next_name(file: BinaryIO) -> str | None:
    """Return the name of the file that continues this one; None if this is the last."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(size - _TAIL, 0))
    line = _read(file, _TAIL).rstrip(b"\n").rpartition(b"\n")[2]
    if not line.startswith(_CONTINUED):
        return None
    try:
        name = parsed(line)["file"]
        os.fsencode(name)
    except (ValueError, KeyError, TypeError):  # not a valid file name
        return None
    plain = isinstance(name, str) and name == os.path.basename(name) and "\0" not in name
    return name if plain and name not in ("", ".", "..") else None


def _header_id(file: BinaryIO) -> str:
    file.seek(0)
    return str(parsed(_read(file, _HEAD).partition(b"\n")[0])["id"])


def _preamble(file: BinaryIO, before: str) -> int:
    """Return the number of bytes at the start of a file that repeat the file with the id `before`.

    Returns 0 while these bytes are incomplete.
    Raises ValueError, KeyError or TypeError if the file does not continue that one.
    """
    file.seek(0)
    head = _read(file, _HEAD)
    line, newline, _ = head.partition(b"\n")
    if not newline:
        return 0
    continues = parsed(line)["continues"]
    if continues["id"] != before:
        raise ValueError("it goes on from another capture")
    lines = int(continues["lines"])
    file.seek(0)
    place = 0
    while lines > 0 and (chunk := _read(file, _HEAD)):
        at = -1
        while lines > 0 and (found := chunk.find(b"\n", at + 1)) >= 0:
            at, lines = found, lines - 1
        place += at + 1 if not lines else len(chunk)
    return 0 if lines else place
