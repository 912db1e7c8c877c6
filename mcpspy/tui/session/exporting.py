"""Exports, and pages to share, go on in a thread while keys are handled, and a notification says what came of them."""

from functools import partial

from textual.app import App
from textual.worker import get_current_worker

from mcpspy.errors import McpspyError
from mcpspy.text import printable
from mcpspy.tui.model.exports import ExportRequest, written

_SHOWN = 300  # characters of a path or a reason


class _CancelledError(Exception):
    """The application is about to end."""


def begin(app: App[object], request: ExportRequest) -> None:
    """Write an export; it goes on when its screen is left, and leaves nothing when the application ends first."""
    app.run_worker(partial(_write, app, request), thread=True, exit_on_error=False, group="exports")


def _write(app: App[object], request: ExportRequest) -> None:
    worker = get_current_worker()

    def read(_: int) -> None:
        if worker.is_cancelled:
            raise _CancelledError

    try:
        told = written(request, read)
    except _CancelledError:
        return
    except McpspyError as error:
        _tell(app, f"not exported: {error}", failed=True)
    except Exception as error:  # a bug of ours ends the export and nothing else
        _tell(app, f"not exported: {type(error).__name__}: {error}", failed=True)
    else:
        _tell(app, told, failed=False)


def _tell(app: App[object], words: str, *, failed: bool) -> None:
    app.notify(printable(words, _SHOWN), severity="error" if failed else "information", markup=False, timeout=10)
