"""Sessions added to a capture: a new file that has the old one as its beginning, byte for byte, and then the new ones.

A capture holds several client sessions, each with channels of its own. So what is added gets channel numbers and times
that follow, and nothing else of it changes: its frames are what was recorded, its `end` stays its end. Numbers of lines
in the old capture stay valid.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import orjson

from mcpspy.output_file import output_file
from mcpspy.recording.copy import record_line

_LARGEST = 1 << 61


def write_with_sessions(capture: str, added: Sequence[str], target: str) -> None:
    """Write the capture at `capture` to `target`, mode 0600, followed by the sessions of the captures `added`.

    Each is one file that is no longer written. The lines of `added` have to parse; where that has to be known, load the
    captures first. Raises UsageError if `target` exists or cannot be written, and OSError if a file cannot be read.
    """
    place = _Place()
    with output_file(target, replace=False) as file:
        with open(capture, "rb") as old:
            for line in old:
                place.note(_fields(line))
                file.write(line if line.endswith(b"\n") else line + b"\n")
        for path in added:
            with open(path, "rb") as new:
                for line in place.follow(new):
                    file.write(line)


class _Place:
    """Where a file ends: what the numbers and times of the next session have to come after."""

    def __init__(self) -> None:
        self._started = 0  # nanoseconds since the epoch
        self._channels = 0
        self._t = 0

    def note(self, record: dict[str, Any]) -> None:
        """Take the next line of the file."""
        if "mcpspy" in record:
            self._started = _started(record)
        self._channels = max(self._channels, _number(record.get("ch")))
        self._t = max(self._t, _number(record.get("t")))

    def follow(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """The lines of another capture as they stand here, without its header."""
        later = _started(_fields(next(lines))) - self._started
        before, shift = self._channels, max(later, self._t + 1)  # a clock may have been set back
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
    """The members of a line; none where it does not parse."""
    try:
        found = orjson.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    """A channel or a time; what no relay writes counts as nothing, so that no sum is more than readers take."""
    return value if type(value) is int and 0 <= value < _LARGEST else 0


def _started(header: dict[str, Any]) -> int:
    return round(datetime.fromisoformat(str(header["started"])).timestamp() * 1e6) * 1000
