"""`mcpspy sql`: query captures as SQL tables, which are created if they do not exist yet; `export` creates them too."""

import argparse
import csv
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from glob import glob
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO

from mcpspy.capture.location import directory
from mcpspy.cli.installation import missing
from mcpspy.cli.output import ProgressBar, say
from mcpspy.cli.targets import is_file_of, readable_paths
from mcpspy.errors import UsageError
from mcpspy.exporters.csv_table import plain
from mcpspy.output_file import output_file
from mcpspy.query import cache
from mcpspy.query.cache import CapturedTables, scratch, tables_of
from mcpspy.text import plural, printable

if TYPE_CHECKING:
    from types import ModuleType

    from mcpspy.query.database import CaptureDatabase, Values

_PASSES = 2  # number of times that a capture is read


def built(named: Sequence[str], temporary: str = "") -> list[CapturedTables]:
    """Return the tables of the named captures, and make those that are missing or outdated.

    `temporary` is the folder for those of standard input.

    Raises UsageError if the extra is not installed, CaptureError if a capture cannot be read.
    """
    build = _imported().build
    found: dict[str, CapturedTables] = {}
    for path in readable_paths(list(chain.from_iterable(map(_matching, named)))):
        captured = tables_of(path, temporary)
        other = found.get(captured.id)
        if other is None or other.size < captured.size:
            found[captured.id] = captured
        if other is not None and not is_file_of(path, other.capture):
            say(f"{path} and {other.capture.path} are copies of one capture; the longer one is taken")
    captures = list(found.values())
    cache.forget_gone()
    total = _PASSES * sum(captured.size for captured in captures if not captured.fresh)
    with ProgressBar("making tables", total) as bar:
        build(captures, bar.advance, temporary)
    return captures


def _imported() -> "ModuleType":
    """Return the module that needs the extra."""
    try:
        from mcpspy.query import build
    except ModuleNotFoundError as error:
        raise UsageError(missing("SQL and Parquet need", error.name, "sql")) from None
    return build


def _matching(name: str) -> list[str]:
    """Return the files that match a pattern. Any other name, and a pattern without matches, is returned unchanged."""
    return [name] if os.path.lexists(name) else sorted(glob(name)) or [name]


_MEASURED = 1000  # rows that determine the widths of the columns
_WIDEST = 60  # maximum width of a cell, in characters
_NULL = ""


def run(options: argparse.Namespace) -> int:
    """Create missing tables, and run the query."""
    if options.format == "parquet" and options.output is None:
        raise UsageError("--format parquet needs a file: -o FILE")
    if options.output is not None and os.path.lexists(options.output) and not options.force:
        raise UsageError(f"{options.output} exists; --force replaces it")
    with scratch() as folder:
        captures = built(options.captures or [directory(None, os.environ)], folder)
        if options.output is not None and any(is_file_of(options.output, captured.capture) for captured in captures):
            raise UsageError(f"{options.output} is a capture that is queried here; the result needs another name")
        from mcpspy.query.database import CaptureDatabase

        with closing(CaptureDatabase(captures, folder)) as database:
            if options.output is None:
                FORMATS[options.format](database, options.query, sys.stdout.buffer)
                sys.stdout.buffer.flush()
                return 0
            with output_file(options.output, replace=options.force) as file:
                FORMATS[options.format](database, options.query, file)
    print(printable(options.output, 4096))
    return 0


def _table(database: "CaptureDatabase", query: str, file: BinaryIO) -> None:
    """Write text columns. The first rows determine their widths, and longer values are cut."""
    names, rows = database.texts(query)
    first = [_printed(row) for row in islice(rows, _MEASURED)]
    heading = [printable(name, _WIDEST) for name in names]
    widths = [max(map(len, cells)) for cells in zip(heading, *first, strict=True)]
    file.write(_line(heading, widths))
    file.write(_line(["-" * width for width in widths], widths))
    count = 0
    for count, cells in enumerate(chain(first, map(_printed, rows)), 1):  # noqa: B007 (the last count is printed)
        file.write(_line(cells, widths))
    file.write(f"({plural(count, 'row')})\n".encode())


def _printed(row: "Values") -> list[str]:
    return [_NULL if value is None else printable(value, _WIDEST) for value in row]


def _line(cells: Iterable[str], widths: list[int]) -> bytes:
    fitted = (f"{printable(cell, width):<{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{'  '.join(fitted).rstrip()}\n".encode(errors="replace")


def _json(database: "CaptureDatabase", query: str, file: BinaryIO) -> None:
    file.writelines(line + b"\n" for line in database.objects(query))


def _csv(database: "CaptureDatabase", query: str, file: BinaryIO) -> None:
    """Write CSV (RFC 4180), with the same protection against spreadsheet formulas as `export --format csv`."""
    names, rows = database.texts(query)
    table = csv.writer(_Encoded(file), lineterminator="\r\n")
    table.writerow(map(plain, names))
    table.writerows(map(plain, row) for row in rows)


class _Encoded:
    """The file object for `csv`, which encodes the text."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode("utf-8", "replace"))


def _parquet(database: "CaptureDatabase", query: str, file: BinaryIO) -> None:
    with open(database.write(query), "rb") as written:
        shutil.copyfileobj(written, file)


FORMATS: "dict[str, Callable[[CaptureDatabase, str, BinaryIO], None]]" = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
}
