"""A progress bar on stderr for work that takes a while: only on a terminal, and not in CI.

`rich` is imported when the bar appears, which is after half a second of work.
"""

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mcpspy.capture.reader import Capture
from mcpspy.cli.terminal import safe, unguarded
from mcpspy.errors import CaptureError

if TYPE_CHECKING:
    from rich.progress import Progress

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
    """Return the size of a capture in bytes; 0 if it cannot be read, because its reader reports that."""
    try:
        return sum(map(os.path.getsize, Capture(path).paths))
    except (CaptureError, OSError):
        return 0


def _is_wanted() -> bool:
    on_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return on_terminal and not os.environ.get("CI")
