"""The framing of an event stream (WHATWG HTML, 9.2 Server-sent events).

A frame is one event block as received: all its lines, including the terminator of the last one. The blank line that
ends the block is dropped, and so are further blank lines between blocks, which have no meaning. Lines end in CR LF, LF
or CR, also mixed; a CR LF may be split across two chunks. A byte order mark, comments and unknown fields are part of
the block. A last block without its blank line is `cut`: clients discard it.

A block is complete at the first byte of its blank line's terminator, so a lone CR does not delay it.
"""

import re
from typing import NamedTuple

from mcpspy.wire.lines import Lines

_END = re.compile(rb"\r\n|\r|\n")
_RETRY = re.compile(rb"[0-9]{1,18}")
_BOM = b"\xef\xbb\xbf"


class Events(Lines):
    """Splits a byte stream into event blocks; triples, pieces and `between` are those of `Lines`."""

    __slots__ = ("_after_cr", "_bare")

    def __init__(self) -> None:
        super().__init__()
        self._bare = True  # the current line is empty so far
        self._after_cr = False  # if the next byte is a LF, it belongs to the line before

    def feed(self, chunk: bytes) -> list[tuple[bytes, bool, bool]]:
        """Accept the next bytes of the stream and return the frames and pieces that are complete."""
        frames: list[tuple[bytes, bool, bool]] = []
        if not chunk:
            return frames
        block = line = 0  # where the current block and line begin in the chunk
        if self._after_cr and chunk[0] == 0x0A:
            block = line = 1
            if not self.between:
                self._add(b"\n", frames)
        for end in _END.finditer(chunk, line):
            if self._bare and end.start() == line:
                if line > block:
                    self._add(chunk[block:line], frames)
                if not self.between:
                    frames.append((self._take(), False, False))
                block = end.end()
            line = end.end()
            self._bare = True
        if block < len(chunk):
            self._add(chunk[block:], frames)
        if line < len(chunk):
            self._bare = False
        self._after_cr = chunk[-1] == 0x0D
        return frames


class Event(NamedTuple):
    """The fields of one event block."""

    name: str
    """The event's type; `message` if the block has no `event` field."""
    data: bytes | None
    """The data lines joined with LF; None if there are none, in which case a client dispatches no event."""
    id: str | None
    """The new last event id, empty to reset it; None if the block has no valid `id` field."""
    retry: int | None
    """Milliseconds that a client must wait before it connects again."""
    comments: tuple[str, ...]


def parse_event(block: bytes) -> Event:
    """Parse the fields of one frame (WHATWG HTML, 9.2.6). Never raises; invalid UTF-8 in text is read as U+FFFD."""
    name, event_id, retry = "message", None, None
    data: list[bytes] = []
    comments: list[str] = []
    for line in _END.split(block.removeprefix(_BOM)):
        field, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if colon and not field:
            comments.append(_text(value))
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = _text(value) or "message"
        elif field == b"id" and b"\0" not in value:
            event_id = _text(value)
        elif field == b"retry" and _RETRY.fullmatch(value):
            retry = int(value)
    return Event(name, b"\n".join(data) if data else None, event_id, retry, tuple(comments))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
