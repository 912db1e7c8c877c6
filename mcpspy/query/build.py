"""Tables of captures as Parquet files, made by DuckDB.

A capture is first written as lines of JSON (`mcpspy.query.derived`). DuckDB reads them as a stream, so memory does not
grow with the capture.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

import duckdb

from mcpspy import __version__
from mcpspy.errors import CaptureError
from mcpspy.process.workers import cores, mapped
from mcpspy.query.cache import CapturedTables, tables_of
from mcpspy.query.derived import DerivedTables
from mcpspy.query.tables import SCHEMA, TABLES, Column

_MEMORY = "512MB"
_GROUP = "16MB"  # the part of a table that is written at once
_LEAST = 16 << 20  # bytes of buffer for a line, at least
_TEXTS = {"VARCHAR": "VARCHAR", "JSON": "VARCHAR", "TIMESTAMP": "BIGINT"}


def build(captures: Sequence[CapturedTables], advance: Callable[[int], None]) -> None:
    """Make the missing tables of captures, in several processes. `advance` is called with the number of bytes read.

    Raises CaptureError if a capture cannot be read, UsageError if the tables cannot be written.
    """
    stale = {captured.capture.path: captured for captured in captures if not captured.fresh}
    folders = mapped(_build, list(stale), advance, cores())
    for captured, folder in zip(stale.values(), folders, strict=True):
        captured.folder, captured.fresh = folder, True  # the folder is a new one if the capture has grown meanwhile


def _build(path: str, advance: Callable[[int], None]) -> str:
    """Make the tables of one capture in its current state."""
    captured = tables_of(path)
    with captured.made() as folder:
        derived = DerivedTables(captured.capture, captured.id, folder, live=captured.live, size=captured.size)
        derived.write(advance)
        with connection() as database:
            for name in TABLES:
                source = derived.path(name)
                write(database, _selected(name, source, derived.longest), os.path.join(folder, f"{name}.parquet"))
                os.unlink(source)
    return captured.folder


def connection() -> duckdb.DuckDBPyConnection:
    """Return a database in memory, for our own queries."""
    return duckdb.connect(
        config={
            "threads": 1,  # rows keep their order
            "memory_limit": _MEMORY,
            "preserve_insertion_order": False,  # preserving it would keep too large groups of rows
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": "",
        }
    )


def write(database: duckdb.DuckDBPyConnection, query: str, path: str, more: dict[str, str] | None = None) -> None:
    """Write the result of a query to a new Parquet file that only the user can read. Raises CaptureError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    known = {"mcpspy_schema": str(SCHEMA), "mcpspy_tool": f"mcpspy {__version__}", **(more or {})}
    metadata = ", ".join(f"{name}: {literal(value)}" for name, value in known.items())
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '{_GROUP}', USE_TMP_FILE false"
    try:
        database.execute(f"COPY ({query}) TO {literal(path)} ({options}, KV_METADATA {{{metadata}}})")
    except duckdb.Error as error:
        with suppress(OSError):
            os.unlink(path)
        raise CaptureError(f"cannot write {path}: {' '.join(str(error).split())}") from error


def literal(text: str) -> str:
    """Return a string literal in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _selected(name: str, source: str, longest: int) -> str:
    """Return the query that reads a table from lines of JSON."""
    columns = TABLES[name].columns
    read = {column.name: _TEXTS.get(column.type, column.type) for column in columns if column.name != "day"}
    size = max(_LEAST, longest + 1)
    kinds = f"{{{', '.join(f'{literal(key)}: {literal(kind)}' for key, kind in read.items())}}}"
    lines = f"read_json({literal(source)}, format='newline_delimited', columns={kinds}, maximum_object_size={size})"
    return f"SELECT {', '.join(map(_expression, columns))} FROM {lines}"  # noqa: S608 (all of it is ours)


def _expression(column: Column) -> str:
    name = json.dumps(column.name)
    if column.name == "day":
        return 'make_timestamp("time")::DATE AS "day"'
    if column.type == "TIMESTAMP":
        return f"make_timestamp({name}) AS {name}"
    return f"TRY_CAST({name} AS JSON) AS {name}" if column.type == "JSON" else name
