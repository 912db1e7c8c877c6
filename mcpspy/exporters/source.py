"""A capture as the source of an export: its records, its rows, and which of the rows match.

A format reads the capture as often as it needs to, each time from the file, so memory does
not grow with the capture.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mcpspy.capture.location import stem
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Record
from mcpspy.capture.scan import LARGEST
from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.timeline import Row, final_rows

_TOLD = ("notifications/message", "notifications/progress", "notifications/cancelled")


@dataclass(slots=True)
class ExportSource:
    """One capture that is exported."""

    capture: Capture
    wants: Callable[[Row], bool] | None = None
    """Whether a row is exported; None for all rows."""
    read: Callable[[int], None] | None = None
    """Called with the number of bytes of each chunk that is read. It may raise, which ends the export."""
    last: int = 0
    """The latest time of a record, in nanoseconds; final after the capture was read."""

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
        return os.path.basename(stem(self.capture.path))

    def records(self, largest: int = LARGEST) -> Iterator[Record]:
        """Yield every record, by time; frames of more than `largest` bytes are incomplete."""
        for record in self.capture.records(largest, self.read):
            self.last = max(self.last, record.t)
            yield record

    def rows(self) -> Iterator[Row]:
        """Yield every row in its final state, exported or not.

        The file is read twice. `last` is final before the first row comes.
        """
        return final_rows(self.records, live=self.capture.live)

    def wanted(self, row: Row) -> bool:
        """Return whether a row is exported."""
        return self.wants is None or self.wants(row)


def words_of(row: Row) -> str:
    """Return the text beside a method in a diagram: names, log messages, progress; no arguments and no results."""
    if row.name:
        return row.name
    return row.preview if row.method in _TOLD else introduction(row.value) if row.method in INTRODUCE else ""
