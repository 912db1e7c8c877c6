"""Tables of many captures as a folder of Parquet files that other engines can read directly.

Each table is a folder with Hive partitions: `frames/day=2026-11-20/server=weather/<id>.parquet`. A capture has one file
in each partition in which it has rows, named after its id. So captures of many machines can be in one folder, and
adding one changes no file of another. A capture that has grown is written again, each file in one step. Each file
contains the state of its capture. If all files have the current state, nothing is written. So the next run repairs what
a killed process, or two processes at the same time, have left.

JSON is written as text. ClickHouse expects objects in a Parquet column that is marked as JSON, and fails on a number,
an array or a null.
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
_LONGEST = 200  # the longest name in a path, in bytes

Parts = dict[tuple[str, str], str]
"""By table and day in which a capture has rows: the file."""


def add(captures: Sequence[CapturedTables], folder: str, *, again: bool) -> int:
    """Write what is missing in the folder, or all with `again`. Return the number of captures that were written.

    The tables must exist. Raises UsageError if something cannot be written, CaptureError if the tables cannot be read.
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
    """Return the files that are written for a capture."""
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
    """Yield files of the same capture for days without rows: for example, an answer came and a finding disappeared."""
    first, *_ = parts.values()  # the file of its row in `captures`
    last = os.path.join(*first.split(os.sep)[-2:])
    for table in TABLES:
        with suppress(FileNotFoundError):
            for entry in os.scandir(os.path.join(folder, table)):
                path = os.path.join(entry.path, last)
                if path not in parts.values() and os.path.lexists(path):
                    yield path


def _columns(table: str) -> str:
    """Return the columns of a table that are written: none that are in the path, and JSON as text."""
    columns = (column for column in TABLES[table].columns if column.name not in ("day", "server"))
    texts = (f'CAST("{it.name}" AS VARCHAR) AS "{it.name}"' if it.type == "JSON" else f'"{it.name}"' for it in columns)
    return ", ".join(texts)


def _are_of(database: duckdb.DuckDBPyConnection, paths: list[str], state: str) -> bool:
    """Return whether all files exist, and were made from this state of the capture."""
    if not all(map(os.path.exists, paths)):
        return False
    query = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"
    try:
        return database.execute(query, [paths, _STATE]).fetchall() == [(state,)] * len(paths)
    except duckdb.Error:  # one file is damaged
        return False


def _escaped(name: str) -> str:
    """Return a name for a path: not too long, and percent-encoded where file systems or readers need it."""
    escaped = "".join(it if it.isalnum() or it in "._-" else quote(it, safe="") for it in name) or _NONE
    if len(escaped.encode()) <= _LONGEST:
        return escaped
    return f"{_escaped(name[:12])}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
