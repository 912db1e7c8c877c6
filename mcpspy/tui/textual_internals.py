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
    """What a driver writes to."""

    def write(self, text: str) -> None:
        """Take text for the terminal."""

    def flush(self) -> None:
        """Let all of it be there."""


def key_parser(driver: Driver) -> XTermParser:
    """What makes keys out of a terminal's input. Textual's own loop around it never ends when the terminal vanishes."""
    return XTermParser(driver._debug)


def write_to(driver: Any, output: Output) -> None:
    """Replace what a driver writes to. Textual's own raises in its thread when the terminal vanishes."""
    driver._file = output


def end_application(driver: Driver) -> None:
    """End the application of a driver. A driver knows its application by a private name only."""
    driver._app.post_message(ExitApp())


def filter_lines(app: App[Any], *filters: LineFilter) -> None:
    """Replace the filters of every line. With NO_COLOR textual makes every colour a shade of grey instead of none."""
    app._filters = list(filters)


def update_scrollbars(view: ScrollView, size: Size) -> None:
    """Do what a layout does with a new size of the content. A layout of the whole screen would take 20 ms."""
    view._scroll_update(size)
