"""The timeline of a session, row by row, single messages with their request or response, and waiting for the next row.

When an agent waits for the next error, or the next row that matches a filter, in a session that is being recorded, only
what happens from now on counts: new rows, and requests that change, for example because their response arrived.
`NextMatch` looks one step at a time and has no clock. Its caller waits between two looks.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mcpspy.agent.answers import (
    LARGEST,
    Answer,
    Scrubber,
    address,
    clipped,
    cursor_at,
    facts,
    milliseconds,
    place_of,
    progress,
    rest,
    safe,
    size_of,
    split_address,
)
from mcpspy.agent.answers import address as at_line
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.problems import told_findings
from mcpspy.browse.library import ListedCapture
from mcpspy.browse.search import verdict
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import FilterError, UsageError
from mcpspy.filters import KEYS, Filter, parse
from mcpspy.json_values import nearest, resolve
from mcpspy.timeline import Row, wall_time

_MOST, _ROWS = 200, 50  # rows of an answer: the maximum, and the default
_PREVIEWED = 1 << 16  # the largest frame that is decoded for a preview, in bytes
_PREVIEW = 160  # characters
_LARGE = 4096  # the smallest frame whose size is shown, in bytes
_LEAST = 0.2  # seconds spent on rows even if the time is already over
_MANY = 50  # messages of a batch that are shown
_TEXTS = frozenset("text method name id session".split())
"""The keys of a filter that look at captured text."""
_ALONE = frozenset("text from time".split())
"""The keys that do not need the fold."""
_NAMED = 10  # members listed if a pointer finds no value


def wanted_filter(text: str, started: str) -> Filter:
    """Parse a filter. Raises UsageError, with the column."""
    try:
        return parse(text, started)
    except FilterError as error:
        raise UsageError(f"the filter is not understood: {safe(str(error), 300)}") from error


def read_timeline(
    captures: AgentCaptures,
    *,
    session: str = "",
    filter: str = "",  # noqa: A002 (what an agent calls it)
    newest_first: bool = False,
    limit: int = _ROWS,
    cursor: str = "",
) -> Answer:
    """Return one page of the rows that match a filter, from one session, or from several one after the other."""
    entries = captures.several(session)
    key = ("read_timeline", filter, newest_first)
    first, place = _begin(captures, entries, cursor, key)
    page = _Page(captures, min(limit, _MOST), newest_first=newest_first)
    answer: Answer = {}
    for entry in entries[first:]:
        wanted = wanted_filter(filter, entry.header.started)
        capture, name = captures.open(entry), captures.name(entry)
        shown = len(page.rows)
        place = page.read(capture, name, wanted, place)
        server = captures.server(entry)
        if len(entries) == 1:
            answer |= {"session": name, "server": server} | progress(capture)
        elif len(page.rows) > shown:
            answer.setdefault("servers", {})[name] = server
            page.room -= size_of(server) + 12
        if not capture.complete and not capture.index.live and newest_first:
            answer["note"] = "the capture is still being read; its newest rows lack a status and findings"
        if place < len(capture.index.rows) or (progress(capture) and not newest_first):
            answer["next"] = cursor_at((*key, name), place)
            break
        place = 0
    if not page.rows:
        answer["note"] = _nothing(page.seen, len(entries), wanted.words(), more="next" in answer)
    more = {"next": answer.pop("next")} if "next" in answer else {}
    return answer | {"rows": page.rows} | more


def _begin(
    captures: AgentCaptures, entries: list[ListedCapture], cursor: str, key: tuple[object, ...]
) -> tuple[int, int]:
    """Return which of several sessions a cursor continues, and the place in it."""
    for number, entry in enumerate(entries[:-1]):
        with suppress(UsageError):
            return number, place_of(cursor, (*key, captures.name(entry)))
    return len(entries) - 1, place_of(cursor, (*key, captures.name(entries[-1])))


def _nothing(seen: int, sessions: int, texts: tuple[str, ...], *, more: bool) -> str:
    """Return the notice for an answer without rows."""
    if more:
        return f"nothing in {seen} rows so far; go on with `next`"
    where = "the session" if sessions == 1 else f"{sessions} sessions"
    words = ", ".join(repr(safe(it, 40)) for it in texts[:3])
    told = f"; {words} was searched as text (a key takes a colon: status:failed)" if words else ""
    return f"none of the {seen} rows of {where} matches{told}"


class _Page:
    """The rows of an answer, and the space and time left for more."""

    def __init__(self, captures: AgentCaptures, limit: int, *, newest_first: bool) -> None:
        self.rows: list[Answer] = []
        self.room = LARGEST - 500
        self.seen = 0
        """The number of rows that were examined."""
        self._captures = captures
        self._limit = limit
        self._newest_first = newest_first
        self._deadline = 0.0

    def read(self, capture: OpenCapture, name: str, wanted: Filter, place: int) -> int:
        """Add matching rows of a capture, starting at a place. Return the place after the last examined row."""
        self._deadline = self._deadline or max(self._captures.deadline, time.perf_counter() + _LEAST)
        rows = capture.index.rows
        while place < len(rows) and len(self.rows) < self._limit and time.perf_counter() < self._deadline:
            at = len(rows) - 1 - place if self._newest_first else place
            fits = matches(self._captures.scrubber, capture, wanted, at)
            if fits is None and not self._newest_first:
                break  # the fold must come first
            if fits:
                told = told_row(self._captures.scrubber, capture, name, at)
                self.room -= size_of(told) + 1
                if self.room < 0 and self.rows:
                    break
                self.rows.append(told)
            self.seen += 1
            place += 1
        return place


def matches(scrubber: Scrubber, capture: OpenCapture, wanted: Filter, place: int) -> bool | None:
    """Return whether the scrubbed row at a place matches a filter; None if the fold must come first.

    Texts are compared with what answers may show, and only with that. If the text of the capture had any influence, an
    agent could guess a secret character by character, also with a negated term.
    """
    keys, n = wanted.keys, capture.index.rows[place]
    if not keys & _TEXTS:
        return verdict(capture, wanted, keys, place)
    folded = capture.known(n)
    if folded is None and not keys <= _ALONE:
        return None
    if folded and folded.kind != "batch":
        found = wanted.decide(folded, frozenset(KEYS) - _TEXTS)
        if found is not None:
            return found
    if "session" not in keys and scrubber.keeps(capture, n):
        return verdict(capture, wanted, keys, place)
    return any(wanted(row) for row in scrubber.searched(capture, place))


def told_row(scrubber: Scrubber, capture: OpenCapture, name: str, place: int) -> Answer:
    """Return one row as a few facts."""
    n = capture.index.rows[place]
    line, known = capture.line(place), capture.known(n)
    small = line.size <= _PREVIEWED
    shown = scrubber.rows(capture, place)[0] if small and line.kind != "batch" else None
    said = (shown.preview or shown.text or "") if shown else (line.text or "") if line.kind == "batch" else ""
    why = ""
    if line.kind == "invalid" and shown and shown.value is None:
        said, why = shown.raw.decode(errors="replace"), shown.text or ""
    partner = capture.partner(place)
    return facts(
        at=at_line(name, n),
        s=round(line.t / 1e9, 3),
        from_=line.sender,
        kind=line.kind,
        what=scrubber.text(" ".join(filter(None, (line.method, line.name))), 120),
        preview=scrubber.text(said, _PREVIEW),
        why=scrubber.text(why, _PREVIEW),
        **outcome(known),
        ms=milliseconds(line.latency) if line.kind != "request" else None,
        other=at_line(name, capture.index.rows[partner]) if partner is not None else None,
        bytes=line.size if line.size > _LARGE else None,
        findings=sorted({it.rule for it in known.findings}) if known else None,
        gate=scrubber.text(str(line.act or ""), 100),
    )


def outcome(row: Row | None) -> Answer:
    """Return what came of the request of a row, whether that is a failure, and if not, why it is normal."""
    return facts(outcome=row.outcome, failed=row.failed or None, expected=row.expected) if row else {}


def place_at(capture: OpenCapture, name: str, n: int) -> int:
    """Return the place of the row on line `n`. Raises UsageError, with the nearest row."""
    place = capture.index.row_of(n)
    if place is not None:
        return place
    if not capture.index.rows:
        raise UsageError(f"the session {name} has no frames yet")
    near = min(capture.index.rows, key=lambda it: abs(it - n))
    raise UsageError(f"there is no frame {name}#{n}; the nearest is {name}#{near}")


def read_message(
    captures: AgentCaptures, *, address: str, pointer: str = "", offset: int = 0, alone: bool = False
) -> Answer:
    """Return one message with its request or response, or one value of it from an offset on."""
    session, n = split_address(address)
    entry = captures.find(session)
    capture, name = captures.open(entry), captures.name(entry)
    place = place_at(capture, name, n)
    if pointer or offset:
        return _value(captures.scrubber, capture, name, place, pointer, offset)
    places = [place]
    partner = capture.partner(place)
    if partner is not None and not alone:
        places = sorted((place, partner), key=lambda it: capture.index.rows[it])
    answer: Answer = {"session": name, "server": captures.server(entry)} | progress(capture)
    told = [it for at in places for it in _messages(captures.scrubber, capture, name, at)]
    rows = [row for row, _ in told]
    lines = dict.fromkeys(row.n for row in rows)
    found = told_findings(captures.scrubber, capture, name, [it for n in lines for it in capture.findings.of(n)], 2000)
    room = LARGEST - size_of(answer) - size_of(found) - 300
    answer["messages"] = []
    for left, (row, fields) in zip(range(len(told), 0, -1), told, strict=True):
        own = facts(**fields)
        value = payload(row)
        if value is not None:
            part, clips = clipped(value, max(room // left - size_of(own) - 60, 200))
            above = f"/{row.part}" if _is_batch(row) else ""
            own |= facts(content=part, clipped=[it | {"pointer": above + it["pointer"]} for it in clips])
        room -= size_of(own) + 1
        if room < 0 and answer["messages"]:
            break
        answer["messages"].append(own)
    count = len(answer["messages"])
    if count < len(told) or count == _MANY:
        answer["note"] = f"the first {count} messages of a batch; pointer /{count} reads the next one"
    return answer | facts(findings=found)


def _messages(scrubber: Scrubber, capture: OpenCapture, name: str, place: int) -> Iterator[tuple[Row, Answer]]:
    """Yield the rows at a place, scrubbed, each with its facts other than the content."""
    for row in scrubber.rows(capture, place, _MANY):
        what = " ".join(filter(None, (row.method, row.name)))
        yield (
            row,
            {
                "at": at_line(name, row.n),
                "part": row.part or None,
                "time": wall_time(capture.header, row.t),
                "from_": row.sender,
                "kind": row.kind,
                "what": scrubber.text(what, 200),
                "id": scrubber.text(str(row.id), 100) if row.id else None,
                "revision": row.revision,
                **outcome(row),
                "ms": milliseconds(row.latency),
                "bytes": row.size,
                "http": clipped(row.http, 400)[0] if row.http else None,
                "gate": scrubber.text(str(row.act), 200) if row.act else None,
                "note": f"only its first {len(row.raw)} bytes can be read here"
                if row.size > len(row.raw) > 0 and row.value is None
                else None,
                "why": scrubber.text(row.text, 300) if row.kind == "invalid" and row.text else None,
            },
        )


def payload(row: Row) -> Any:
    """Return the content of a message: params, result or error. For a frame that is not a message, its text."""
    if row.value is None:
        return row.raw.decode(errors="replace") if row.raw else row.text
    if isinstance(row.value, dict) and row.kind != "invalid":
        return {key: it for key, it in row.value.items() if key not in ("jsonrpc", "id", "method")} or None
    return row.value


def _is_batch(row: Row) -> bool:
    return row.value is not None and row.raw.lstrip()[:1] == b"["


def _near(value: Any, pointer: str) -> str:
    """Return, for a pointer without a value, pointers to the members of the last value that it reaches."""
    way = nearest(value, pointer)
    value = resolve(value, way)
    names = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return ", ".join(safe(f"{way}/{it}", 120) for it in names[:_NAMED]) or f"only {safe(way, 120) or 'the whole'}"


def _value(scrubber: Scrubber, capture: OpenCapture, name: str, place: int, pointer: str, offset: int) -> Answer:
    """Return one value of a message, or the part of it that starts at an offset."""
    where = at_line(name, capture.index.rows[place])
    pointer = "/" + pointer if pointer and not pointer.startswith("/") else pointer
    rows = scrubber.rows(capture, place, None)
    whole = [row.value for row in rows] if _is_batch(rows[0]) else payload(rows[0])
    try:
        value, more = rest(whole, pointer, offset, LARGEST - 800)
    except LookupError:
        raise UsageError(
            f"there is nothing at {safe(pointer, 100)!r} in {where}; there is {_near(whole, pointer)}"
        ) from None
    return {"at": where, "value": value} | facts(pointer=safe(pointer, 300), offset=offset or None, next_offset=more)


ERRORS = "status:failed or severity:error or kind:invalid"
"""The filter for errors, used if no filter is given."""
STEP = 0.2
"""Seconds between two looks."""
_NEAR = 64  # maximum distance between the place of a row and its line number
LONGEST = 300
"""The longest time-out that a client may request, in seconds."""


class NextMatch:
    """Looks for new matches in one live session, or in all live sessions."""

    def __init__(self, captures: AgentCaptures, session: str = "", filter: str = "", after: str = "") -> None:  # noqa: A002
        """Watch what follows the frame at the address `after`, or without it, what is recorded from now on.

        Raises UsageError if a session is not live, unless there may be something after `after`.
        """
        self._captures = captures
        self._text = filter or ERRORS
        wanted_filter(self._text, "2026-01-01T00:00:00Z")  # fail before waiting
        self._session = ""
        # by path: number of rows, last line, and number of revised rows at the last look
        self._before: dict[str, tuple[int, int, int]] = {}
        line = 0
        if after:
            session, line = split_address(after)
        if session:
            entry = captures.find(session)
            self._session = captures.name(entry)
            if not (entry.live or after):
                raise UsageError(
                    f"the session {self._session} has ended, so nothing new will come; find_problems and read_timeline "
                    "show what is in it"
                )
        else:
            captures.look()
        for entry in captures.entries:
            if (entry.live or after) and self._watched(captures.name(entry)):
                capture = captures.open(entry)
                rows = capture.index.rows
                seen = bisect_right(rows, line) if after else len(rows)
                self._before[entry.path] = seen, line if after else max(rows, default=0), len(capture.revised)
        self.seen = 0
        """The number of new rows that were examined."""

    def _watched(self, name: str) -> bool:
        return not self._session or name == self._session

    @property
    def sessions(self) -> int:
        """The number of watched sessions."""
        return len(self._before)

    def look(self) -> Answer | None:
        """Return the next new row that matches, or the end of the session, or None if there is neither yet."""
        captures = self._captures
        captures.look()
        ended = self._session
        for entry in captures.entries:
            name = captures.name(entry)
            if not self._watched(name) or not (entry.live or entry.path in self._before):
                continue
            ended = ""
            capture = captures.open(entry, STEP)
            hit = self._hit(entry.path, capture)
            if hit is not None:
                row = told_row(captures.scrubber, capture, name, hit)
                return {"found": True, "session": name, "server": captures.server(entry)} | {
                    "row": row,
                    "hint": f"read_message {row['at']}",
                }
            if self._session and not entry.live and capture.complete:
                ended = name
        return {"found": False, "session": ended, "note": "the session has ended"} if ended else None

    def _hit(self, path: str, capture: OpenCapture) -> int | None:
        wanted = wanted_filter(self._text, capture.header.started)
        scrubber = self._captures.scrubber
        rows, last, revised = self._before.get(path, (0, 0, 0))
        found = None
        for n in sorted(n for n in capture.index.rows[max(rows - _NEAR, 0) :] if n > last):
            at = capture.index.row_of(n)
            fits = at is not None and matches(scrubber, capture, wanted, at)
            if fits is None:
                break  # the fold must come first
            self.seen += 1
            rows, last = rows + 1, n
            if fits:
                found = at
                break
        while revised < len(capture.revised) and found is None:
            at = capture.index.row_of(capture.revised[revised])
            found = at if at is not None and matches(scrubber, capture, wanted, at) else None
            revised += 1
        self._before[path] = rows, last, revised
        partner = capture.partner(found) if found is not None else None
        if found is None or partner is None or partner < found:
            return found
        # the response has the details of the error
        return partner if matches(scrubber, capture, wanted, partner) else found

    def nothing(self, seconds: float) -> Answer:
        """Return the answer after a time-out."""
        what = f"in {self._session}" if self._session else f"in {self.sessions} live sessions"
        note = f"nothing matched {safe(self._text, 200)!r} {what} within {seconds:g} s; {self.seen} new rows were seen"
        return {"found": False, "note": note} | self._after()

    def _after(self) -> Answer:
        """Return the address to continue from in the next call, if only one session is watched."""
        if len(self._before) != 1:
            return {}
        [(path, (_, last, _))] = self._before.items()
        entry = next((it for it in self._captures.entries if it.path == path), None)
        return {"after": address(self._captures.name(entry), last)} if entry and last else {}
