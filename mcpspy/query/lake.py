"""Tables of many captures as a folder of Parquet files that other engines read in place.

Each table is a folder, partitioned as Hive does it: `frames/day=2026-11-20/server=weather/<id>.parquet`. A capture has
one file in each partition that it has rows in, named after its id, so captures of many machines can stand in one
folder, and to add one changes no file of another. A capture that has grown since is written again, each file in one
step. Its row of `captures` is written last: where that is as the capture is now, all else is there.

JSON is written as text: ClickHouse takes a column of Parquet that is marked as JSON for one of objects, and fails over
a number, an array or a null.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from urllib.parse import quote

import duckdb

from mcpspy.capture.location import make_directory
from mcpspy.errors import UsageError
from mcpspy.query.build import connection, literal, write
from mcpspy.query.cache import CapturedTables, file_name
from mcpspy.query.tables import TABLES

_NONE = "__HIVE_DEFAULT_PARTITION__"
_SUMMARY = "captures"
_STATE = "mcpspy_state"


def add(captures: Sequence[CapturedTables], folder: str, *, again: bool) -> int:
    """Write what is not in the folder yet, with `again` all; the tables must be made. Tells how many captures.

    Raises UsageError where something cannot be written.
    """
    try:
        with closing(connection()) as database:
            return sum(_add(database, captured, folder, again=again) for captured in captures)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error


def _add(database: duckdb.DuckDBPyConnection, captured: CapturedTables, folder: str, *, again: bool) -> bool:
    state = f"{captured.size} {'live' if captured.live else 'ended'}"
    if not again and all(_state(database, path) == state for _, path in _parts(database, captured, folder, _SUMMARY)):
        return False
    for table in (*(name for name in TABLES if name != _SUMMARY), _SUMMARY):
        for day, path in _parts(database, captured, folder, table):
            make_directory(os.path.dirname(path))
            partial = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.part")
            source = literal(captured.file(table))
            query = f"SELECT {_columns(table)} FROM read_parquet({source}) WHERE day = {literal(day)}"  # noqa: S608
            try:
                write(database, query, partial, {"mcpspy_capture": captured.id, _STATE: state})
                os.replace(partial, path)
            finally:
                with suppress(OSError):
                    os.unlink(partial)
    return True


def _parts(
    database: duckdb.DuckDBPyConnection, captured: CapturedTables, folder: str, table: str
) -> Iterator[tuple[str, str]]:
    """The days that a table of one capture has rows of, each with its file."""
    source = literal(captured.file(table))
    query = f"SELECT DISTINCT CAST(day AS VARCHAR), server FROM read_parquet({source}) ORDER BY 1"  # noqa: S608
    for day, server in database.execute(query).fetchall():
        partition = os.path.join(folder, table, f"day={day}", f"server={_escaped(server)}")
        yield day, os.path.join(partition, f"{file_name(captured.id)}.parquet")


def _columns(table: str) -> str:
    """What is written of a table: not what stands in the path, and JSON as text."""
    columns = (column for column in TABLES[table].columns if column.name not in ("day", "server"))
    texts = (f'CAST("{it.name}" AS VARCHAR) AS "{it.name}"' if it.type == "JSON" else f'"{it.name}"' for it in columns)
    return ", ".join(texts)


def _state(database: duckdb.DuckDBPyConnection, path: str) -> str | None:
    """The state of the capture that a file was made of; None where there is no such file."""
    if not os.path.exists(path):
        return None
    try:
        query = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"
        found = database.execute(query, [path, _STATE]).fetchone()
    except duckdb.Error:  # it is damaged, and written again
        return None
    return found[0] if found else None


def _escaped(name: str) -> str:
    """A name as a part of a path: what file systems and readers take for something else as `%2F`."""
    return "".join(it if it.isalnum() or it in "._-" else quote(it, safe="") for it in name) or _NONE
