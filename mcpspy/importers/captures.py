"""The captures that a foreign file is made into: one for each server that it tells of.

The theory. A foreign file knows the time of day, several servers at once, and less than a relay would have seen. So
each server gets a capture of its own, whose clock starts with the first that is known of it; and what the file does not
hold is said: in the header's `imported` where that is true of all of it, and by a gap where a message is missing. All
else is as in a live capture, written by the same code: channels, frames, secrets.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mcpspy.capture.location import directory, file_name, make_directory
from mcpspy.errors import CaptureError
from mcpspy.recording.recording import Clock, Recording
from mcpspy.recording.stream import Channel

MOST = 200
"""Captures that are written at once: a file may name any number of servers, a process has so many descriptors."""
_SENDERS = {"stdin": "client", "stdout": "server", "stderr": "server"}
_FIRST, _LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2000, 2100))


@dataclass(slots=True)
class Account:
    """How much of a file was read."""

    unit: str
    """What it consists of: flows, entries, lines."""
    read: int = 0
    lost: int = 0
    """Units that are damaged, and were left out."""
    fault: str = ""
    """Why the file could not be read to its end."""
    paths: list[str] = field(default_factory=list)
    """The captures, in the order in which they were begun."""
    advance: Callable[[int], None] = lambda _: None
    """Called with numbers of bytes of the file that are done, for a progress bar."""


class ImportedServer:
    """The capture of one server in the making; `wall` is nanoseconds since the epoch, here and below."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._t = 0  # the latest time that was recorded
        self._channels: dict[str, Channel] = {}

    def at(self, wall: int) -> int:
        """The time in the capture of what happened at `wall`."""
        t = max(0, wall - self.recording.clock.wall)
        self._t = max(self._t, t)
        return t

    def line(self, role: str, wall: int, line: bytes) -> None:
        """Record one line of a stdio server's channel; a line that stands behind another did not come before it."""
        t = max(self._t, self.at(wall))
        if role not in self._channels:
            self._channels[role] = Channel(self.recording, t, _SENDERS[role], role)
        self._channels[role].feed(line + b"\n", t)

    def gap(self, wall: int, lost: int, why: str) -> None:
        """Record that the file does not hold so many frames."""
        self.recording.gap(max(self._t, self.at(wall)), lost, why)

    def end(self) -> None:
        """End the capture."""
        for channel in self._channels.values():
            channel.end(self._t, "eof")
        self.recording.end(self._t)


class Captures:
    """The captures of one file; each is made when the first of its server is recorded.

    `imported` is what their headers say of the file; `name` is for a server that the file does not name. They are
    written into `folder`, or where `environ` says.
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
        """The capture of the server `key`, begun at `wall` unless it is open already.

        `fields` are arguments of `Recording.begin`: transport, argv, url. Raises CaptureError where it cannot be
        written.
        """
        if self._failures:
            raise CaptureError(self._failures[0])
        recording = self._open.get(key)
        if recording is None:
            if len(self._open) == MOST:
                raise CaptureError(f"the file tells of more than {MOST} servers at once: export fewer")
            recording = self._open[key] = self._create(wall, name, fields)
        return recording

    def new_path(self, wall: int, name: str) -> str:
        """The path of a file for a capture that is finished and began at `wall`; nothing is there yet."""
        folder = directory(self._folder, self._environ)
        make_directory(folder)
        return os.path.join(folder, file_name(wall, name))

    def finish(self, key: str) -> None:
        """End the capture of a server, if it is open; what is said later belongs to a new one."""
        recording = self._open.pop(key, None)
        if recording:
            recording.end()

    def end(self) -> None:
        """End all of them. Raises CaptureError where one could not be written."""
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
    """Seconds since the epoch as nanoseconds, exact to the microsecond. Raises ValueError for no time of our days."""
    if not _FIRST <= seconds < _LAST:
        raise ValueError(f"{seconds} is not a time")
    return round(seconds * 1e6) * 1000


def iso(text: str) -> int:
    """A time of ISO 8601 as nanoseconds since the epoch; without a zone it is UTC. Raises ValueError."""
    time = datetime.fromisoformat(text)
    return epoch((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
