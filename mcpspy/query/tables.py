"""The tables of captures, for SQL and for Parquet: each column, its type and its meaning.

Only this module names columns. The files are written from it, the views have these columns in this order, and
`docs/sql.md` is generated from it. Columns are added at the end of a table, and never renamed or removed. A change of a
column's meaning needs a new `SCHEMA`.
"""

from collections.abc import Iterator
from typing import NamedTuple

SCHEMA = 1
"""The version of all tables, which is in the metadata of each Parquet file."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str
    """A type of DuckDB: VARCHAR, BIGINT, DOUBLE, BOOLEAN, TIMESTAMP, DATE or JSON."""
    meaning: str


class Table(NamedTuple):
    """One table."""

    meaning: str
    columns: tuple[Column, ...]


_OF_CAPTURE = (
    Column("capture", "VARCHAR", "the id of the capture"),
    Column("server", "VARCHAR", "the name of the server, from the header of the capture"),
    Column("day", "DATE", "the day of `time`, UTC"),
    Column("time", "TIMESTAMP", "the moment, UTC, with microseconds"),
)
"""The first columns of every table."""

TABLES = {
    "captures": Table(
        "One row for each capture; `time` is its start.",
        (
            *_OF_CAPTURE,
            Column("path", "VARCHAR", "its first file"),
            Column("transport", "VARCHAR", "`stdio`, `http` or `mitm`"),
            Column("tool", "VARCHAR", "what recorded it: `mcpspy 0.1.0`"),
            Column("argv", "JSON", "the command of a stdio server: an array"),
            Column("url", "VARCHAR", "the upstream of an HTTP server"),
            Column("live", "BOOLEAN", "whether it was being recorded when it was read"),
            Column("bytes", "BIGINT", "the size of its files"),
            Column("seconds", "DOUBLE", "from its start to its last record"),
            Column("client", "VARCHAR", "the last name that the client stated"),
            Column("client_version", "VARCHAR", "the version that it stated"),
            Column("server_name", "VARCHAR", "the last name that the server stated"),
            Column("server_version", "VARCHAR", "the version that it stated"),
            Column("revision", "VARCHAR", "the last revision that the server agreed to"),
            Column("frames", "BIGINT", "the number of its rows in `frames`"),
            Column("messages", "BIGINT", "the number of its rows in `messages`"),
            Column("exchanges", "BIGINT", "the number of its rows in `exchanges`"),
            Column("findings", "BIGINT", "the number of its rows in `findings`"),
            Column("failed", "BIGINT", "the number of its requests that have failed: in `exchanges` and in `frames`"),
        ),
    ),
    "frames": Table(
        "One row for each line of a capture that `mcpspy show` lists: frames, HTTP heads, ends of streams, gaps, "
        "signals, the end. A batch is one row.",
        (
            *_OF_CAPTURE,
            Column("n", "BIGINT", "the line number in the capture"),
            Column("t", "DOUBLE", "seconds since the capture started"),
            Column("sender", "VARCHAR", "`client`, `server` or `mcpspy`"),
            Column("channel", "BIGINT", "the number of the channel"),
            Column("kind", "VARCHAR", "as in `show --json`; for a batch, the kind of its first message"),
            Column("messages", "BIGINT", "the number of its rows in `messages`: 0, 1, or more for a batch"),
            Column("size", "BIGINT", "bytes of the frame"),
            Column("session", "VARCHAR", "the session id, if the transport has one"),
            Column("http_method", "VARCHAR", "over HTTP: the method of the request"),
            Column("http_target", "VARCHAR", "over HTTP: the target of the request"),
            Column("http_status", "BIGINT", "over HTTP: the status of the response, if it is known"),
            Column("gate", "VARCHAR", "the name of the gate that acted on the frame"),
            Column("forwarded", "VARCHAR", "what happened to the frame then, as in `show --json`"),
            Column("held", "DOUBLE", "for how many seconds a gate held it"),
            Column("text", "VARCHAR", "the text of a frame that is not a message, such as a line of stderr"),
            Column(
                "outcome",
                "VARCHAR",
                "what came of the HTTP request that begins here, if it carries no JSON-RPC request",
            ),
            Column("failed", "BOOLEAN", "whether that HTTP request has failed"),
            Column("expected", "VARCHAR", "why an outcome that is a failure otherwise is normal here"),
        ),
    ),
    "messages": Table(
        "One row for each JSON-RPC message, and for each frame that is not a valid message or was not decoded.",
        (
            *_OF_CAPTURE,
            Column("n", "BIGINT", "the line number in the capture: `frames.n`"),
            Column("part", "BIGINT", "the place in a batch, else 0"),
            Column("t", "DOUBLE", "seconds since the capture started"),
            Column("sender", "VARCHAR", "`client`, `server` or `mcpspy`"),
            Column("kind", "VARCHAR", "`request`, `notification`, `result`, `error`, `invalid` or `undecoded`"),
            Column("id", "JSON", "the JSON-RPC id, digit for digit"),
            Column("method", "VARCHAR", "the method; for a response, the method of its request"),
            Column("name", "VARCHAR", "the tool, prompt or resource concerned"),
            Column("revision", "VARCHAR", "the revision of the protocol, if the exchange shows it"),
            Column("session", "VARCHAR", "the session id, if the transport has one"),
            Column("status", "VARCHAR", "the status of a request and its response, as in `show --json`"),
            Column("request", "BIGINT", "the `n` of the request"),
            Column("response", "BIGINT", "the `n` of the response"),
            Column("latency", "DOUBLE", "seconds from the request to its response"),
            Column("size", "BIGINT", "bytes of the frame"),
            Column("extensions", "JSON", "the extensions that it declares: an array of names"),
            Column("findings", "BIGINT", "the number of its rows in `findings`"),
            Column("message", "JSON", "the message; null if it is not JSON, or not decoded"),
            Column("text", "VARCHAR", "the text, if there is no `message`"),
            Column("outcome", "VARCHAR", "what came of the request, as in `show --json`"),
            Column("failed", "BOOLEAN", "whether the request has failed"),
            Column("expected", "VARCHAR", "why an outcome that is a failure otherwise is normal here"),
        ),
    ),
    "exchanges": Table(
        "One row for each request, with its response; `time` is the time of the request.",
        (
            *_OF_CAPTURE,
            Column("request", "BIGINT", "the line number of the request: `messages.n`"),
            Column("part", "BIGINT", "its place in a batch, else 0"),
            Column("response", "BIGINT", "the line number of the response"),
            Column("t", "DOUBLE", "seconds since the capture started"),
            Column("sender", "VARCHAR", "who sent the request"),
            Column("id", "JSON", "the JSON-RPC id"),
            Column("method", "VARCHAR", "the method"),
            Column("name", "VARCHAR", "the tool, prompt or resource concerned"),
            Column("revision", "VARCHAR", "the revision of the protocol"),
            Column("session", "VARCHAR", "the session id, if the transport has one"),
            Column("status", "VARCHAR", "`ok`, `error`, `tool-error`, `unanswered`, `cancelled`, …: as in `show`"),
            Column("latency", "DOUBLE", "seconds from the request to its response"),
            Column("request_size", "BIGINT", "bytes of the frame of the request"),
            Column("response_size", "BIGINT", "bytes of the frame of the response"),
            Column("error_code", "BIGINT", "the code of an error"),
            Column("error_message", "VARCHAR", "the message of an error"),
            Column("findings", "BIGINT", "the number of rows in `findings` of both messages"),
            Column("outcome", "VARCHAR", "what came of the request, as in `show --json`"),
            Column("failed", "BOOLEAN", "whether the request has failed"),
            Column("expected", "VARCHAR", "why an outcome that is a failure otherwise is normal here"),
        ),
    ),
    "findings": Table(
        "One row for each finding of `mcpspy check`, before waivers, each time it occurs.",
        (
            *_OF_CAPTURE,
            Column("n", "BIGINT", "the line number of the message: `frames.n`"),
            Column("part", "BIGINT", "the place in a batch, else 0"),
            Column("rule", "VARCHAR", "the id of the rule (docs/rules.md)"),
            Column("severity", "VARCHAR", "`error`, `warning` or `info`"),
            Column("blame", "VARCHAR", "`client` or `server`"),
            Column("pointer", "VARCHAR", "JSON Pointer into the message"),
            Column("message", "VARCHAR", "one sentence"),
            Column("related", "JSON", "the line numbers of other records that matter: an array"),
            Column("revision", "VARCHAR", "the revision of the protocol"),
            Column("spec", "VARCHAR", "URL of the page of the specification"),
            Column("method", "VARCHAR", "the method of the message"),
            Column("name", "VARCHAR", "the tool, prompt or resource concerned"),
        ),
    ),
    "tools": Table(
        "One row for each tool of each capture, listed or called; `time` is the start of the capture.",
        (
            *_OF_CAPTURE,
            Column("name", "VARCHAR", "the name of the tool"),
            Column("listed", "BIGINT", "the line number of its last listing; null: it was never listed"),
            Column("called", "BIGINT", "the line number of its first call; null: it was never called"),
            Column("calls", "BIGINT", "how often it was called"),
            Column("errors", "BIGINT", "calls that were answered by an error or a tool's error"),
            Column("findings", "BIGINT", "findings in its calls, their answers and its definition"),
            Column("p50", "DOUBLE", "median of its latencies in seconds"),
            Column("p95", "DOUBLE", "95th percentile of its latencies in seconds"),
            Column("max", "DOUBLE", "its longest latency in seconds"),
            Column("definition", "BIGINT", "bytes of its definition, as compact JSON"),
            Column("arguments", "BIGINT", "bytes of the arguments of all calls"),
            Column("results", "BIGINT", "bytes of the results of all calls"),
        ),
    ),
}
"""The tables by name."""


def documented(text: str) -> str:
    """Return `docs/sql.md` with these tables between its two marks."""
    begin, end = "<!-- tables: scripts/write-rules -->\n", "<!-- end of tables -->\n"
    head, rest = text.split(begin)
    return f"{head}{begin}{''.join(_sections())}{end}{rest.split(end)[1]}"


def _sections() -> Iterator[str]:
    for name, table in TABLES.items():
        yield f"\n### `{name}`\n\n{table.meaning}\n\n| column | type | meaning |\n|---|---|---|\n"
        for column in table.columns:
            yield f"| `{column.name}` | {column.type} | {column.meaning} |\n"
    yield "\n"
