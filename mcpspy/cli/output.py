"""What all commands need for their output: streams, notices on stderr, a progress bar, colours, reports in files.

Commands make captured text `printable` where they print it. JSON and exports are exact, so they are not made printable,
and a place may forget it. So everything that is written to a terminal passes `safe`: by `print`, by `write`, or as
bytes (A-14, A-20). A pipe and a file get exactly what a command writes.

A progress bar on stderr is for work that takes a while: only on a terminal that may be drawn on, and not in CI.
`rich` is imported when the bar appears, which is after half a second of work.
"""

import io
import os
import re
import shutil
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TextIO

from mcpspy.errors import CaptureError, UsageError
from mcpspy.output_file import OutputBytes, WriteError
from mcpspy.report.words import ARROWS, COLOURS, MARKS
from mcpspy.text import escaped, printable, printable_whole

if TYPE_CHECKING:
    from rich.progress import Progress

    from mcpspy.report.waivers import Waived


def prepare_streams() -> None:
    """Let stdout and stderr accept any text, and mark the errors of writing them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, _marked(stream))


def _marked(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw = getattr(stream.buffer, "raw", stream.buffer)  # without a buffer if the user wants that (python -u)
    if type(raw) is not io.FileIO:  # the console of Windows
        stream.reconfigure(errors="backslashreplace")
        return stream
    stream.flush()
    ours = OutputBytes(raw.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        ours if raw is stream.buffer else io.BufferedWriter(ours),  # as Python itself does it
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def say(sentence: str) -> None:
    """Print one line to stderr, after the name of the program."""
    explain(f"mcpspy: {sentence}")


def explain(*lines: str) -> None:
    """Print lines to stderr that belong to a notice; if it is closed, nothing."""
    if sys.stderr is None:  # `print` would write to stdout
        return
    print(*(printable(line, 2000) for line in lines), sep="\n", file=sys.stderr, flush=True)


def explain_whole(lines: Iterable[str]) -> None:
    """Print lines to stderr in full, however long they are: nothing may be done that was not shown."""
    for line in lines:
        print(printable_whole(line), file=sys.stderr, flush=True)


def answered_yes(question: str) -> bool:
    """Ask a question on stderr, and return whether the next line of stdin, a terminal or not, is y."""
    print(question, end=" " if is_typed() else "\n", file=sys.stderr, flush=True)
    return sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")


def is_typed() -> bool:
    """Return whether stdin is a terminal; it may also be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirmed(question: str) -> bool:
    """Ask a question that is answered with y or n, and return whether the answer is y. The end of the input is no."""
    try:
        return input(f"{printable(question, 2000)} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def has_colours() -> bool:
    """Return whether stdout is a terminal with escape sequences, and the user wants colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not _is_dumb()


def stays_plain() -> str:
    """Return why the terminal must not be drawn on; an empty text if it may.

    It cannot move its cursor, or a screen reader reads it: ACCESSIBLE, which other programs read too.
    """
    if _is_dumb():
        return f"TERM is {os.environ['TERM']}"
    return "ACCESSIBLE is set" if os.environ.get("ACCESSIBLE") else ""


def _is_dumb() -> bool:
    return os.environ.get("TERM") in ("dumb", "unknown")


def line_width(elsewhere: int) -> int:
    """Return the width of the terminal on stdout in columns; `elsewhere` if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else elsewhere


def path_text(path: str) -> str:
    """Return a path for display: safe on a terminal, and with `~` for the home directory, which has the user name."""
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return printable(path, 4096)


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


PATIENCE = 0.5
"""Seconds; shorter work needs no bar."""


class ProgressBar:
    """A context manager that shows the progress towards `total`. The bar disappears at its end."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._wanted = _is_wanted()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._wanted = False
        if self._bar:
            self._bar.stop()

    def advance(self, number: int) -> None:
        """Add `number` to the progress."""
        if not self._wanted:
            return
        self._done += number
        if self._bar:
            self._bar.advance(self._bar.task_ids[0], number)
        elif time.monotonic() - self._begun >= PATIENCE:
            self._bar = self._shown()

    def _shown(self) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        # The bar must not redirect stdout, which is for results.
        console = Console(file=unguarded(sys.stderr))
        bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
        bar.add_task(self._title, total=self._total, completed=self._done)
        bar.start()
        notices: Any = _Notices(sys.stderr)
        sys.stderr = notices  # until the bar ends
        return bar


class _Notices:
    """Standard error while there is a bar: rich prints above the bar what is written to it, so that is made safe."""

    def __init__(self, proxy: Any) -> None:
        self._proxy = proxy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy, name)

    def write(self, text: str) -> int:
        """Write text, made safe."""
        self._proxy.write(safe(text))
        return len(text)


def size_of(path: str) -> int:
    """Return how many bytes of a capture are read; 0 if it cannot be read, because its reader reports that."""
    from mcpspy.capture.reader import Capture  # 'mcpspy --help' does not need it

    try:
        return Capture(path).size
    except CaptureError:
        return 0


def _is_wanted() -> bool:
    on_terminal = sys.stderr is not None and sys.stderr.isatty() and not stays_plain()
    return on_terminal and not os.environ.get("CI")


def refuse_to_overwrite(option: str, output: str, read: Sequence[str]) -> None:
    """Raise UsageError if the output would overwrite a file that is read."""
    for path in read:
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
            raise UsageError(f"{option} {output} is the file {path} that is read here; give another one")


def write_report(chunks: Iterable[str], output: str | None) -> None:
    """Print a report, or write it to the file `output`."""
    if output is None:
        sys.stdout.writelines(chunks)
        return
    try:
        raw = OutputBytes(output, "wb")
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
    try:
        with io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", newline="\n") as file:
            file.writelines(chunks)
    except WriteError as error:
        if os.path.isfile(output):  # an incomplete report could be taken for a complete one
            os.unlink(output)
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


def say_unused(waived: "Waived") -> None:
    """Name the waivers that have expired, and those that nothing matches."""
    for waiver in waived.expired:
        say(f"the waiver has expired on {waiver.expires}: {waiver}")
    for waiver in waived.stale:
        say(f"the waiver is stale, no finding matches it: {waiver}")
