"""A program in a pseudo-terminal, watched from outside: what it writes, when, and how long after a key.

Textual writes the whole of what it draws anew, line by line, so words of a line come in one piece once the escape
sequences between them are gone. Nothing here knows where on the screen they stand.
"""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns
from typing import Self

from benchmarks.relay.processes import CHUNK, Broken
from benchmarks.relay.usage import resident

COLUMNS, LINES = 200, 60
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*([@-~])|[\]PX^_].*?(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])", re.DOTALL)
_QUESTIONS = {b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"\x1b[6n": b"\x1b[1;1R"}
"""The colour of the background and the position of the cursor: programs wait for seconds until they are answered."""
_KEPT = 1000  # characters of a line, or of an escape sequence, that may still go on


class Terminal:
    """A running program; `started` is the clock in nanoseconds before its spawn."""

    def __init__(self, argv: list[str], home: str) -> None:
        self._fd, program = os.openpty()
        fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environ = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.started = monotonic_ns()
        self._process = subprocess.Popen(
            argv, stdin=program, stdout=program, stderr=program, env=environ, start_new_session=True
        )
        os.close(program)
        self._rest = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the program, by its own key if it listens."""
        with suppress(OSError):
            self.press("q")
        try:
            with suppress(Broken):
                self.until(lambda _: False, 5)
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._fd)

    def press(self, keys: str) -> int:
        """Send keys; returns the clock before that. What was written earlier is no answer."""
        self._rest = self._rest[self._rest.find("\x1b") :] if "\x1b" in self._rest else ""
        now = monotonic_ns()
        os.write(self._fd, keys.encode())
        return now

    def read(self, seconds: float) -> tuple[int, str]:
        """The clock when something was written, and the text of it; the text is empty if nothing was in that time."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return monotonic_ns(), ""
        try:
            chunk = os.read(self._fd, CHUNK)
        except OSError:
            raise Broken("the TUI ended") from None
        now = monotonic_ns()
        for question, answer in _QUESTIONS.items():
            if question in chunk:
                os.write(self._fd, answer)
        text = _ESCAPE.sub(lambda match: "\n" if match[1] == "H" else "", self._rest + chunk.decode(errors="replace"))
        self._rest = text.rpartition("\n")[2][-_KEPT:]
        return now, text

    def until(self, condition: Callable[[str], object], seconds: float) -> int:
        """Read until the condition holds of what is written; returns the clock then."""
        deadline = monotonic_ns() + int(seconds * 1e9)
        while True:
            now, text = self.read(max(deadline - monotonic_ns(), 0) / 1e9)
            if text and condition(text):
                return now
            if now >= deadline:
                raise Broken(f"nothing of what was waited for within {seconds:.0f} s")

    def peak(self) -> float:
        """The most memory that the program has had, in MB."""
        return resident(self._process.pid, "VmHWM")
