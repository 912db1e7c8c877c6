"""Copies of captures: write the lines of a capture, changed or unchanged, to a new one.

A copy keeps the line numbers of its original: each line corresponds to the line with the same number. So addresses such
as `#17` stay valid. Code that changes a capture replaces each record by exactly one record.
"""

from collections.abc import Iterable

import orjson

from mcpspy.capture.format import MAGIC
from mcpspy.output_file import output_file


def write_copy(lines: Iterable[bytes], path: str, *, replace: bool = False) -> None:
    """Write a capture of complete lines, each with its newline, to `path`, mode 0600; the header comes first.

    Raises UsageError if the file exists and may not be replaced, or cannot be written; then no partial file is left.
    """
    with output_file(path, replace=replace) as file:
        for number, line in enumerate(lines):
            if number == 0 and not line.startswith(MAGIC):
                raise ValueError(f"not the header of a capture: {line[:40]!r}")
            file.write(line)


def record_line(record: dict[str, object]) -> bytes:
    """Return a record, or the header, as a line of a capture."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
