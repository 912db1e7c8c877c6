"""Searching a capture for the rows that match a filter, without a screen.

A person who types a filter wants the first hits at once and the rest soon, in hundreds of megabytes, without blocking
the keyboard. So a search is a generator that looks at a few rows per step; dropping the generator ends the search. The
cheapest evidence is used first: for many rows together, the columns of the fold and the bytes of their lines
(`_decided`); then for a single row its columns and its line; its decoded messages only at the end. Terms that need the
fold wait for it; text terms do not. Rows may be added and moved during a search (a request recorded after its
response), so a search remembers which rows it has looked at, and looks again at those that were moved or revised.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from mcpspy.browse.columns import Columns
from mcpspy.capture.records import Frame, Header, Record
from mcpspy.capture.scan import raw_of
from mcpspy.filters import KEYS, BlockFilter, Filter, Gathered, LineBlock
from mcpspy.timeline import Row

_AT_ONCE = 64  # rows at a time, and how far back a moved row may appear
_BLOCK = 1024  # rows decided together
MOST_BYTES = 1 << 18  # bytes of lines searched together
_TEXT = frozenset({"text"})
_FOLDED = frozenset(KEYS) - _TEXT
"""The keys whose values the fold provides."""
_ALONE = _TEXT | {"from", "time"}
"""The keys that can be decided from a row alone, as far as it is searched."""
_REVISED = {"status", "latency", "revision", "rule", "severity"}
"""The keys whose values may change later."""
_VERDICTS = {False: 1, True: 2}
_UNKNOWN = Row(0, 0, "", "")


class Indexed(Protocol):
    """The interface to the rows of a capture that a search needs."""

    header: Header

    @property
    def lines(self) -> int:
        """The highest line number of a row."""

    @property
    def rows(self) -> Sequence[int]:
        """The line number of each row."""

    def row_of(self, n: int) -> int | None:
        """Return the place of the row on line `n`, None if there is none."""

    def in_pieces(self, n: int) -> bool:
        """Return whether the row on line `n` is a frame recorded in pieces."""

    def line(self, n: int) -> bytes:
        """Return the line of the row on line `n`, as it is in the file."""

    def block(self, first: int, last: int, limit: int) -> tuple[bytes, Sequence[int], Sequence[int]] | None:
        """Return the lines from `first` to `last` that fit into `limit` bytes, as a `LineBlock` needs them.

        None if the first line does not fit, or if lines are not contiguous.
        """

    def record(self, n: int, limit: int = 1 << 62) -> Record:
        """Return the record on line `n`; for a frame in pieces, about its first `limit` bytes."""


class Searched(Protocol):
    """The interface to an open capture that a search needs."""

    @property
    def index(self) -> Indexed:
        """Its rows."""

    @property
    def columns(self) -> Columns | None:
        """What is known about each line, if it is kept in columns."""

    @property
    def revised(self) -> Sequence[int]:
        """The line numbers of rows that have changed since they were folded, in that order; it only grows."""

    @property
    def moved(self) -> Sequence[int]:
        """The line numbers of rows that the fold has moved, in that order; it only grows."""

    def known(self, n: int) -> Row | None:
        """Return the row on line `n` as a new object, without text, as far as it is folded; its kind may be `batch`."""

    def messages(self, place: int) -> list[Row]:
        """Return the decoded rows at a place."""


class SearchStep(NamedTuple):
    """The result of one step."""

    place: int
    """The number of rows that are finished."""
    hits: list[int]
    """The line numbers of rows that match."""
    gone: list[int]
    """The line numbers of former hits that no longer match."""
    idle: bool
    """Whether there was nothing to look at: the end is reached, or the fold must come first."""


def search(capture: Searched, wanted: Filter) -> Iterator[SearchStep]:
    """Look at some rows per step, without end; rows that change later are looked at again."""
    searching = _Search(capture, wanted)
    while True:
        yield searching.step()


class _Search:
    """The state of a search between two steps."""

    def __init__(self, capture: Searched, wanted: Filter) -> None:
        self._capture, self._wanted, self._keys = capture, wanted, wanted.keys
        self._block = BlockFilter(wanted)
        self._looked = bytearray()  # by line number: one of the verdicts above, or 0
        self._place = 0  # finished rows
        self._ahead = _BLOCK  # rows to look at in the next step
        self._revised, self._moved = len(capture.revised), len(capture.moved)

    def step(self) -> SearchStep:
        """Look at the next rows, and at some that were moved or revised."""
        self._looked.extend(bytes(self._capture.index.lines + 1 - len(self._looked)))
        before = self._place, self._revised, self._moved
        hits: list[int] = []
        gone: list[int] = []
        self._look_ahead(hits)
        self._look_at_moved(hits)
        self._look_at_revised(hits, gone)
        return SearchStep(self._place, hits, gone, (self._place, self._revised, self._moved) == before)

    def _look_ahead(self, hits: list[int]) -> None:
        """Look at the next rows, and at those that have appeared among the last finished ones."""
        looked, first = self._looked, max(self._place - _AT_ONCE, 0)
        window = self._capture.index.rows[first : self._place + self._ahead]
        lines = [n for n in window if not looked[n]]
        decided = _decided(self._capture, self._block, lines)
        self._ahead = max(min(2 * len(decided), _BLOCK), _AT_ONCE)
        rest = lines[len(decided)] if len(decided) < len(lines) else None  # the first one left for the next step
        slow = 0  # rows that had to be decided one by one; one in pieces takes as long as many others
        for n, told in zip(lines, decided, strict=False):
            found = told
            if found is None:
                found = self._verdict(first + window.index(n)) if slow < _AT_ONCE else None
                slow += _AT_ONCE if self._capture.index.in_pieces(n) else 1
                if found is None:
                    rest, self._ahead = n, _AT_ONCE
                    break
            looked[n] = _VERDICTS[found]
            if found:
                hits.append(n)
        self._place = max(self._place, first + (len(window) if rest is None else window.index(rest)))

    def _look_at_moved(self, hits: list[int]) -> None:
        """Look at rows that were moved to a place that is already finished."""
        for n in self._capture.moved[self._moved : self._moved + _AT_ONCE]:
            at = self._capture.index.row_of(n)
            if at is not None and at < self._place and not self._looked[n]:
                found = self._verdict(at)
                if found is None:
                    break
                self._looked[n] = _VERDICTS[found]
                if found:
                    hits.append(n)
            self._moved += 1

    def _look_at_revised(self, hits: list[int], gone: list[int]) -> None:
        """Look again at rows that have changed."""
        if not self._keys & _REVISED:
            return
        for n in self._capture.revised[self._revised : self._revised + _AT_ONCE]:
            self._revised += 1
            at = self._capture.index.row_of(n) if self._looked[n] else None
            found = None if at is None else self._verdict(at)
            if found is not None and self._looked[n] != _VERDICTS[found]:
                self._looked[n] = _VERDICTS[found]
                (hits if found else gone).append(n)

    def _verdict(self, place: int) -> bool | None:
        return verdict(self._capture, self._wanted, self._keys, place)


def _decided(capture: Searched, wanted: BlockFilter, rows: Sequence[int]) -> list[bool | None]:
    """Return the verdicts about some rows that columns and lines allow, for as many rows as are decided together."""
    columns = capture.columns
    lines = _lines(capture.index, rows) if wanted.reads_lines and rows else None
    if lines:
        rows = list(takewhile(lines.stop.__gt__, rows))

    def column(name: str) -> Gathered | None:
        found = columns.gather(name, rows) if columns else None
        return Gathered(*found) if found else None

    return wanted.decide(rows, column, lines)


def _lines(index: Indexed, rows: Sequence[int]) -> LineBlock | None:
    """Return the lines of some rows, from the first row on."""
    block = index.block(rows[0], max(rows), MOST_BYTES)
    return block and LineBlock(rows[0], *block, exact=index.header.transport == "stdio")


def verdict(capture: Searched, wanted: Filter, keys: frozenset[str], place: int) -> bool | None:
    """Return whether the row at a place matches a filter that has those keys; None if the fold must come first."""
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
    if found is None and capture.index.header.transport == "stdio":  # there the frame is the whole content of a row
        raw = raw_of(line) if line else _whole(capture.index, n)
        if raw:
            row = row if known else Row(n, 0, "", "")
            row.raw = raw
            found = wanted.decide(row, known | _TEXT)
    if found is None:
        messages = capture.messages(place)
        for message in messages:
            if len(message.raw) < message.size and not message.tail:  # only the start of a large frame
                message.raw = _whole(capture.index, n)
        found = any(map(wanted, messages))
    return found


def _whole(index: Indexed, n: int) -> bytes:
    """Return the frame in pieces on line `n`; of a frame that is too large to be decoded, its start and its end."""
    record = index.record(n)
    tail = record.omitted.tail if isinstance(record, Frame) and record.omitted else b""
    return record.raw + tail if isinstance(record, Frame) else b""
