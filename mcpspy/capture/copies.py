"""Captures that are copied before they are read: compressed files (gzip) and standard input.

Readers go back and forth in a capture, but a pipe and a compressed file can only be read from front to back. So what is
read from them goes into a temporary file, and that file is read like any other capture. It has no name: no other user
can open it, and the system deletes it when this process ends, whatever ends it.

The first bytes of a file show whether it is compressed, not its name. A file is decompressed as far as it is read, so a
list needs only the beginning of each file; standard input is copied as a whole. A few MiB can decompress to gigabytes,
so a copy has a largest size (`LARGEST`), and it never fills the disk (`SPARED`).

If compressed data is damaged or incomplete, the copy has everything before that. Its last line is a gap with the
reason (`LOST`), so every reader shows that something is missing.
"""

import io
import os
import sys
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from shutil import disk_usage
from typing import TYPE_CHECKING, Any, BinaryIO
from weakref import finalize

import orjson

from mcpspy.capture.format import LOST
from mcpspy.capture.location import STANDARD_INPUT, shown
from mcpspy.errors import CaptureError, NotACapture
from mcpspy.foreign_file import open_foreign
from mcpspy.text import size_text
from mcpspy.wire.content_coding import CODINGS

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LARGEST = 4_000_000_000
"""The largest copy, in bytes."""

SPARED = 256 << 20
"""Bytes of the disk that a copy leaves free."""

GZIP = b"\x1f\x8b\x08"
"""The first bytes of a compressed file."""

_KEPT = 8  # copies that are kept although nobody reads them at the moment
_SLICE = 1 << 10  # bytes decompressed at once: of a damaged slice, everything is lost
_PIECE = 1 << 16  # bytes written at once
_BLOCK = 16 << 20  # bytes written between two looks at the free space
_TAIL = 1 << 20  # bytes at the end of a copy in which a record with a time is looked for
_LENGTH = 4  # bytes at the end of a compressed file that state its size, modulo 4 GiB


class _Copy:
    """What was read so far of a compressed file, or of standard input. It may be read in several threads."""

    def __init__(self, name: str, pieces: Iterator[bytes], stated: int = 0) -> None:
        self.name = name
        self.size = 0
        """Bytes so far."""
        self.stated = stated
        """The size that the compressed file states; it may be wrong."""
        self.complete = False
        self._pieces = pieces
        self._has_header = False
        self._failure: CaptureError | None = None
        self._lock = threading.Lock()
        try:
            with tempfile.TemporaryFile(prefix="mcpspy-", buffering=0) as file:
                self._file = os.dup(file.fileno())
        except OSError as error:
            raise CaptureError(f"cannot copy {name} into a temporary file: {error.strerror}") from error
        finalize(self, os.close, self._file)

    def grow(self, until: int | None = None) -> None:
        """Continue to a size in bytes, or to the end. Raises CaptureError if that is impossible."""
        with self._lock:
            while not self.complete and (until is None or self.size < until):
                if self._failure:
                    raise self._failure
                try:
                    self._add()
                except CaptureError as error:
                    self._failure = error

    def read(self, place: int, limit: int) -> bytes:
        """Return at most `limit` bytes from a place; empty at the end."""
        self.grow(place + limit)
        with self._lock:
            return _read_at(self._file, place, limit)

    def _add(self) -> None:
        """Add the next piece."""
        try:
            piece = next(self._pieces, None)
        except zlib.error:
            piece = self._lost("the gzip data is damaged")
        except EOFError:
            piece = self._lost("the gzip data ends too early")
        except OSError as error:
            raise CaptureError(f"cannot read {self.name}: {error.strerror}") from error
        if piece is None:
            self.complete = True
            return
        self._has_header = self._has_header or b"\n" in piece
        if self.size + len(piece) > LARGEST:
            what = f"{self.name} holds more than the {size_text(LARGEST)} that are copied into a temporary file"
            raise CaptureError(f"{what}; write the uncompressed capture to a file, and read that file")
        self._write(piece)

    def _write(self, piece: bytes) -> None:
        """Append to the temporary file."""
        folder = tempfile.gettempdir()
        advice = f"{folder} is full: make room, or set TMPDIR to a directory with more"
        try:
            if self.size % _BLOCK + len(piece) >= _BLOCK and disk_usage(folder).free < SPARED:
                raise CaptureError(f"cannot copy {self.name} into a temporary file: {advice}")
            while piece:
                done = _write_at(self._file, self.size, piece)
                self.size, piece = self.size + done, piece[done:]
        except OSError as error:
            raise CaptureError(f"cannot copy {self.name} into a temporary file ({error.strerror}): {advice}") from error

    def _lost(self, why: str) -> bytes:
        """Return the record that ends the copy of a damaged file. Raises NotACapture if there is not even a header."""
        self._pieces = iter(())
        if not self._has_header:
            raise NotACapture(f"{self.name} is not a capture: {why}, and there is no header before that")
        _report[-1](f"{self.name}: {why}; everything before that is read")
        start = max(self.size - _TAIL, 0)
        lines = _read_at(self._file, start, self.size - start).split(b"\n")
        gap = {"kind": "gap", "t": next(_times(lines[::-1]), 0), "lost": 1, "why": f"{LOST} ({why})"}
        return (b"\n" if lines[-1] else b"") + orjson.dumps(gap) + b"\n"


def _times(lines: list[bytes]) -> Iterator[int]:
    for line in lines:
        try:
            t = orjson.loads(line)["t"]
        except (ValueError, KeyError, TypeError):
            continue
        if type(t) is int and 0 <= t < 1 << 62:
            yield t


class CopiedFile(io.RawIOBase):
    """A copy as a file of its own that is read."""

    def __init__(self, copy: _Copy) -> None:
        super().__init__()
        self.name = copy.name
        self._copy = copy
        self._place = 0

    @property
    def size(self) -> int:
        """The size of the content. Raises CaptureError if it cannot be copied."""
        self._copy.grow()
        return self._copy.size

    @property
    def stated_size(self) -> int:
        """The size that the compressed file states, which may be wrong."""
        return self._copy.size if self._copy.complete else max(self._copy.size, self._copy.stated)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, place: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to a place."""
        self._place = place + (self.size if whence == os.SEEK_END else self._place if whence == os.SEEK_CUR else 0)
        return self._place

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read bytes into a buffer, and return their number. Raises CaptureError if they cannot be copied."""
        view = memoryview(buffer).cast("B")
        found = self._copy.read(self._place, len(view))
        view[: len(found)] = found
        self._place += len(found)
        return len(found)


_report: list[Callable[[str], None]] = [lambda _: None]
_lock = threading.Lock()
_copies: OrderedDict[tuple[int, ...], _Copy] = OrderedDict()  # by the state of the file, the last used one at the end
_inputs: dict[Any, _Copy] = {}  # by the stream


def report_damage(say: Callable[[str], None]) -> None:
    """Let `say` receive one sentence about each compressed file that is damaged or incomplete."""
    _report[-1] = say


def opened(path: str) -> BinaryIO:
    """Open the capture at a path for reading; `-` is standard input. Raises OSError, or CaptureError."""
    if path == STANDARD_INPUT:
        copy = _standard_input()
    else:
        with ExitStack() as stack:
            file = open_foreign(path, buffering=0)
            stack.callback(file.close)
            if file.read(len(GZIP)) != GZIP:
                file.seek(0)
                stack.pop_all()
                return file
            copy = _copy_of(path, file)
    found: Any = CopiedFile(copy)
    return found  # type: ignore[no-any-return]


def _copy_of(path: str, file: BinaryIO) -> _Copy:
    """Return the copy of a compressed file in its current state."""
    status = os.fstat(file.fileno())
    key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    with _lock:
        copy = _copies.pop(key, None)
        if copy is None:
            stated = _read_at(file.fileno(), max(status.st_size - _LENGTH, 0), _LENGTH)
            source = _Source(os.dup(file.fileno()))
            copy = _Copy(path, _decompressed(source.read), int.from_bytes(stated, "little"))
        _copies[key] = copy
        if len(_copies) > _KEPT:
            _copies.popitem(last=False)
    return copy


class _Source:
    """A compressed file that is read from front to back; a process that is forked meanwhile has its own place in it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._place = 0
        finalize(self, os.close, file)

    def read(self, limit: int) -> bytes:
        """Return the next bytes; empty at the end."""
        found = _read_at(self._file, self._place, limit)
        self._place += len(found)
        return found


def _standard_input() -> _Copy:
    """Return the copy of standard input, which is read to its end at the first call."""
    stream = sys.stdin
    if stream in _inputs:
        return _inputs[stream]
    if stream is None or stream.isatty():
        what = "is closed" if stream is None else "is a terminal"
        raise CaptureError(f"standard input {what}: redirect it, as in 'mcpspy show - < FILE'")
    read = stream.buffer.read
    begin = read(len(GZIP))
    pieces = [begin]

    def read_on(limit: int) -> bytes:
        return pieces.pop() if pieces else read(limit)

    compressed = begin == GZIP
    plain = iter(lambda: read_on(_PIECE), b"")
    copy = _Copy(shown(STANDARD_INPUT), _decompressed(read_on) if compressed else plain)
    copy.grow()
    _inputs[stream] = copy
    return copy


def _decompressed(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield what compressed bytes decompress to. Raises the exception of damaged data, and EOFError."""
    gzip = CODINGS["gzip"]()
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := read(_SLICE):
            for part in gzip.feed(chunk):
                parts.append(part)
                size += len(part)
                if size >= _PIECE:
                    yield b"".join(parts)
                    parts, size = [], 0
    except zlib.error:
        yield b"".join(parts)
        raise
    yield b"".join(parts)
    if not gzip.complete:
        raise EOFError


if sys.platform == "win32":

    def _read_at(file: int, place: int, limit: int) -> bytes:
        os.lseek(file, place, os.SEEK_SET)
        return os.read(file, limit)

    def _write_at(file: int, place: int, piece: bytes) -> int:
        os.lseek(file, place, os.SEEK_SET)
        return os.write(file, piece)

else:

    def _read_at(file: int, place: int, limit: int) -> bytes:
        return os.pread(file, limit, place)  # processes that were forked share the place of a descriptor

    def _write_at(file: int, place: int, piece: bytes) -> int:
        return os.pwrite(file, piece, place)
