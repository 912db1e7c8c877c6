"""The terminal that the application runs in, which may vanish at any time: its window closed, its connection lost.

Textual's driver knows nothing of that. It would go on reading from such a terminal, as fast as it can; the first text
that cannot be written would end its output and, some screens later, hold up the whole application. So nothing fails
that is written here, and the application ends, in order, where there can be no more keys, and on a signal.
"""

import asyncio
import os
import signal
import sys
from codecs import getincrementaldecoder
from contextlib import suppress
from select import select
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from mcpspy.tui.textual_internals import end_application, key_parser, write_to

if sys.platform == "win32":
    raise ImportError("mcpspy.tui.terminal needs POSIX; textual has a driver for Windows")

_ESCAPE = 0.1  # seconds until an escape that nothing follows is a key
_READ = 4096  # bytes


class Terminal(LinuxDriver):
    """Textual's driver, for a terminal that may vanish."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        write_to(self, _Output())

    def start_application_mode(self) -> None:
        """Take the terminal, and see to it that a signal gives it back."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        for number in (signal.SIGHUP, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._end)

    def run_input_thread(self) -> None:
        """Hand keys to the application until there can be no more; bytes that are no text are replaced."""
        parser = key_parser(self)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        while not self.exit_event.is_set():
            if select([self.fileno], [], [], _ESCAPE)[0]:
                keys = self._read()
                if not keys:
                    self._end()
                    return
                for message in parser.feed(decode(keys)):
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _READ)
        except OSError:
            return b""

    def _end(self) -> None:
        end_application(self)


class _Output:
    """Standard error, which a terminal without a reader refuses."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            print(end=text, file=sys.__stderr__)

    def flush(self) -> None:
        with suppress(OSError):
            print(end="", file=sys.__stderr__, flush=True)
