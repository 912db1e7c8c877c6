"""Standard output and error of a command if they are a terminal: the last barrier for what is written (A-14, A-20).

Commands make captured text `printable` where they print it. JSON and exports are exact, so they are not made printable,
and a place may forget it. So everything that is written to a terminal passes `safe`: by `print`, by `write`, or as
bytes. A pipe and a file get exactly what a command writes.
"""

import io
import re
import sys
from codecs import getincrementaldecoder
from typing import IO, Any, TextIO

from mcpspy.report.words import ARROWS, COLOURS, MARKS
from mcpspy.text import escaped

_OURS = tuple(f"\x1b[{code}m" for code in ("0", *sorted({*COLOURS.values()})))
_KEPT = re.compile(f"({'|'.join(map(re.escape, _OURS))}|\r\n)")
_SUSPECT = re.compile(f"[^\n\t -~\xa0-\xac\xae-\xff…─│▄{''.join((*ARROWS.values(), *MARKS.values()))}]")
"""Finds nothing in most texts: they have only letters of Latin-1 and signs of ours."""


def safe(text: str) -> str:
    """Return text with unsafe characters escaped. Our own colours (`report/words.py`) and line ends stay."""
    rest = text
    if "\x1b" in text:
        for colour in _OURS:
            rest = rest.replace(colour, " ")  # a blank, because what is around it must not join
    if not _SUSPECT.search(rest):
        return text
    return "".join(part if place % 2 else escaped(part) for place, part in enumerate(_KEPT.split(text)))


class TerminalText(io.TextIOWrapper):
    """A terminal as a text file."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream.buffer, stream.encoding, "backslashreplace", line_buffering=True)
        self.stream = stream
        """The terminal without the barrier."""
        self._bytes = TerminalBytes(self, stream.buffer)

    def write(self, text: str) -> int:
        """Write text, made safe."""
        super().write(safe(text))
        return len(text)

    def isatty(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Leave the terminal open: it belongs to `stream`."""

    @property
    def buffer(self) -> Any:
        """The same terminal as a binary file."""
        return self._bytes


class TerminalBytes(io.BufferedIOBase):
    """A terminal as a binary file that gets UTF-8; a write may end within a character."""

    def __init__(self, text: TerminalText, raw: IO[bytes]) -> None:
        self._text = text
        self._raw = raw
        self._decode = getincrementaldecoder("utf-8")("backslashreplace").decode

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Write bytes, made safe."""
        self._text.flush()
        self._raw.write(safe(self._decode(data)).encode())
        return len(data)

    def flush(self) -> None:
        """Flush what was written."""
        if not self._raw.closed:
            self._raw.flush()


def guard() -> None:
    """Put the barrier in front of standard output and standard error, each if it is a terminal."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, TerminalText) or not stream.isatty():
        return stream
    stream.flush()
    return TerminalText(stream)


def unguarded(stream: TextIO) -> TextIO:
    """Return a stream without the barrier, for a progress bar, which moves the cursor."""
    return stream.stream if isinstance(stream, TerminalText) else stream
