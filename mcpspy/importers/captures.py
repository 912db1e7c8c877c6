"""The captures that are made of a foreign file, one for each server in it, and the order in which they are recorded.

A foreign file contains times of day, may contain several servers, and less than a relay would have recorded. So each
server gets a capture of its own, whose clock starts with its first event. What the file lacks is recorded: in the
header's `imported` if it is missing everywhere, and by a gap where one message is missing. Everything else is as in a
live capture, and the same code writes it: channels, frames, secrets.

A file lists exchanges by their beginning or by their end, and they overlap: an event stream is open while other
requests run. Each exchange is a generator that yields the time of its next step; the steps of all exchanges are taken
by time. Two passes keep memory small. The first pass notes the position and the start of each exchange. The second pass
reads an exchange again at its start time, and keeps it until its last step.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import Any, BinaryIO

from mcpspy.capture.location import directory, file_name, make_directory
from mcpspy.errors import CaptureError
from mcpspy.recording.recording import Channel, Clock, Recording
from mcpspy.text import plural

MOST = 200
"""Captures that may be open at once: a file may name any number of servers, but descriptors are limited."""
_SENDERS = {"stdin": "client", "stdout": "server", "stderr": "server"}
_FIRST, _LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2000, 2100))


@dataclass(slots=True)
class Account:
    """How much of a file was imported."""

    unit: str
    """The units of the file: flows, entries, lines."""
    read: int = 0
    lost: int = 0
    """Units that are damaged and were left out."""
    left_out: str = ""
    """The first unit that was left out because of its size, and why."""
    fault: str = ""
    """Why the file could not be read to its end."""
    paths: list[str] = field(default_factory=list)
    """The captures, in the order of their creation."""
    advance: Callable[[int], None] = lambda _: None
    """Called with the number of bytes of the file that were processed, for a progress bar."""


class ImportedServer:
    """The capture of one server while it is written; `wall` is nanoseconds since the epoch, here and below."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.spoke = False
        """Whether one side has sent a message; set by the importer of a log."""
        self._t = 0  # the latest recorded time
        self._channels: dict[str, Channel] = {}
        self._exit: tuple[int | None, str | None] = None, None

    @property
    def answers(self) -> bool:
        """Whether the server has written to stdout."""
        return "stdout" in self._channels

    def at(self, wall: int) -> int:
        """Return the time in the capture of an event at `wall`."""
        t = max(0, wall - self.recording.clock.wall)
        self._t = max(self._t, t)
        return t

    def line(self, role: str, wall: int, line: bytes) -> None:
        """Record one line of a stdio server's channel; its time is never before that of the line before it."""
        t = max(self._t, self.at(wall))
        if role not in self._channels:
            self._channels[role] = Channel(self.recording, t, _SENDERS[role], role)
        self._channels[role].feed(line + b"\n", t)

    def gap(self, wall: int, lost: int, why: str) -> None:
        """Record that the file lacks `lost` frames."""
        self.recording.gap(max(self._t, self.at(wall)), lost, why)

    def ended(self, wall: int, *, code: int | None = None, why: str | None = None) -> None:
        """Take note of how the server ended: its exit code, or why it could not be started. The first note counts."""
        self.at(wall)
        if self._exit == (None, None):
            self._exit = code, why and self.recording.redactor.url(why)

    def end(self) -> None:
        """End the capture."""
        for role, channel in self._channels.items():
            channel.end(self._t, "exit" if role == "stdin" and self._exit != (None, None) else "eof")
        self.recording.end(self._t, *self._exit)


class Captures:
    """The captures of one file; each is created when the first record of its server is written.

    Their headers contain `imported` about the file. `name` is for a server that the file does not name. They are
    written to `folder`, or to the directory that `environ` sets.
    """

    def __init__(
        self,
        imported: Mapping[str, object],
        environ: Mapping[str, str],
        account: Account,
        name: str,
        folder: str | None = None,
    ) -> None:
        self.account = account
        self.name = name
        self._imported = dict(imported)
        self._environ = dict(environ)
        self._folder = folder
        self._open: dict[str, ImportedServer] = {}
        self._failures: list[str] = []

    def get(self, key: str, wall: int, name: str, fields: Mapping[str, Any]) -> ImportedServer:
        """Return the capture of the server `key`; create it with the start `wall` if it is not open yet.

        `fields` are arguments of `Recording.begin`: transport, argv, url. Raises CaptureError if it cannot be written.
        """
        if self._failures:
            raise CaptureError(self._failures[0])
        recording = self._open.get(key)
        if recording is None:
            if len(self._open) == MOST:
                raise CaptureError(f"the file has more than {MOST} servers at once: export fewer")
            recording = self._open[key] = self._create(wall, name, fields)
        return recording

    def new_path(self, wall: int, name: str) -> str:
        """Return a new path for a finished capture that began at `wall`."""
        folder = directory(self._folder, self._environ)
        make_directory(folder)
        return os.path.join(folder, file_name(wall, name))

    def finish(self, key: str) -> None:
        """End the capture of a server, if it is open; later messages belong to a new one."""
        recording = self._open.pop(key, None)
        if recording:
            recording.end()

    def end(self) -> None:
        """End all captures. Raises CaptureError if one could not be written."""
        for key in list(self._open):
            self.finish(key)
        if self._failures:
            raise CaptureError(self._failures[0])

    def _create(self, wall: int, name: str, fields: Mapping[str, Any]) -> ImportedServer:
        recording = Recording(self._fail, Clock(0, wall))
        recording.begin(name=name, folder=self._folder, environ=self._environ, imported=self._imported, **fields)
        if recording.path is None:
            raise CaptureError(self._failures[0])
        self.account.paths.append(recording.path)
        return ImportedServer(recording)

    def _fail(self, sentence: str) -> None:
        self._failures.append(sentence.partition("; traffic")[0])


def epoch(seconds: float) -> int:
    """Return seconds since the epoch as nanoseconds, exact to the microsecond.

    Raises ValueError for a time before 2000 or after 2099.
    """
    if not _FIRST <= seconds < _LAST:
        raise ValueError(f"{seconds} is not a time")
    return round(seconds * 1e6) * 1000


def iso(text: str) -> int:
    """Return an ISO 8601 time as nanoseconds since the epoch; without a zone it is UTC. Raises ValueError."""
    time = datetime.fromisoformat(text)
    return epoch((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())


Steps = Iterator[int]
"""The remaining steps of an exchange: each value is the time of the next step, taken by the next call."""
Span = tuple[int, int]
"""A position in a file: offset and size in bytes."""

LARGEST = 1 << 28
"""Maximum size of one exchange in bytes; a larger one is left out."""
HELD = 1 << 28
"""Bytes of exchanges in progress at once; beyond that, one is finished early."""
OBJECTS = 1 << 13
"""Overhead of an exchange in bytes, which is most of the memory of a small one."""
VALUES = 1 << 20
"""The most values of one exchange or line: `{}` takes 3 bytes of a file, but 100 in memory."""
LOST = 100_000
"""The most damaged exchanges or lines of a file: it may consist of millions of `{}`."""
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What is raised for values whose shape differs from the expected one."""


class TooManyValues(ValueError):
    """A text of JSON or a flow has more values than are parsed; the text says so."""


class Torn(Exception):
    """The file ends early, or cannot be parsed from here on; the text says where."""


def lose(account: Account, error: Exception) -> None:
    """Count the exchange or line that was just read as damaged. Raises Torn if the file has too many of them."""
    account.lost += 1
    if isinstance(error, TooManyValues):
        account.left_out = account.left_out or f"{account.unit} {account.read} {error}"
    if account.lost > LOST:
        raise Torn(f"{plural(account.lost, 'damaged ' + account.unit)}, so the rest is not read")


def play(
    file: BinaryIO,
    spans: Iterable[Span],
    parse: Callable[[bytes], Any],
    start: Callable[[Any], Steps | None],
    account: Account,
) -> None:
    """Record the exchanges of a file in the order of their steps.

    `parse` parses one exchange. An exception from it or from the first step means that the exchange is damaged. `start`
    returns its steps, or None if it is ignored. Raises CaptureError if the file changes meanwhile.
    """

    def begin(offset: int, size: int) -> tuple[int, Steps] | None:
        file.seek(offset)
        steps = start(parse(file.read(size)))
        return None if steps is None else (next(steps), steps)

    found: list[tuple[int, int, int]] = []
    try:
        for offset, size in spans:
            account.read += 1
            account.advance(size // 2)  # finding it is half of the work, recording it the other half
            try:
                begun = begin(offset, size) if size <= LARGEST else None
                account.lost += size > LARGEST
            except DAMAGED as error:
                lose(account, error)
                continue
            if begun:
                found.append((begun[0], offset, size))
            else:
                account.advance(size // 2)
    except Torn as torn:
        account.fault = str(torn)

    waiting: list[tuple[int, int, int, Steps]] = []  # by time; at the same time, an exchange is not interrupted
    held = 0
    for wall, offset, size in sorted(found):
        while waiting and (waiting[0][0] < wall or held > HELD):
            held -= _step(waiting, to_the_end=held > HELD)
        try:
            begun = begin(offset, size)
        except DAMAGED:
            raise CaptureError("the file was changed while it was read") from None
        account.advance(size // 2)
        if begun:
            weight = size + OBJECTS
            held += weight
            heappush(waiting, (begun[0], offset, weight, begun[1]))
    while waiting:
        _step(waiting, to_the_end=False)


def _step(waiting: list[tuple[int, int, int, Steps]], *, to_the_end: bool) -> int:
    """Take the first step that waits, or all remaining ones of its exchange; return the number of bytes released."""
    _, offset, weight, steps = heappop(waiting)
    for wall in steps:
        if not to_the_end:
            heappush(waiting, (wall, offset, weight, steps))
            return 0
    return weight
