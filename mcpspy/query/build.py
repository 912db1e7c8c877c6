"""Tables of captures as Parquet files, made by DuckDB.

A capture is first written as lines of JSON. DuckDB reads them as a stream, so memory does not grow with the capture.
Each table has one file with one object per line. Its members are the columns of the table (`mcpspy.query.tables`), with
two differences: a time is the number of microseconds since 1970, and a day is left out. A JSON value is text in a
string, so that it keeps its digits. Rows are written while the capture is read, twice.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, BinaryIO

import duckdb
import orjson

from mcpspy import __version__
from mcpspy.capture.reader import Capture
from mcpspy.conversation.model import Exchange
from mcpspy.errors import CaptureError
from mcpspy.json_values import member
from mcpspy.overview import Announced
from mcpspy.process.workers import cores, mapped
from mcpspy.query.cache import CapturedTables, tables_of
from mcpspy.query.tables import SCHEMA, TABLES, Column
from mcpspy.rules import Finding
from mcpspy.timeline import Row, act_fields, final_rows, message_json

MESSAGES = frozenset(("request", "notification", "result", "error", "invalid", "undecoded"))
"""The kinds of rows that are messages."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ESCAPE = re.compile(rb"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)")
_LARGEST = 1 << 63

Fields = dict[str, Any]


class DerivedTables:
    """The files of one capture in a folder. Call `write`. `live` and `size` describe the capture."""

    def __init__(self, capture: Capture, capture_id: str, folder: str, *, live: bool, size: int) -> None:
        header = capture.header
        self._capture, self._live, self._size = capture, live, size
        self._start = (datetime.fromisoformat(header.started).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
        self._common = {"capture": capture_id, "server": header.name}
        self._folder = folder
        self._files: dict[str, BinaryIO] = {}
        self.counts = dict.fromkeys(TABLES, 0)
        """The number of rows of each table."""
        self.longest = 0
        """The length of the longest line of any table, in bytes."""
        self._announced = Announced()
        self._waiting: dict[int, Fields] = {}  # by ordinal: exchanges whose response comes later
        self._frame: Fields = {}
        self._failed = 0
        self._last = 0

    def path(self, table: str) -> str:
        """Return the file of a table."""
        return os.path.join(self._folder, f"{table}.ndjson")

    def write(self, read: Callable[[int], None] | None = None) -> None:
        """Read the capture and write the files. `read` is called with the size of each chunk. Raises CaptureError."""
        with ExitStack() as stack:
            for table in TABLES:
                self._files[table] = stack.enter_context(open(self.path(table), "xb"))
            records = partial(self._capture.records, read=read)
            for row in final_rows(records, self._announced, live=self._live):
                self._add(row)
            self._end()

    def _put(self, table: str, t: int, fields: Fields) -> None:
        fields |= self._common
        fields["time"] = self._start + t // 1000
        try:
            line = orjson.dumps(fields)
        except TypeError:  # lone surrogates
            line = orjson.dumps({name: _clean(value) for name, value in fields.items()})
        self._files[table].write(line + b"\n")
        self.counts[table] += 1
        self.longest = max(self.longest, len(line))

    def _add(self, row: Row) -> None:
        self._last = max(self._last, row.t)
        self._failed += row.counts_as_failed
        if self._frame.get("n") != row.n:
            self._end_frame()
            self._frame = _frame(row)
        if row.kind in MESSAGES:
            self._frame["messages"] += 1
            self._put("messages", row.t, _message(row))
        for finding in row.findings:
            self._put("findings", row.t, _finding(finding, row))
        exchange = row.exchange
        if exchange:
            self._add_exchange(row, exchange)

    def _add_exchange(self, row: Row, exchange: Exchange) -> None:
        """Add a request or a response. The row is written when both were added."""
        if row.kind == "request":
            self._waiting[exchange.ordinal] = _exchange(row)
            if row.response is None:
                self._end_exchange(exchange.ordinal)
        else:
            known = self._waiting.get(exchange.ordinal)
            if known and known["response"] == row.n:
                known["response_size"] = row.size
                known["findings"] += len(row.findings)
                known |= _error(row)
                self._end_exchange(exchange.ordinal)

    def _end_exchange(self, ordinal: int) -> None:
        fields = self._waiting.pop(ordinal)
        self._put("exchanges", fields.pop("at"), fields)

    def _end_frame(self) -> None:
        if self._frame:
            self._put("frames", self._frame.pop("at"), self._frame)

    def _end(self) -> None:
        self._end_frame()
        for ordinal in list(self._waiting):
            self._end_exchange(ordinal)
        for tool in self._announced.tools.values():
            latencies = zip(("p50", "p95", "max"), tool.latencies.quantiles(0.5, 0.95, 1), strict=False)
            fields = {
                "name": tool.name, "listed": tool.listed or None, "called": tool.called or None, "calls": tool.calls,
                "errors": tool.errors, "findings": tool.found, "definition": tool.size, "arguments": tool.arguments,
                "results": tool.results, **{name: latency / 1e9 for name, latency in latencies},
            }  # fmt: skip
            self._put("tools", 0, fields)
        self._put("captures", 0, self._summary())

    def _summary(self) -> Fields:
        header, client, server = self._capture.header, self._announced.client, self._announced.server
        return {
            "path": os.fsencode(os.path.abspath(self._capture.path)).decode("utf-8", "replace"),
            "transport": header.transport,
            "tool": header.tool,
            "argv": json.dumps(header.argv),
            "url": header.url,
            "live": self._live,
            "bytes": self._size,
            "seconds": self._last / 1e9,
            "client": client.name if client else None,
            "client_version": client.version if client else None,
            "server_name": server.name if server else None,
            "server_version": server.version if server else None,
            "revision": (server.revision if server else None) or None,
            **{table: self.counts[table] for table in ("frames", "messages", "exchanges", "findings")},
            "failed": self._failed,
        }


def _frame(row: Row) -> Fields:
    http, act = row.http or {}, act_fields(row.act) if row.act else {}
    fields: Fields = {
        "at": row.t, "n": row.n, "t": row.t / 1e9, "sender": row.sender, "channel": row.channel, "kind": row.kind,
        "messages": 0, "size": row.size, "session": row.session, "http_method": http.get("method"),
        "http_target": http.get("target"), "http_status": http.get("status"),
    }  # fmt: skip
    if row.exchange is None and row.outcome:
        fields |= _outcome(row)
    if row.act:
        fields |= {"gate": row.act.gate, "forwarded": act.get("forwarded"), "held": act.get("held")}
    if row.kind not in MESSAGES:
        fields["text"] = row.raw.decode(errors="replace") if row.raw else row.text
    return fields


def _message(row: Row) -> Fields:
    fields: Fields = {
        "n": row.n, "part": row.part, "t": row.t / 1e9, "sender": row.sender, "kind": row.kind, "id": _id(row),
        "method": row.method, "name": row.name, "revision": row.revision, "session": row.session,
        "status": row.status, "request": row.request, "response": row.response,
        "latency": None if row.latency is None else row.latency / 1e9, "size": row.size,
        "extensions": json.dumps(row.extensions) if row.extensions else None, "findings": len(row.findings),
    }  # fmt: skip
    fields |= _outcome(row)
    message = message_json(row)
    if message is None:
        fields["text"] = row.raw.decode(errors="replace") if row.raw else row.text
    else:
        fields["message"] = _well_formed(message)
    return fields


def _exchange(row: Row) -> Fields:
    return {
        "at": row.t, "request": row.n, "part": row.part, "response": row.response, "t": row.t / 1e9,
        "sender": row.sender, "id": _id(row), "method": row.method, "name": row.name, "revision": row.revision,
        "session": row.session, "status": row.status, "latency": None if row.latency is None else row.latency / 1e9,
        "request_size": row.size, "findings": len(row.findings), **_outcome(row),
    }  # fmt: skip


def _outcome(row: Row) -> Fields:
    return {"outcome": row.outcome, "failed": row.failed, "expected": row.expected}


def _error(row: Row) -> Fields:
    """Return code and message of an error. Both are `None` for any other answer."""
    code, message = member(row.value, "error", "code"), member(row.value, "error", "message")
    return {
        "error_code": code if type(code) is int and abs(code) < _LARGEST else None,
        "error_message": message if isinstance(message, str) else None,
    }


def _finding(finding: Finding, row: Row) -> Fields:
    return {
        "n": row.n, "part": row.part, "rule": finding.rule, "severity": finding.severity, "blame": finding.blame,
        "pointer": finding.pointer, "message": finding.message, "related": json.dumps(finding.related),
        "revision": finding.revision, "spec": finding.spec, "method": row.method, "name": row.name,
    }  # fmt: skip


def _id(row: Row) -> str | None:
    """Return the id as JSON, digit for digit. An id that is not JSON (NaN) becomes a string."""
    if row.id is None:
        return None
    if row.id.kind != "string":
        try:
            orjson.loads(row.id.token)
            return row.id.token
        except orjson.JSONDecodeError:
            pass
    return json.dumps(_clean(row.id.token))


def _well_formed(message: bytes) -> str:
    """Replace escapes of lone surrogates, which many parsers refuse, by U+FFFD in a JSON text."""
    if b"\\ud" in message or b"\\uD" in message:
        message = _ESCAPE.sub(lambda found: b"\\ufffd" if _is_lone(found[1]) else found[0], message)
    return message.decode(errors="replace")


def _is_lone(escape: bytes) -> bool:
    return len(escape) == 5 and escape[1:2] in b"dD"


def _clean(value: Any) -> Any:
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


_MEMORY = "512MB"
_GROUP = "16MB"  # the part of a table that is written at once
_LEAST = 16 << 20  # bytes of buffer for a line, at least
_TEXTS = {"VARCHAR": "VARCHAR", "JSON": "VARCHAR", "TIMESTAMP": "BIGINT"}


def build(captures: Sequence[CapturedTables], advance: Callable[[int], None], temporary: str = "") -> None:
    """Make the missing tables of captures, in several processes. `advance` is called with the number of bytes read.

    `temporary` is the folder for the tables of standard input. Raises CaptureError if a capture cannot be read,
    UsageError if the tables cannot be written.
    """
    stale = {captured.capture.path: captured for captured in captures if not captured.fresh}
    folders = mapped(partial(_build, temporary=temporary), list(stale), advance, cores())
    for captured, made in zip(stale.values(), folders, strict=True):
        captured.folder, captured.fresh = made, True  # the folder is a new one if the capture has grown meanwhile


def _build(path: str, advance: Callable[[int], None], *, temporary: str) -> str:
    """Make the tables of one capture in its current state."""
    captured = tables_of(path, temporary)
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
