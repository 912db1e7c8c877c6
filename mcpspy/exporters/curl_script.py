"""The HTTP requests of a session as curl commands, one after the other, which a POSIX shell can run.

A command is that of `single_message.curl`. A request that has none, such as a body that is not text, is a comment that
says why. Comments hold captured text, so they are printable and on one line.
"""

from collections.abc import Iterator, Sequence

from mcpspy.capture.records import Close, Open, Record
from mcpspy.errors import UsageError
from mcpspy.exporters.single_message import curl
from mcpspy.exporters.source import ExportSource, words_of
from mcpspy.text import printable
from mcpspy.timeline import Row, final_rows

_LONGEST = 200  # characters of a comment


def write(sources: Sequence[ExportSource]) -> Iterator[bytes]:
    """Yield the commands of some captures."""
    for source in sources:
        yield _comment(f"{source.name}: the requests to {source.capture.header.url}")
        yield from _commands(source)


def _commands(source: ExportSource) -> Iterator[bytes]:
    """Yield a command for each request with a wanted row; the parts of a batch are one request."""
    requests: dict[int, Open] = {}  # those without a command yet, by channel

    def records() -> Iterator[Record]:
        for record in source.records():
            if isinstance(record, Open) and record.role == "request":
                requests[record.ch] = record
            yield record
            if isinstance(record, Close):
                requests.pop(record.ch, None)

    for row in final_rows(records, live=source.capture.live):
        if row.channel in requests and source.wanted(row):
            yield b"\n" + _comment(f"#{row.n} {_title(row)}")
            try:
                yield curl(source.capture.header, row, requests.pop(row.channel)).encode()
            except UsageError as error:
                yield _comment(str(error))


def _title(row: Row) -> str:
    return f"{row.method} {words_of(row)}".rstrip() if row.method else row.text or row.kind


def _comment(words: str) -> bytes:
    return f"# {printable(words, _LONGEST)}\n".encode()
