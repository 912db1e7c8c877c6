"""Rows as a table of comma-separated values (RFC 4180) for spreadsheets and databases.

The table has one line for each row of `show --json`, with the same values, except for two changes. A spreadsheet runs a
cell that begins with `=`, `+`, `-` or `@` as a formula. So each cell that may be a formula, or that begins with an
apostrophe, gets an apostrophe in front. To undo this, remove one apostrophe from each cell that begins with one.
Control characters other than tabs and line breaks act on terminals and end the text in many readers. They are replaced
by their pictures: a NUL is U+2400.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from mcpspy.exporters.source import ExportSource
from mcpspy.timeline import Row, act_fields, message_json, wall_time

COLUMNS = (
    "capture", "n", "part", "t", "time", "from", "channel", "transport", "kind", "id", "method", "name", "revision",
    "session", "status", "request", "response", "latency", "size", "gate", "forwarded", "held", "extensions",
    "http_method", "http_target", "http_status", "findings", "message", "text", "tail",
    "outcome", "failed", "expected",
)  # fmt: skip
"""Columns are added at the end, and never renamed or removed."""
_PORTION = 1 << 16  # characters that are written at once
_FORMULA = tuple("=+-@\t\r\n\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}"
                 "\N{FULLWIDTH COMMERCIAL AT}'")  # fmt: skip
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")

_PICTURES = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\r\n"}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)

Cell = str | int | None


def write(sources: Sequence[ExportSource]) -> Iterator[bytes]:
    """Yield the table of some captures, one after the other, with one line of headings."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for source in sources:
        for row in filter(source.wanted, source.rows()):
            table.writerow([plain(cell) for cell in _cells(source, row)])
            if text.tell() > _PORTION:
                yield text.getvalue().encode("utf-8", "replace")
                text.seek(0)
                text.truncate()
    yield text.getvalue().encode("utf-8", "replace")


def plain(cell: Cell) -> Cell:
    """Return a cell that is not a formula in any spreadsheet, and has no effect on a terminal."""
    if not isinstance(cell, str):
        return cell
    if not cell.isprintable():
        cell = cell.translate(_PICTURES)
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell


def _cells(source: ExportSource, row: Row) -> Iterator[Cell]:
    header = source.capture.header
    act = act_fields(row.act) if row.act else {}
    http = row.http or {}
    message = message_json(row)
    yield source.name
    yield from (row.n, row.part, _seconds(row.t), wall_time(header, row.t), row.sender, row.channel, header.transport)
    yield from (row.kind, None if row.id is None else str(row.id), row.method, row.name, row.revision, row.session)
    yield from (row.status, row.request, row.response, _seconds(row.latency), row.size)
    yield row.act.gate if row.act else None
    yield from (act.get("forwarded"), None if act.get("held") is None else str(act["held"]))
    yield " ".join(row.extensions) or None
    yield from (http.get("method"), http.get("target"), http.get("status"))
    yield " ".join(finding.rule for finding in row.findings) or None
    if message is not None:
        yield from (message.decode("utf-8", "replace"), None, None)
    else:
        text = row.raw.decode("utf-8", "replace") if row.raw else row.text
        yield from (None, text, row.tail.decode("utf-8", "replace") or None)
    yield from (row.outcome, str(row.failed).lower(), row.expected)


def _seconds(nanoseconds: int | None) -> Cell:
    """Return seconds without an exponent."""
    return None if nanoseconds is None else f"{nanoseconds / 1e9:.9f}".rstrip("0").rstrip(".")
