"""Exports and pages to share are written in a thread while keys are handled; a notification shows the result."""

from functools import partial

from textual.app import App
from textual.worker import get_current_worker

from mcpspy.errors import McpspyError
from mcpspy.text import printable
from mcpspy.tui.model.exports import ExportRequest, written

_SHOWN = 300  # maximum characters of a message


class _CancelledError(Exception):
    """Raised to stop an export when the application exits."""


def begin(app: App[object], request: ExportRequest) -> None:
    """Write an export in a thread, which survives its screen; if the application exits first, the file is removed."""
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
    except Exception as error:  # a bug of ours must stop only the export
        _tell(app, f"not exported: {type(error).__name__}: {error}", failed=True)
    else:
        _tell(app, told, failed=False)


def _tell(app: App[object], words: str, *, failed: bool) -> None:
    app.notify(printable(words, _SHOWN), severity="error" if failed else "information", markup=False, timeout=10)
