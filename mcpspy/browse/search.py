"""Searching a capture: which of its rows a filter wants, without a screen.

The theory. Whoever types a filter wants the first hits at once and the rest soon, over hundreds of megabytes, and keys
answered meanwhile. So a search is a generator that looks at a few rows a step; dropping it ends it. A row is decided by
the cheapest that tells: with many others the columns that the fold keeps and the bytes of their lines (`_decided`),
then by itself its columns and its line, and only then its messages. What needs the fold waits for it; texts are found
ahead of it. The rows may grow and change places meanwhile (a request recorded after its response), so a search
remembers what it has looked at, and looks at those again that were moved or revised.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from mcpspy.capture.records import Frame, Header, Record
from mcpspy.capture.scan import raw_of
from mcpspy.conversation.columns import Columns
from mcpspy.filters import KEYS, BlockFilter, Filter, Gathered, LineBlock
from mcpspy.timeline import Row

_AT_ONCE = 64  # rows at a time, and how far behind what it has looked at another row may turn up
_BLOCK = 1024  # rows that are decided together
MOST_BYTES = 1 << 18  # of lines that are searched together
_SEARCHED = 1 << 20  # bytes of a frame in pieces that are looked at
_TEXT = frozenset({"text"})
_FOLDED = frozenset(KEYS) - _TEXT
"""The keys that the fold knows the values of."""
_ALONE = _TEXT | {"from", "time"}
"""Those that any row tells by itself, as much of it as is looked at."""
_REVISED = {"status", "latency", "revision", "rule", "severity"}
"""Those whose values may become others than they were first."""
_VERDICTS = {False: 1, True: 2}
_UNKNOWN = Row(0, 0, "", "")


class Indexed(Protocol):
    """What a search asks of its rows."""

    header: Header

    @property
    def lines(self) -> int:
        """The highest line number of a row."""

    @property
    def rows(self) -> Sequence[int]:
        """The line number of each row."""

    def row_of(self, n: int) -> int | None:
        """The place of the row on line `n`."""

    def in_pieces(self, n: int) -> bool:
        """Whether the row on line `n` is a frame that was written in pieces."""

    def line(self, n: int) -> bytes:
        """The line of the row on line `n`, as it stands in the file."""

    def block(self, first: int, last: int, limit: int) -> tuple[bytes, Sequence[int]] | None:
        """Those of the lines `first` to `last` that `limit` bytes hold, and where each begins and the last one ends.

        None where not even the first does, or where lines do not stand one behind the other.
        """

    def record(self, n: int, limit: int = 1 << 62) -> Record:
        """The record on line `n`, of a frame in pieces about its first `limit` bytes."""


class Searched(Protocol):
    """What a search asks of a capture that is open."""

    @property
    def index(self) -> Indexed:
        """Its rows."""

    @property
    def columns(self) -> Columns | None:
        """What is known of each line, if it is kept in columns."""

    @property
    def revised(self) -> Sequence[int]:
        """The line numbers of rows that became others than the fold first knew them, in that order; it only grows."""

    @property
    def moved(self) -> Sequence[int]:
        """The line numbers of rows that the fold put elsewhere, in that order; it only grows."""

    def known(self, n: int) -> Row | None:
        """A new row: that on line `n`, without its text, as the fold knows it by now; its kind may be `batch`."""

    def messages(self, place: int) -> list[Row]:
        """The decoded rows at that place."""


class SearchStep(NamedTuple):
    """What one step has found."""

    place: int
    """How many rows are done with."""
    hits: list[int]
    """The line numbers of rows that are wanted."""
    gone: list[int]
    """The line numbers of former hits that are wanted no more."""
    idle: bool
    """There was nothing to look at: this is the end, or the fold has to come first."""


def search(capture: Searched, wanted: Filter) -> Iterator[SearchStep]:
    """Look at some rows a step, for ever; rows that change later are looked at again."""
    keys = wanted.keys
    looked = bytearray()  # by line number: a verdict of those below, or 0
    place, revised, moved = 0, len(capture.revised), len(capture.moved)
    block, ahead = BlockFilter(wanted), _BLOCK
    while True:
        looked.extend(bytes(capture.index.lines + 1 - len(looked)))
        before = place, revised, moved
        hits: list[int] = []
        gone: list[int] = []
        slow = 0  # rows that had to be asked by themselves
        first = max(place - _AT_ONCE, 0)
        window = capture.index.rows[first : place + ahead]
        todo = [at for at, n in enumerate(window, first) if not looked[n]]
        lines = [n for n in window if not looked[n]]
        decided = _decided(capture, block, lines)
        done, ahead = first + len(window), max(min(2 * len(decided), _BLOCK), _AT_ONCE)
        for at, n, told in zip(todo, lines, decided, strict=False):
            found = told
            if found is None:
                found = verdict(capture, wanted, keys, at) if slow < _AT_ONCE else None
                slow += 1
                if found is None:
                    done, ahead = at, _AT_ONCE
                    break
            looked[n] = _VERDICTS[found]
            if found:
                hits.append(n)
        else:
            done = todo[len(decided)] if len(decided) < len(todo) else done
        place = max(place, done)
        for n in capture.moved[moved : moved + _AT_ONCE]:
            at_now = capture.index.row_of(n)
            if at_now is not None and at_now < place and not looked[n]:  # it was put among those that are done with
                found = verdict(capture, wanted, keys, at_now)
                if found is None:
                    break
                looked[n] = _VERDICTS[found]
                if found:
                    hits.append(n)
            moved += 1
        for n in capture.revised[revised : revised + _AT_ONCE] if keys & _REVISED else ():
            revised += 1
            at_now = capture.index.row_of(n) if looked[n] else None
            if at_now is not None:
                found = verdict(capture, wanted, keys, at_now)
                if found is not None and looked[n] != _VERDICTS[found]:
                    looked[n] = _VERDICTS[found]
                    (hits if found else gone).append(n)
        yield SearchStep(place, hits, gone, (place, revised, moved) == before)


def _decided(capture: Searched, wanted: BlockFilter, rows: Sequence[int]) -> list[bool | None]:
    """What the columns and the lines of some rows tell of them, of as many as are looked at together."""
    columns = capture.columns
    lines = _lines(capture.index, rows) if wanted.reads_lines and rows else None
    if lines:
        rows = list(takewhile(lines.stop.__gt__, rows))

    def column(name: str) -> Gathered | None:
        found = columns.gather(name, rows) if columns else None
        return Gathered(*found) if found else None

    return wanted.decide(rows, column, lines)


def _lines(index: Indexed, rows: Sequence[int]) -> LineBlock | None:
    """The lines of some rows, from that of the first row on."""
    block = index.block(rows[0], max(rows), MOST_BYTES)
    if block is None:
        return None
    content, starts = block
    stop = rows[0] + len(starts) - 1
    apart = [n for n in takewhile(stop.__gt__, rows) if index.in_pieces(n) and n >= rows[0]]
    return LineBlock(rows[0], content, starts, apart, exact=index.header.transport == "stdio")


def verdict(capture: Searched, wanted: Filter, keys: frozenset[str], place: int) -> bool | None:
    """Whether the row at a place is wanted, by a filter with those keys; None: the fold has to come first."""
    n = capture.index.rows[place]
    row, known = _UNKNOWN, frozenset[str]()
    if not keys <= _TEXT:
        folded = capture.known(n)
        if folded is None and not keys <= _ALONE:
            return None
        if folded and folded.kind != "batch":
            row, known = folded, _FOLDED
    found = wanted.decide(row, known) if known else None
    line = b"" if found is not None or capture.index.in_pieces(n) else capture.index.line(n)
    if line:
        found = wanted.decide(row, known, line)
    if found is None and capture.index.header.transport == "stdio":  # where the frame is all of what its row holds
        raw = raw_of(line) if line else _beginning(capture.index, n)
        if raw:
            row = row if known else Row(n, 0, "", "")
            row.raw = raw
            found = wanted.decide(row, known | _TEXT)
    if found is None:
        found = any(wanted(message) for message in capture.messages(place))
    return found


def _beginning(index: Indexed, n: int) -> bytes:
    """As much as is looked at of the frame in pieces on line `n`."""
    record = index.record(n, _SEARCHED)
    tail = record.omitted.tail if isinstance(record, Frame) and record.omitted else b""
    return record.raw + tail if isinstance(record, Frame) else b""
