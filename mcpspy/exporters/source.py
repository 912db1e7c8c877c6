"""A capture as what an export is made of: its records, its rows, and which of the rows are wanted.

Nothing of any format is known here. A format reads the capture as often as it needs to, and each time from the file, so
that memory does not grow with it.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mcpspy.capture.location import SUFFIX
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
    """Which rows are exported; None for all."""
    read: Callable[[int], None] | None = None
    """Called with the number of bytes of each chunk that is read. It may raise, which ends the export."""
    last: int = 0
    """The latest time of a record, in nanoseconds; complete once the capture was read."""

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
        return os.path.basename(self.capture.path).removesuffix(SUFFIX)

    def records(self, largest: int = LARGEST) -> Iterator[Record]:
        """Every record, by time; frames of more than `largest` bytes are not whole."""
        for record in self.capture.records(largest, self.read):
            self.last = max(self.last, record.t)
            yield record

    def rows(self) -> Iterator[Row]:
        """Every row, final, wanted or not. The file is read twice; before the first row comes, `last` is complete."""
        return final_rows(self.records, live=self.capture.live)

    def wanted(self, row: Row) -> bool:
        """Whether a row is exported."""
        return self.wants is None or self.wants(row)


def words_of(row: Row) -> str:
    """What stands in a diagram beside a method: names, log messages, progress; no arguments and no results."""
    if row.name:
        return row.name
    return row.preview if row.method in _TOLD else introduction(row.value) if row.method in INTRODUCE else ""
