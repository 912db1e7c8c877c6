"""Captures made of captures: a copy of one, and a file in which one capture continues with the sessions of others.

A copy keeps the line numbers of its original: each line corresponds to the line with the same number. So addresses such
as `#17` stay valid. Code that changes a capture replaces each record by exactly one record.

A capture can hold several client sessions, each with its own channels. A file with more sessions begins with the old
one, byte for byte. The channel numbers and times of an added session are changed to follow those before. Nothing else
of it changes: its frames and its `end` stay as recorded. Line numbers of the old capture stay valid.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from gzip import GzipFile
from typing import Any, BinaryIO

import orjson

from mcpspy.capture.format import MAGIC
from mcpspy.capture.location import PACKED
from mcpspy.foreign_file import open_foreign
from mcpspy.output_file import output_file


def write_copy(lines: Iterable[bytes], path: str, *, replace: bool = False) -> None:
    """Write a capture of complete lines, each with its newline, to `path`, mode 0600; the header comes first.

    It is compressed if the path ends in `.gz`.

    Raises UsageError if the file exists and may not be replaced, or cannot be written; then no partial file is left.
    """
    with output_file(path, replace=replace) as output, packed(output, compress=path.endswith(PACKED)) as file:
        for number, line in enumerate(lines):
            if number == 0 and not line.startswith(MAGIC):
                raise ValueError(f"not the header of a capture: {line[:40]!r}")
            file.write(line)


@contextmanager
def packed(output: BinaryIO, *, compress: bool) -> Iterator[BinaryIO]:
    """Yield a file whose content is written to the output, compressed if requested; equal content has equal bytes."""
    if not compress:
        yield output
        return
    with GzipFile("", "wb", fileobj=output, mtime=0) as file:
        writer: Any = file
        yield writer


def record_line(record: dict[str, object]) -> bytes:
    """Return a record, or the header, as a line of a capture."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


_LARGEST = 1 << 61


def write_with_sessions(capture: str, added: Sequence[str], target: str) -> None:
    """Write the capture at `capture` to `target`, mode 0600, followed by the sessions of the captures `added`.

    Each capture is one file that is no longer written. Lines of `added` that do not parse are skipped; to detect them,
    load the captures first. Raises UsageError if `target` exists or cannot be written, and OSError if a file cannot be
    read.
    """
    place = _Place()
    with output_file(target, replace=False) as file:
        with open_foreign(capture) as old:
            for line in old:
                place.note(_fields(line))
                file.write(line if line.endswith(b"\n") else line + b"\n")
        for path in added:
            with open_foreign(path) as new:
                for line in place.follow(new):
                    file.write(line)


class _Place:
    """The end of a file: the numbers and times that the next session must follow."""

    def __init__(self) -> None:
        self._started = 0  # nanoseconds since the epoch
        self._channels = 0
        self._t = 0

    def note(self, record: dict[str, Any]) -> None:
        """Process the next line of the file."""
        if "mcpspy" in record:
            self._started = _started(record)
        self._channels = max(self._channels, _number(record.get("ch")))
        self._t = max(self._t, _number(record.get("t")))

    def follow(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the lines of another capture, renumbered for this place, without its header."""
        later = _started(_fields(next(lines))) - self._started
        before, shift = self._channels, max(later, self._t + 1)  # the clock may have been set back
        for line in lines:
            record = _fields(line)
            if not record:
                continue
            record["t"] = _number(record.get("t")) + shift
            for channel in ("ch", "answers"):
                if channel in record:
                    record[channel] = _number(record[channel]) + before
            self.note(record)
            yield record_line(record)


def _fields(line: bytes) -> dict[str, Any]:
    """Return the members of a line; empty if it does not parse."""
    try:
        found = orjson.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    """Return a channel number or a time; 0 for a value that no relay writes, so that no sum is too large to read."""
    return value if type(value) is int and 0 <= value < _LARGEST else 0


def _started(header: dict[str, Any]) -> int:
    return round(datetime.fromisoformat(str(header["started"])).timestamp() * 1e6) * 1000
