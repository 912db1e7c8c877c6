"""Captured values as they go into an answer: without secrets and personal data, on the safe side of JSON, bounded.

The theory. Frames are scrubbed whole, as `mcpspy scrub` does it, before anything of them is cut: half a token has no
form that tells what it is. A value that was named a secret once is replaced wherever it comes later. It does not read
the whole capture first, so a secret that stands without its name before it stood with it is not known then; but what is
told about a frame, and what answers it, comes after it has been read (`learn`).

What can hide or turn text is escaped, so that it neither breaks out of JSON nor reads otherwise than it is.
"""

import json
import math
from collections.abc import Iterable
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from mcpspy.browse.timeline import OpenCapture
from mcpspy.json_values import Number, pointer, resolve
from mcpspy.secrets.redactor import Redactor
from mcpspy.sharing.scrub.frames import FrameScrub
from mcpspy.sharing.scrub.known_values import KnownValues
from mcpspy.sharing.scrub.messages import MessageScrub
from mcpspy.sharing.scrub.options import ScrubOptions
from mcpspy.sharing.scrub.texts import Texts
from mcpspy.text import printable
from mcpspy.timeline import Row
from mcpspy.wire.jsonrpc import decode

LARGEST = 1 << 20
"""Bytes of a frame that are scrubbed; what is larger is not decoded either."""
_BEGINNING = 1 << 14  # bytes of a frame that is no message, or too large
_LONGEST_SECRET = 4096  # bytes that are read beyond what is shown, so that no secret is cut before it is recognized
_SIZES = ((4000, 200), (1500, 60), (500, 30), (200, 15), (80, 8), (30, 4), (12, 2))
_DEEPEST = 24  # levels of a value
_NAME = 200  # characters of a member's name
_TOLD = 8  # clipped places that are named

Clip = dict[str, Any]
"""Where a value was cut: its JSON Pointer, how much of it is shown, and how much there is."""


class Scrubber:
    """Takes secrets and personal data out of what is captured; it remembers the values that it found."""

    def __init__(self) -> None:
        known = KnownValues()
        self._texts = Texts(known, lambda *_: None, None, ScrubOptions())
        self._messages = MessageScrub(self._texts, known, ())
        self._frames = FrameScrub(self._messages, self._texts)
        self._learned: WeakKeyDictionary[OpenCapture, set[int]] = WeakKeyDictionary()  # the lines that were read
        self._last: tuple[bytes, Any] = b"", None  # a frame and its value: the messages of a batch share one

    def text(self, text: str, limit: int = 1000) -> str:
        """A text of at most that many characters."""
        return safe(self._beginning(text, limit), limit)

    def json(self, value: Any, *, envelope: bool = False) -> str:
        """A value as JSON. Raises ValueError, TypeError or RecursionError for one that cannot be written so."""
        self._messages.forget()
        text = json.dumps(value)
        return self._messages.json(text, envelope=envelope) or self._texts.text(text)

    def _value(self, row: Row) -> Any:
        """The message that a row is, scrubbed with all of its frame."""
        raw = row.raw.strip()
        if raw[:1] in (b"{", b"["):
            try:
                if raw[:1] == b"{" or raw != self._last[0]:
                    clean = self._frames.frame(raw.decode(errors="replace"), "")
                    self._last = raw, decode(clean.encode(errors="replace"))
                return self._last[1][row.part] if raw[:1] == b"[" else self._last[1]
            except (orjson.JSONDecodeError, IndexError):
                pass  # what only a lenient parser takes
        try:
            return decode(self.json(row.value, envelope=True).encode(errors="replace"))
        except (ValueError, TypeError, RecursionError):
            return self.text(row.raw.decode(errors="replace"), _BEGINNING)

    def learn(self, capture: OpenCapture, lines: Iterable[int]) -> None:
        """Read the frames on some lines, so that the values that they name as secrets are known from now on."""
        learned = self._learned.setdefault(capture, set())
        for n in lines:
            place = capture.index.row_of(n)
            if place is not None and n not in learned:
                learned.add(n)
                self.row(capture.messages(place)[0])

    def rows(self, capture: OpenCapture, place: int, most: int | None = 1) -> list[Row]:
        """The messages at a place, scrubbed, after the request that they answer has been read."""
        known = capture.known(capture.index.rows[place])
        if known and known.request:
            self.learn(capture, (known.request,))
        return [self.row(row) for row in capture.messages(place)[:most]]

    def _beginning(self, text: str, limit: int) -> str:
        """A text without secrets, of at most a little more than so many characters; what it is cut in is not shown."""
        if len(text) <= limit + _LONGEST_SECRET:
            return self._texts.text(text)
        clean = self._texts.text(text[: limit + _LONGEST_SECRET])
        return clean[: min(limit + 1, max(len(clean) - _LONGEST_SECRET, 0))]

    def argv(self, words: tuple[str, ...]) -> list[str]:
        """A command line."""
        return [self.text(word, 300) for word in Redactor().argv(list(words))[:40]]

    def row(self, row: Row) -> Row:
        """The same row with its value, or its text, scrubbed."""
        whole = row.size <= LARGEST and len(row.raw) >= row.size
        if row.value is not None and whole:
            row.value = self._value(row)
        else:
            row.value = None
            text = row.raw[: _BEGINNING + 2 * _LONGEST_SECRET].decode(errors="replace") if row.raw else row.text or ""
            row.raw = self._beginning(text, _BEGINNING).encode(errors="replace")
            row.text = self._texts.text(row.text) if row.text else row.text
        if row.http:
            row.http = {name: self._texts.text(it) if isinstance(it, str) else it for name, it in row.http.items()}
        return row


def safe(text: str, limit: int) -> str:
    """A text with whatever hides or turns text escaped; its lines stay lines."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    clean = "\n".join(printable(line, limit) for line in text[: limit + 1].split("\n"))
    return clean if len(clean) <= limit else clean[: max(limit - 1, 0)] + "…"


def clipped(value: Any, room: int) -> tuple[Any, list[Clip]]:
    """A value that takes at most about so many bytes as JSON, and where it was cut."""
    for longest, items in _SIZES:
        cut = _Cut(longest, items, room)
        made = cut.value(value, ())
        if size_of(made) + size_of(cut.clips) <= room:
            return made, cut.clips
    clips = cut.clips if size_of(cut.clips) < room // 2 else []
    return _within(orjson.dumps(made, default=str).decode(), max(room - size_of(clips) - 100, 40)), clips


def _within(text: str, room: int) -> str:
    """The beginning of a text that takes at most so many bytes as JSON."""
    limit = room
    while limit > 1 and size_of(safe(text, limit)) > room:
        limit = limit * 3 // 4
    return safe(text, limit)


class _Cut:
    """Cuts texts, arrays and objects to a size; stops after as many values as there are bytes to fill."""

    def __init__(self, longest: int, items: int, most: int) -> None:
        self.clips: list[Clip] = []
        self._longest = longest
        self._items = items
        self._left = most

    def value(self, value: Any, path: tuple[str | int, ...]) -> Any:
        """A value at a path, cut."""
        self._left -= 1
        if isinstance(value, str):
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
    """A number, a truth value or nothing, as any JSON parser reads it."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return str(value) if abs(value) < 10**100 else "a number of many digits"
    return value


def rest(value: Any, where: str, offset: int, room: int) -> tuple[Any, int | None]:
    """The value at a JSON Pointer, of a text or an array from `offset` on; and the offset of what is left.

    Raises LookupError where there is no value.
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
    """The bytes of a value as compact JSON."""
    return len(orjson.dumps(value, default=str))
