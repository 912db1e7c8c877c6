"""A database with views of the tables of captures, which can only run one SELECT.

DuckDB may open the files of the tables and those in a folder for this query. Everything else is disabled before the
query is parsed: other files, the network, extensions, Python's variables, and the settings themselves. The text of a
query may come from anywhere, so there are two barriers: only a SELECT is run, and DuckDB denies access to what a SELECT
could reach.

DuckDB does not notice Ctrl-C while it works. So it works in a thread of its own, and this thread interrupts it.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import duckdb

from mcpspy.errors import UsageError
from mcpspy.query.build import literal
from mcpspy.query.cache import CapturedTables
from mcpspy.query.tables import TABLES
from mcpspy.text import series

_MEMORY = "1GB"
_SPILLED = "10GB"  # the limit on disk for what does not fit into memory
_AT_ONCE = 1000  # rows
_EXCERPT = re.compile(r"\n\s*LINE \d+: ")
_ROW = '"one row of the result"'  # an alias that is not the name of a column, which would have precedence
_NO_NUMBER = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:NaN|Infinity)')

Values = tuple[Any, ...]
Found = TypeVar("Found")


class CaptureDatabase:
    """The captures as a database. `scratch` is a folder for this query. Call `close` at the end. Raises UsageError."""

    def __init__(self, captures: Sequence[CapturedTables], scratch: str) -> None:
        files = {name: [captured.file(name) for captured in captures] for name in TABLES}
        self._result = os.path.join(scratch, "result.parquet")
        allowed = [*(path for paths in files.values() for path in paths), self._result]
        self._thread = ThreadPoolExecutor(1)
        self.database = database = duckdb.connect(
            config={
                "memory_limit": _MEMORY,
                "max_temp_directory_size": _SPILLED,
                "allow_community_extensions": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
        )
        database.execute(f"SET temp_directory = {literal(os.path.join(scratch, 'spilled'))}")
        database.execute("SET allowed_paths = ?", [allowed])
        for name, paths in files.items():
            columns = ", ".join(f'"{column.name}"' for column in TABLES[name].columns)
            given = ", ".join(map(literal, paths))
            with _Told():
                database.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet([{given}])")  # noqa: S608
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Close the database."""
        self._thread.shutdown()
        self.database.close()

    def texts(self, query: str) -> tuple[list[str], Iterator[Values]]:
        """Return the column names of a result, and its rows, each value as text or None. Raises UsageError."""
        found = self._execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {self._selected(query)}")  # noqa: S608
        return [name for name, *_ in found.description or ()], self._rows(found)

    def objects(self, query: str) -> Iterator[bytes]:
        """Return each row of a result as a JSON object. Raises UsageError."""
        selected = self._selected(query)
        found = self._execute(f"SELECT CAST(to_json({_ROW}) AS VARCHAR) FROM {selected} AS {_ROW}")  # noqa: S608
        return (_strict(text).encode() for (text,) in self._rows(found))

    def write(self, query: str) -> str:
        """Write a result as a Parquet file in the folder of the query. Return its path. Raises UsageError."""
        options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
        self._execute(f"COPY {self._selected(query)} TO {literal(self._result)} ({options})")
        return self._result

    def _selected(self, query: str) -> str:
        """Return a query in brackets, if it is one SELECT. So it is part of a statement, and cannot end it."""
        try:
            query.encode()
        except UnicodeEncodeError:
            raise UsageError("the query is not valid UTF-8") from None
        with _Told():
            statements = self.database.extract_statements(query)
        if [it.type for it in statements] != [duckdb.StatementType.SELECT]:
            kinds = series([it.type.name for it in statements]) or "none"
            raise UsageError(f"a query is one SELECT statement, and this is {kinds}")
        return f"(\n{statements[0].query.strip().rstrip(';')}\n)"

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        return self._done(lambda: self.database.execute(statement))

    def _rows(self, found: duckdb.DuckDBPyConnection) -> Iterator[Values]:
        while rows := self._done(lambda: found.fetchmany(_AT_ONCE)):
            yield from rows

    def _done(self, work: Callable[[], Found]) -> Found:
        """Let DuckDB work. An exception in this thread, such as Ctrl-C, interrupts it."""
        future = self._thread.submit(work)
        try:
            with _Told():
                return future.result()
        finally:
            while not future.done():
                self.database.interrupt()  # has no effect if the work has not begun
                wait([future], 0.1)


class _Told:
    """A context manager that turns an error of DuckDB into a UsageError of one line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, duckdb.Error):
            told, *_ = _EXCERPT.split(str(error))  # the excerpt would show our brackets too
            raise UsageError(" ".join(told.split())) from error


def _strict(text: str) -> str:
    """Replace the NaN and Infinity that DuckDB writes for some numbers by null, which is valid JSON."""
    if "NaN" not in text and "Infinity" not in text:
        return text
    return _NO_NUMBER.sub(lambda found: found[0] if found[0].startswith('"') else "null", text)
