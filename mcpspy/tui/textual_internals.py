"""Every private name of textual that mcpspy needs, each with the reason; no other module uses one.

Private names may change with any release, so `pyproject.toml` bounds textual to the minor version that was tested.
"""

from typing import Any, Protocol

from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.filter import LineFilter
from textual.geometry import Size
from textual.messages import ExitApp
from textual.scroll_view import ScrollView


class Output(Protocol):
    """The interface that a driver writes to."""

    def write(self, text: str) -> None:
        """Write text to the terminal."""

    def flush(self) -> None:
        """Flush all written text."""


def key_parser(driver: Driver) -> XTermParser:
    """Return the parser that makes keys of a terminal's input.

    Textual's own loop around the parser does not end when the terminal vanishes.
    """
    return XTermParser(driver._debug)


def write_to(driver: Any, output: Output) -> None:
    """Replace the output of a driver. Textual's own output raises in its thread when the terminal vanishes."""
    driver._file = output


def end_application(driver: Driver) -> None:
    """End the application of a driver. A driver has its application only under a private name."""
    driver._app.post_message(ExitApp())


def print_no_traceback(app: Any) -> None:
    """Let an exception only end the application. Textual prints a traceback with the values of all variables."""
    app._fatal_error = app._close_messages_no_wait


def failure(app: App[Any]) -> Exception | None:
    """Return the exception that ended an application."""
    return app._exception


def filter_lines(app: App[Any], *filters: LineFilter) -> None:
    """Replace the line filters. With NO_COLOR, textual converts colours to shades of grey instead of removing them."""
    app._filters = list(filters)


def filter_first(app: App[Any], line_filter: LineFilter) -> None:
    """Add a line filter before all others."""
    app._filters.insert(0, line_filter)


def update_scrollbars(view: ScrollView, size: Size) -> None:
    """Update the scroll bars to a new content size. A layout of the whole screen would take 20 ms."""
    view._scroll_update(size)
