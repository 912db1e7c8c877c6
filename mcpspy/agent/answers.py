"""What all answers share: captured values without secrets, addresses, limits of size, cursors.

Frames are scrubbed as a whole, as `mcpspy scrub` does, before anything is cut: half a token can no longer be
recognized. A value that was once named as a secret is replaced everywhere from then on, and in its whole frame: a frame
that names a new one is scrubbed again. The capture is not read in advance, so a secret that appears in an earlier frame
without its name is not recognized there. But text about a frame, and the answer to it, are scrubbed only after the
frame was read (`learn`).

Characters that hide or reorder text are escaped, so a text cannot break out of JSON or look different from what it is.
"""

import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.scan import TEXT_FRAME
from mcpspy.errors import UsageError
from mcpspy.json_values import Number, pointer, resolve
from mcpspy.reading.media import media_of
from mcpspy.secrets.redactor import Redactor
from mcpspy.sharing.scrub.lines import FrameScrub
from mcpspy.sharing.scrub.messages import MessageScrub
from mcpspy.sharing.scrub.scrub import may_change
from mcpspy.sharing.scrub.texts import ScrubOptions, Texts
from mcpspy.sharing.scrub.values import KnownValues
from mcpspy.text import printable
from mcpspy.timeline import Row
from mcpspy.wire.jsonrpc import Id, decode

LARGEST_FRAME = 1 << 20
"""The largest frame that is scrubbed, in bytes. Larger frames are not decoded either."""
_BEGINNING = 1 << 14  # bytes of a frame that is not a message, or that is too large
_LONGEST_SECRET = 4096  # bytes read beyond the cut, so that no secret is cut before it is recognized
_CUT_WORD = re.compile(r"[^\s\"'`,;{}()\[\]]+…")
_SHORTEST_CUT = 100  # characters: shorter texts are never cut, so theirs is an ellipsis of their own
_SIZES = ((4000, 200), (1500, 60), (500, 30), (200, 15), (80, 8), (30, 4), (12, 2))
_DEEPEST = 24  # maximum nesting of a value
_NAME = 200  # characters of a member name
_TOLD = 8  # cuts that are listed
_MEDIA = 200  # characters: longer base64 of an image, a sound or a document is replaced by what it is

Clip = dict[str, Any]
"""One cut in a value: its JSON Pointer, the length that is shown, and the whole length."""


class Scrubber:
    """Removes secrets and personal data from captured content, and remembers the values that it found."""

    def __init__(self) -> None:
        self._known = known = KnownValues()
        self._texts = Texts(known, lambda *_: None, None, ScrubOptions())
        self._messages = MessageScrub(self._texts, known, ())
        self._frames = FrameScrub(self._messages, self._texts)
        self._learned: WeakKeyDictionary[OpenCapture, set[int]] = WeakKeyDictionary()  # the lines already read
        # the last frame, scrubbed, and its value: the messages of a batch share one frame
        self._last: tuple[bytes, bytes, Any] = b"", b"", None

    def text(self, text: str, limit: int = 1000) -> str:
        """Return a scrubbed text of at most `limit` characters."""
        return safe(self._beginning(text, limit), limit)

    def excerpt(self, text: str, limit: int) -> str:
        """Return a scrubbed text that quotes texts which were cut before: a word that a cut ends is left out."""
        whole = _CUT_WORD.sub(lambda it: it[0] if it.end() < _SHORTEST_CUT else "…", text)
        return self.text(whole, limit)

    def json(self, value: Any, *, envelope: bool = False) -> str:
        """Return a scrubbed value as JSON. Raises ValueError, TypeError or RecursionError if that is not possible."""
        self._messages.forget()
        text = json.dumps(value)
        return self._twice(lambda: self._messages.json(text, envelope=envelope) or self._texts.text(text))

    def _twice(self, scrub: Callable[[], str]) -> str:
        """Return the result of a scrub; repeat it if it has learned a value, which may also stand before its name."""
        known = len(self._known)
        clean = scrub()
        return scrub() if len(self._known) > known else clean

    def _value(self, row: Row) -> tuple[bytes, Any]:
        """Return the frame of a row and its message, scrubbed together."""
        raw = row.raw.strip()
        if raw[:1] in (b"{", b"["):
            try:
                if raw[:1] == b"{" or raw != self._last[0]:
                    frame = raw.decode(errors="replace")
                    clean = self._twice(lambda: self._frames.frame(frame, "")).encode(errors="replace")
                    self._last = raw, clean, decode(clean)
                _, clean, value = self._last
                return clean, value[row.part] if raw[:1] == b"[" else value
            except (orjson.JSONDecodeError, IndexError):
                pass  # only a lenient parser accepts it
        try:
            clean = self.json(row.value, envelope=True).encode(errors="replace")
            return clean, decode(clean)
        except (ValueError, TypeError, RecursionError):
            text = self.text(row.raw.decode(errors="replace"), _BEGINNING)
            return text.encode(errors="replace"), text

    def learn(self, capture: OpenCapture, lines: Iterable[int]) -> None:
        """Read the frames on some lines, so that the values that they name as secrets are known from now on."""
        learned = self._learned.setdefault(capture, set())
        for n in lines:
            place = capture.index.row_of(n)
            if place is not None and n not in learned:
                learned.add(n)
                self.row(capture.messages(place)[0])

    def rows(self, capture: OpenCapture, place: int, most: int | None = 1) -> list[Row]:
        """Return the messages at a place, scrubbed, after the request that they answer was read."""
        known = capture.known(capture.index.rows[place])
        if known and known.request:
            self.learn(capture, (known.request,))
        return [self.row(row) for row in capture.messages(place)[:most]]

    def searched(self, capture: OpenCapture, place: int) -> list[Row]:
        """Return the messages at a place as a filter may see them: every text in them is scrubbed."""
        found = self.rows(capture, place, None)
        for row in found:
            row.method, row.name = self._whole(row.method), self._whole(row.name)
            row.id = row.id and Id(row.id.kind, self._whole(row.id.token) or "")
            row.session = row.session and self._texts.field("mcp-session-id", row.session)
        return found

    def keeps(self, capture: OpenCapture, n: int) -> bool:
        """Return whether the row on line `n`, and the request it answers, have nothing to scrub; never wrongly True."""
        known = capture.known(n)
        return all(self._keeps(capture, it) for it in (n, known.request if known else None) if it)

    def _keeps(self, capture: OpenCapture, n: int) -> bool:
        line = b"" if capture.index.in_pieces(n) else capture.index.line(n)
        return TEXT_FRAME.match(line) is not None and not may_change(self._known, line.decode(errors="replace"), line)

    def _whole(self, text: str | None) -> str | None:
        return text and self._twice(lambda: self._texts.text(text))

    def _beginning(self, text: str, limit: int) -> str:
        """Return the scrubbed start of a text, slightly longer than `limit`. Content near the cut is left out."""
        if len(text) <= limit + _LONGEST_SECRET:
            return self._twice(lambda: self._texts.text(text))
        clean = self._twice(lambda: self._texts.text(text[: limit + _LONGEST_SECRET]))
        return clean[: min(limit + 1, max(len(clean) - _LONGEST_SECRET, 0))]

    def argv(self, words: tuple[str, ...]) -> list[str]:
        """Return a scrubbed command line."""
        return [self.text(word, 300) for word in Redactor().argv(list(words))[:40]]

    def row(self, row: Row) -> Row:
        """Return the same row with its frame, its value and its text scrubbed."""
        whole = row.size <= LARGEST_FRAME and len(row.raw) >= row.size
        row.tail = b""
        if row.value is not None and whole:
            row.raw, row.value = self._value(row)
        else:
            row.value = None
            text = row.raw[: _BEGINNING + 2 * _LONGEST_SECRET].decode(errors="replace") if row.raw else row.text or ""
            row.raw = self._beginning(text, _BEGINNING).encode(errors="replace")
            row.text = self._texts.text(row.text) if row.text else row.text
        if row.http:
            row.http = {name: self._texts.text(it) if isinstance(it, str) else it for name, it in row.http.items()}
        return row


def safe(text: str, limit: int) -> str:
    """Return a text in which characters that hide or reorder text are escaped. Line breaks stay."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    clean = "\n".join(printable(line, limit) for line in text[: limit + 1].split("\n"))
    return clean if len(clean) <= limit else clean[: max(limit - 1, 0)] + "…"


def clipped(value: Any, room: int) -> tuple[Any, list[Clip]]:
    """Cut a value to about `room` bytes of JSON. Return it with the list of cuts."""
    for longest, items in _SIZES:
        cut = _Cut(longest, items, room)
        made = cut.value(value, ())
        if size_of(made) + size_of(cut.clips) <= room:
            return made, cut.clips
    clips = cut.clips if size_of(cut.clips) < room // 2 else []
    return _within(orjson.dumps(made, default=str).decode(), max(room - size_of(clips) - 100, 40)), clips


def _within(text: str, room: int) -> str:
    """Return the start of a text, at most `room` bytes as JSON."""
    limit = room
    while limit > 1 and size_of(safe(text, limit)) > room:
        limit = limit * 3 // 4
    return safe(text, limit)


class _Cut:
    """Cuts texts, arrays and objects to a size. Stops after as many values as there are bytes available."""

    def __init__(self, longest: int, items: int, most: int) -> None:
        self.clips: list[Clip] = []
        self._longest = longest
        self._items = items
        self._left = most

    def value(self, value: Any, path: tuple[str | int, ...]) -> Any:
        """Return the value at a path, cut."""
        self._left -= 1
        if isinstance(value, str):
            media = media_of(value) if len(value) > _MEDIA else None
            if media and media.types:
                self._clip(path, 0, len(value))
                return f"({media})"
            if len(value) > self._longest:
                self._clip(path, self._longest, len(value))
            return safe(value[: self._longest], 8 * self._longest) + ("…" if len(value) > self._longest else "")
        if not isinstance(value, dict | list):
            return plain(value)
        if len(path) >= _DEEPEST or self._left < 0:
            self._clip(path, 0, len(value))
            return "…"
        if len(value) > self._items:
            self._clip(path, self._items, len(value))
        if isinstance(value, dict):
            members = islice(value.items(), self._items)
            return {safe(name, _NAME): self.value(inner, (*path, name)) for name, inner in members}
        return [self.value(inner, (*path, place)) for place, inner in enumerate(value[: self._items])]

    def _clip(self, path: tuple[str | int, ...], shown: int, of: int) -> None:
        if len(self.clips) < _TOLD:
            self.clips.append({"pointer": safe(pointer(*path), 300), "shown": shown, "of": of})


def plain(value: Any) -> Any:
    """Return a number, boolean or null in a form that every JSON parser reads exactly."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return str(value) if abs(value) < 10**100 else "a number of many digits"
    return value


def rest(value: Any, where: str, offset: int, room: int) -> tuple[Any, int | None]:
    """Return the value at a JSON Pointer, a text or array from `offset` on, and the offset of the rest.

    Raises LookupError if there is no value.
    """
    found = resolve(value, where) if where else value
    if isinstance(found, str):
        length = max(room, 40)
        while length > 40:
            part = safe(found[offset : offset + length], 8 * length)
            if size_of(part) <= room:
                break
            length = length * 3 // 4
        part, end = safe(found[offset : offset + length], 8 * length), offset + length
        return part, end if end < len(found) else None
    if isinstance(found, list):
        made: list[Any] = []
        for place in range(offset, len(found)):
            left = room - size_of(made)
            if made and left < 200:
                return made, place
            made.append(clipped(found[place], max(left // 2, 200))[0])
            if size_of(made) > room and len(made) > 1:
                return made[:-1], place
        return made, None
    return clipped(found, room)[0], None


def size_of(value: Any) -> int:
    """Return the size of a value as compact JSON, in bytes."""
    return len(orjson.dumps(value, default=str))


Answer = dict[str, Any]

LARGEST = 8000
"""The largest answer, in bytes of JSON."""


def address(session: str, n: int) -> str:
    """Return the address of a frame, which never changes: `3d345f#17`."""
    return f"{session}#{n}"


def split_address(text: str) -> tuple[str, int]:
    """Split an address into capture and line number. Raises UsageError."""
    session, mark, number = text.strip().rpartition("#")
    if not mark or not number.isdecimal() or len(number) > 9:
        raise UsageError(f"{safe(text, 60)!r} is not an address; one looks like 3d345f#17, as read_timeline gives them")
    return session, int(number)


def facts(**known: Any) -> Answer:
    """Return the members of an answer, without None and empty values. A trailing underscore is removed from names."""
    return {name.rstrip("_"): it for name, it in known.items() if it is not None and it not in ("", [], {}, ())}


def milliseconds(nanoseconds: int | None) -> float | None:
    """Return a latency in milliseconds, with three digits after the decimal point."""
    return None if nanoseconds is None else round(nanoseconds / 1e6, 3)


def progress(capture: OpenCapture) -> Answer:
    """Return how much of a capture has been read. Empty if all of it."""
    if capture.complete or capture.index.live or capture.progress >= 1:
        return {}
    part = int(capture.progress * 100)
    return {"read": f"{part} % of the capture was read so far; ask again for the rest"}


def cursor_at(key: Iterable[object], place: int) -> str:
    """Return the cursor for the next page of an answer. `key` identifies the question."""
    return f"{place}-{_sum(key):08x}"


def place_of(text: str | None, key: Iterable[object]) -> int:
    """Return the place that a cursor encodes, or 0. Raises UsageError if it belongs to another question."""
    if not text:
        return 0
    place, _, mark = text.partition("-")
    if not place.isdecimal() or len(place) > 12 or mark != f"{_sum(key):08x}":
        raise UsageError(
            f"the cursor {safe(text, 40)!r} does not belong to this question; repeat the question without a cursor, or "
            "with the same arguments as before"
        )
    return int(place)


def fitting(found: Iterable[Any], room: int, most: int) -> Iterator[Any]:
    """Yield as many of the first elements as fit into the space left, but at least one."""
    for count, it in enumerate(found):
        room -= size_of(it) + 1
        if count >= most or (room < 0 and count):
            return
        yield it


def _sum(key: Iterable[object]) -> int:
    return zlib.crc32("\0".join(map(str, key)).encode(errors="replace"))
