"""Copies of captures: what was recorded before becomes a new capture, line by line, changed or not.

A copy has the numbers of its original: each line of it corresponds to the line of the same number. So addresses such as
`#17` stay valid, and code that changes a capture writes another record in place of one, never more or fewer.
"""

from collections.abc import Iterable

import orjson

from mcpspy.capture.format import MAGIC
from mcpspy.output_file import output_file


def write_copy(lines: Iterable[bytes], path: str, *, replace: bool = False) -> None:
    """Write a capture of finished lines, each with its newline, to `path`, mode 0600; the header comes first.

    Raises UsageError if the file exists and may not be replaced, or cannot be written; then nothing is left of it.
    """
    with output_file(path, replace=replace) as file:
        for number, line in enumerate(lines):
            if number == 0 and not line.startswith(MAGIC):
                raise ValueError(f"not the header of a capture: {line[:40]!r}")
            file.write(line)


def record_line(record: dict[str, object]) -> bytes:
    """A record, or the header, as a line of a capture."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
