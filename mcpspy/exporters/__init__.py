"""Recorded messages and sessions in the formats of other programs: one module for each format, and their table.

A format yields the bytes of a file, a portion at a time, and reads the capture from its file as often as it needs to.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mcpspy.errors import UsageError
from mcpspy.exporters import csv_table, curl_script, har, mermaid, otlp, perfetto
from mcpspy.exporters.source import ExportSource


class ExportFormat(NamedTuple):
    """A format: the function that writes it, and what it can contain."""

    suffix: str
    write: Callable[[Sequence[ExportSource]], Iterator[bytes]]
    joins: bool = False
    """One file can contain several captures."""
    stdio: bool = True
    """It can contain a stdio session."""
    passes: int = 2
    """How often a capture is read."""
    filtered_passes: int = 2
    """How often it is read with a filter."""


FORMATS = {
    "har": ExportFormat(".har", lambda sources: har.write(sources[0]), stdio=False, passes=1, filtered_passes=3),
    "mermaid": ExportFormat(".mmd", lambda sources: mermaid.write(sources[0])),
    "perfetto": ExportFormat(".trace.json", perfetto.write, joins=True),
    "csv": ExportFormat(".csv", csv_table.write, joins=True),
    "otlp": ExportFormat(".otlp.json", otlp.write, joins=True, passes=1, filtered_passes=3),
    "curl": ExportFormat(".sh", curl_script.write, joins=True, stdio=False),
}
"""By the name for `--format`."""


def holds(name: str, source: ExportSource) -> bool:
    """Return whether a format can contain a capture."""
    return FORMATS[name].stdio or source.capture.header.transport != "stdio"


def export(name: str, sources: Sequence[ExportSource]) -> Iterator[bytes]:
    """Yield the bytes of some captures in a format. Raises UsageError if the format cannot contain them.

    The iterator may raise CaptureError if a capture cannot be read.
    """
    if len(sources) > 1 and not FORMATS[name].joins:
        others = ", ".join(other for other, it in FORMATS.items() if it.joins)
        hint = f"give a directory with -o, or use a format that can hold several: {others}"
        raise UsageError(f"one {name} file holds one capture, and there are {len(sources)}: {hint}")
    for source in sources:
        if not holds(name, source):
            others = ", ".join(other for other, it in FORMATS.items() if it.stdio)
            raise UsageError(f"{source.capture.path} is a stdio session, and {name} holds HTTP only; use {others}")
    return FORMATS[name].write(sources)
