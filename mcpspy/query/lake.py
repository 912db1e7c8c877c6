"""Tables of many captures as a folder of Parquet files that other engines read in place.

Each table is a folder, partitioned as Hive does it: `frames/day=2026-11-20/server=weather/<id>.parquet`. A capture has
one file in each partition that it has rows in, named after its id, so captures of many machines can stand in one
folder, and to add one changes no file of another. A capture that has grown since is written again, each file in one
step. Each file says which state of the capture it is of: where all are of the state that is now, nothing is to do.
Whatever a killed process or two at the same time have left is therefore put right by the next run.

JSON is written as text: ClickHouse takes a column of Parquet that is marked as JSON for one of objects, and fails over
a number, an array or a null.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from secrets import token_hex
from urllib.parse import quote

import duckdb

from mcpspy.capture.location import make_directory
from mcpspy.errors import CaptureError, UsageError
from mcpspy.query.build import connection, literal, write
from mcpspy.query.cache import CapturedTables, file_name
from mcpspy.query.tables import SCHEMA, TABLES

_NONE = "__HIVE_DEFAULT_PARTITION__"
_STATE = "mcpspy_state"
_LONGEST = 200  # bytes of a name in a path

Parts = dict[tuple[str, str], str]
"""The tables and days that a capture has rows of, each with its file."""


def add(captures: Sequence[CapturedTables], folder: str, *, again: bool) -> int:
    """Write what is not in the folder yet, with `again` all; the tables must be made. Tells how many captures.

    Raises UsageError where something cannot be written, CaptureError where the tables cannot be read.
    """
    try:
        with closing(connection()) as database:
            return sum(_add(database, captured, folder, again=again) for captured in captures)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise CaptureError(f"cannot read the tables of a capture: {' '.join(str(error).split())}") from error


def _add(database: duckdb.DuckDBPyConnection, captured: CapturedTables, folder: str, *, again: bool) -> bool:
    state = f"{SCHEMA} {captured.size} {'live' if captured.live else 'ended'}"
    parts = _parts(database, captured, folder)
    if not again and _are_of(database, list(parts.values()), state):
        return False
    for (table, day), path in parts.items():
        make_directory(os.path.dirname(path))
        partial = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{token_hex(6)}.part")
        source = literal(captured.file(table))
        query = f"SELECT {_columns(table)} FROM read_parquet({source}) WHERE day = {literal(day)}"  # noqa: S608
        try:
            write(database, query, partial, {"mcpspy_capture": captured.id, _STATE: state})
            os.replace(partial, path)
        finally:
            with suppress(OSError):
                os.unlink(partial)
    for path in _outdated(parts, folder):
        os.unlink(path)
    return True


def _parts(database: duckdb.DuckDBPyConnection, captured: CapturedTables, folder: str) -> Parts:
    """What is written of a capture."""
    days = " UNION ".join(
        f"SELECT {literal(table)}, CAST(day AS VARCHAR), server FROM read_parquet({literal(captured.file(table))})"  # noqa: S608
        for table in TABLES
    )
    parts = {}
    for table, day, server in database.execute(f"{days} ORDER BY ALL").fetchall():
        partition = os.path.join(folder, table, f"day={day}", f"server={_escaped(server)}")
        parts[table, day] = os.path.join(partition, f"{file_name(captured.id)}.parquet")
    return parts


def _outdated(parts: Parts, folder: str) -> Iterator[str]:
    """Files of the same capture on days that it had rows of once: a request has its answer now, and no finding."""
    first, *_ = parts.values()  # that of its row of `captures`
    last = os.path.join(*first.split(os.sep)[-2:])
    for table in TABLES:
        with suppress(FileNotFoundError):
            for entry in os.scandir(os.path.join(folder, table)):
                path = os.path.join(entry.path, last)
                if path not in parts.values() and os.path.lexists(path):
                    yield path


def _columns(table: str) -> str:
    """What is written of a table: no columns that are in the path, and JSON as text."""
    columns = (column for column in TABLES[table].columns if column.name not in ("day", "server"))
    texts = (f'CAST("{it.name}" AS VARCHAR) AS "{it.name}"' if it.type == "JSON" else f'"{it.name}"' for it in columns)
    return ", ".join(texts)


def _are_of(database: duckdb.DuckDBPyConnection, paths: list[str], state: str) -> bool:
    """Whether all files are there, and were made of this state of the capture."""
    if not all(map(os.path.exists, paths)):
        return False
    query = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"
    try:
        return database.execute(query, [paths, _STATE]).fetchall() == [(state,)] * len(paths)
    except duckdb.Error:  # one is damaged
        return False


def _escaped(name: str) -> str:
    """A name as a part of a path: what file systems and readers take for something else as `%2F`, and not too long."""
    escaped = "".join(it if it.isalnum() or it in "._-" else quote(it, safe="") for it in name) or _NONE
    if len(escaped.encode()) <= _LONGEST:
        return escaped
    return f"{_escaped(name[:12])}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
