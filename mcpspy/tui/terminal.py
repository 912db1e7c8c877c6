"""The terminal that the application runs in. It may vanish at any time: its window is closed, or its connection lost.

Textual's driver does not handle this. It would continue to read from such a terminal as fast as it can. The first text
that cannot be written would end its output thread and, some screens later, block the whole application. So writing
never fails here, and the application exits regularly at the end of the input, and on a signal.
"""

import asyncio
import os
import signal
import sys
from codecs import getincrementaldecoder
from select import select
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from mcpspy.tui.textual_internals import end_application, key_parser, write_to

if sys.platform == "win32":
    raise ImportError("mcpspy.tui.terminal needs POSIX; textual has a driver for Windows")

_ESCAPE = 0.1  # seconds after which an escape character alone is the escape key
_READ = 4096  # bytes


class Terminal(LinuxDriver):
    """Textual's driver, for a terminal that may vanish."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        write_to(self, _Output())

    def start_application_mode(self) -> None:
        """Take over the terminal, and make sure that it is restored on a signal."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        for number in (signal.SIGHUP, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._end)

    def run_input_thread(self) -> None:
        """Pass keys to the application until the input ends; bytes that are not UTF-8 are replaced."""
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
    """Standard error. After a write error, which a terminal that has vanished causes, it discards everything.

    Otherwise the interpreter would write the buffered text again at exit, and end with status 120.
    """

    def write(self, text: str) -> None:
        self._print(text)

    def flush(self) -> None:
        self._print(flush=True)

    def _print(self, text: str = "", *, flush: bool = False) -> None:
        try:
            print(end=text, file=sys.__stderr__, flush=flush)
        except BlockingIOError:
            pass  # the terminal is there, but takes nothing now
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            os.close(null)
