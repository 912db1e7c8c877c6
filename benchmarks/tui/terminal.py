"""A program in a pseudo-terminal, observed from outside: what it writes, when, and how long after a key.

Textual redraws whole lines, so the words of a line arrive together if the escape sequences between them are removed.
This module does not know the positions of words on the screen.
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
"""Query -> answer, for background colour and cursor position: without an answer, programs wait for seconds."""
_KEPT = 1000  # characters kept of an incomplete line or escape sequence


class Terminal:
    """A running program. `started` is the clock in nanoseconds before its spawn."""

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
        """End the program, with its own key if it reacts."""
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
        """Send keys, and return the clock before that. Earlier output does not count as an answer."""
        self._rest = self._rest[self._rest.find("\x1b") :] if "\x1b" in self._rest else ""
        now = monotonic_ns()
        os.write(self._fd, keys.encode())
        return now

    def read(self, seconds: float) -> tuple[int, str]:
        """Return the clock at the next output, and its text, which is empty if there was no output within `seconds`."""
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
        """Read until the output fulfils the condition, and return the clock at that time."""
        deadline = monotonic_ns() + int(seconds * 1e9)
        while True:
            now, text = self.read(max(deadline - monotonic_ns(), 0) / 1e9)
            if text and condition(text):
                return now
            if now >= deadline:
                raise Broken(f"nothing of what was waited for within {seconds:.0f} s")

    def peak(self) -> float:
        """Return the peak memory of the program in MB."""
        return resident(self._process.pid, "VmHWM")
