"""A database with views of the tables of captures, which answers one SELECT and can do nothing else.

DuckDB opens the files of the tables and, where a result becomes a file, that one; everything else is closed before the
query is looked at: other files, the network, extensions, Python's variables, and the settings themselves. The text of
a query may come from anywhere, so there are two locks: only a SELECT is run, and DuckDB denies what a SELECT could
reach.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import orjson

from mcpspy.errors import UsageError
from mcpspy.query.build import literal
from mcpspy.query.cache import CapturedTables, root
from mcpspy.query.tables import TABLES

_MEMORY = "1GB"
_AT_ONCE = 1000  # rows
_EXCERPT = re.compile(r"\n\s*LINE \d+: ")

Values = tuple[Any, ...]


class CaptureDatabase:
    """The captures as a database; `result` is a file that a result may be written to. `close` it."""

    def __init__(self, captures: Sequence[CapturedTables], result: str | None = None) -> None:
        files = {name: [captured.file(name) for captured in captures] for name in TABLES}
        allowed = [*(path for paths in files.values() for path in paths), *([result] if result else [])]
        self.database = database = duckdb.connect(
            config={
                "memory_limit": _MEMORY,
                "allow_community_extensions": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
        )
        database.execute(f"SET temp_directory = {literal(os.path.join(root(), 'spilled'))}")
        database.execute("SET allowed_paths = ?", [allowed])
        for name, paths in files.items():
            columns = ", ".join(f'"{column.name}"' for column in TABLES[name].columns)
            given = ", ".join(map(literal, paths))
            database.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet([{given}])")  # noqa: S608
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def texts(self, query: str) -> tuple[list[str], Iterator[Values]]:
        """The names of the columns of a result, and its rows, each value as text or None. Raises UsageError."""
        found = self._execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {self._selected(query)}")  # noqa: S608
        return [name for name, *_ in found.description or ()], _rows(found)

    def objects(self, query: str) -> Iterator[bytes]:
        """Each row of a result as a JSON object. Raises UsageError."""
        selected = self._selected(query)
        found = self._execute(f"SELECT CAST(to_json(result) AS VARCHAR) FROM {selected} AS result")  # noqa: S608
        return (_strict(text) for (text,) in _rows(found))

    def write(self, query: str, path: str) -> None:
        """Write a result as a Parquet file to `path`, which must be the one that is allowed. Raises UsageError."""
        options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
        self._execute(f"COPY {self._selected(query)} TO {literal(path)} ({options})")

    def _selected(self, query: str) -> str:
        """A query in brackets, if it is one SELECT: then it can be part of a statement, and cannot end it."""
        with _Told():
            statements = self.database.extract_statements(query)
        if [it.type for it in statements] != [duckdb.StatementType.SELECT]:
            kinds = " and ".join(it.type.name for it in statements) or "none"
            raise UsageError(f"a query is one SELECT statement, and this is {kinds}")
        return f"(\n{statements[0].query.strip().rstrip(';')}\n)"

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        with _Told():
            return self.database.execute(statement)


def _rows(found: duckdb.DuckDBPyConnection) -> Iterator[Values]:
    while True:
        with _Told():
            rows = found.fetchmany(_AT_ONCE)
        yield from rows
        if not rows:
            return


class _Told:
    """A context in which an error of DuckDB becomes a UsageError of one line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, duckdb.Error):
            told, *_ = _EXCERPT.split(str(error))  # it would show our brackets too
            raise UsageError(" ".join(told.split())) from error


def _strict(text: str) -> bytes:
    """JSON without the NaN and Infinity that DuckDB writes for some numbers: null in their place."""
    try:
        orjson.loads(text)
        return text.encode()
    except orjson.JSONDecodeError:
        return json.dumps(json.loads(text, parse_constant=lambda _: None), separators=(",", ":")).encode()
