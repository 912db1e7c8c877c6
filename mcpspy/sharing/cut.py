"""A small capture made of a large one: whole exchanges, and the handshakes of their sessions.

All that belongs to an exchange stays with it: progress, its cancellation, the rest of its HTTP answer, the rounds that
continue it (2026-07-28), and what the server sends while it is the newest open request, which `mock` and `replay` count
as caused by it. A row that is only a part of that, such as progress, brings its request. With a call, the listings of
tools stay: they show which arguments are valid, and which tools only read. So the copy can be played, and is judged as
the original was.

In place of the other lines the copy has gaps. No reader reports anything as missing across a gap, and their reason
tells `mock` and `replay` that nothing is missing of the exchanges that are left (`LEFT_OUT_BY_CUT`).
"""

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any

import orjson

from mcpspy.capture.format import LEFT_OUT_BY_CUT
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Record
from mcpspy.conversation.model import ENDLESS, HttpUnit, Message, Session
from mcpspy.recording.copy import record_line
from mcpspy.rules.judge import Fold, JudgedEvent
from mcpspy.sharing.selection import LINE_LEFT_OUT, opens_session, raw_lines, selected, whole_lines
from mcpspy.timeline import Row, final_rows

_CONTINUED = b'{"kind":"continued",'
_OF_THE_FILE = ("continues", "control", "proof")
"""Members of a header that say something about the file, and not about the session."""


def cut_rows(records: Callable[[], Iterable[Record]], wanted: Callable[[Row], bool], *, live: bool) -> set[int]:
    """Return the line numbers of the rows that stay; none if no row is wanted. `records` is called twice."""
    exchanges, calls, found, openings, listings = _Exchanges(), _Numbers(), set[int](), set[int](), set[int]()
    for row in final_rows(records, exchanges, live=live):
        if wanted(row):
            found.add(row.n)
        if opens_session(row):
            openings.add(row.n)
        elif row.method == "tools/list":
            listings.add(row.n)
        elif row.method == "tools/call":
            calls.put(row.n, 1)
    found = exchanges.whole(found)
    sessions = set(map(exchanges.session, found)) - {0}
    needed = openings | listings if any(map(calls.get, found)) else openings
    return exchanges.whole(found | {n for n in needed if exchanges.session(n) in sessions})


def cut_lines(capture: Capture, rows: set[int], wanted: dict[str, Any], read: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the lines of the new capture: those of these rows, and what is needed to read them.

    `wanted` describes the selection for the header. `read` is called with the number of bytes of each line read.
    """
    lines = selected(lambda: _counted(whole_lines(raw_lines(capture.path)), read), rows, LEFT_OUT_BY_CUT)
    header = orjson.loads(next(lines))
    own = blake2b(orjson.dumps([capture.header.id, wanted]), digest_size=16).hexdigest()
    source = {"id": capture.header.id, "file": os.path.basename(capture.path), **wanted}
    kept = {name: value for name, value in header.items() if name not in _OF_THE_FILE}
    yield record_line(kept | {"id": own, "cut": source})
    yield from (line for line in lines if line != LINE_LEFT_OUT and not line.startswith(_CONTINUED))


def _counted(lines: Iterable[bytes], read: Callable[[int], None]) -> Iterator[bytes]:
    for line in lines:
        read(len(line))
        yield line


class _Numbers:
    """Numbers by place, of four bytes each: there may be millions of rows."""

    def __init__(self) -> None:
        self._numbers = array("i")

    def get(self, place: int) -> int:
        """Return the number at a place; 0 if there is none."""
        return self._numbers[place] if place < len(self._numbers) else 0

    def put(self, place: int, number: int) -> None:
        """Store a number."""
        if place >= len(self._numbers):
            self._numbers.extend([0] * (place + 1 - len(self._numbers)))
        self._numbers[place] = number


class _Exchanges(Fold):
    """Which rows belong to a request, and to which session rows belong; rows by their line numbers."""

    def __init__(self) -> None:
        self._first = _Numbers()  # the first row that stays with a row: most have only their response or their request
        self._parts: dict[int, list[int]] = {}  # other rows that stay with a row
        self._requests = _Numbers()  # by the ordinal of the exchange
        self._sessions: dict[Session, int] = {}
        self._session_of = _Numbers()

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        if not isinstance(event, Message | HttpUnit):
            return
        self._session_of.put(event.n, self._sessions.setdefault(event.session, len(self._sessions) + 1))
        for n in filter(None, self._owners(event)):
            self._join(n, event.n)
            if isinstance(event, Message) or event.kind == "http":  # an event may be one of thousands on its stream
                self._join(event.n, n)

    def session(self, n: int) -> int:
        """Return the number of the session of a row; 0 for stderr, gaps and signals."""
        return self._session_of.get(n)

    def whole(self, rows: set[int]) -> set[int]:
        """Return these rows with all that belongs to their exchanges."""
        found, waiting = set[int](), list(rows)
        while waiting:
            n = waiting.pop()
            if n not in found:
                found.add(n)
                waiting += filter(None, (self._first.get(n), *self._parts.get(n, ())))
        return found

    def _join(self, row: int, other: int) -> None:
        """Let another row stay with a row."""
        if self._first.get(row) in (0, other):
            self._first.put(row, other)
        else:
            self._parts.setdefault(row, []).append(other)

    def _owners(self, event: Message | HttpUnit) -> Iterator[int | None]:
        """Yield the line numbers of the requests that an event belongs to, or of what it continues."""
        request = event.http.request if event.http else None
        if request and (isinstance(event, HttpUnit) or event.exchange is None):
            yield from (message.n for message in request.carried)
        if isinstance(event, HttpUnit):
            yield request.first if request else None
        elif event.exchange and event.exchange.request is event:
            self._requests.put(event.exchange.ordinal, event.n)
            yield event.exchange.continues
            yield _newest(event) if event.side == "server" else None
        elif event.exchange:
            yield event.exchange.request.n
        elif event.cancels:
            yield event.cancels.request.n
        elif event.link is not None:
            yield self._requests.get(event.link)
        elif event.side == "server":
            yield _newest(event)


def _newest(message: Message) -> int | None:
    """Return the line number of the newest open request of the client when the server sends a message."""
    carried = message.http.request.carried if message.http and message.http.request else []
    known = [it.exchange for it in carried if it.exchange] or list(message.session.exchanges())
    waiting = [it for it in known if it.request.side == "client" and it.method != ENDLESS]
    return max((it.request.n for it in waiting), default=None)
