"""The application without a terminal: tests press keys and read the text of the screen."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from unittest.mock import patch

from textual.app import App
from textual.css.parse import parse
from textual.css.tokenize import tokenize_values
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.strip import Strip

from mcpspy import tui
from mcpspy.tui.app import Spy
from mcpspy.tui.message.detail import Detail, Pane
from mcpspy.tui.message.document import Document
from mcpspy.tui.sessions import SessionRows
from mcpspy.tui.views.timeline import TimelineRows
from tests.limits import LIMIT

STYLES = os.path.join(os.path.dirname(tui.__file__), "app.tcss")
"""The style sheet of the application."""
_ROUNDS = 100  # of messages that cause other messages
_CALM = 2  # quiet rounds: an idle receiver may still send messages
_TURNS = 10  # turns of the event loop at least, for work that is not a message
_MOST_TURNS = 1000  # if a part is never done


def play(
    scenario: Callable[[Pilot], Awaitable[None]], *targets, app: App | None = None, size=(120, 30), draws=False
) -> None:
    """Run a scenario in the application. An exception in either of them fails the test.

    The screen is drawn when the test reads it, and at the end. With `draws` it is also drawn after each change, as in
    a terminal. That takes half of the time, and there is no terminal that would show it.
    """

    async def main():
        shown = app or Spy([str(target) for target in targets])
        shown.animation_level = "none"

        async def settle(*_):
            await settled(shown)

        async def answered(*_):
            await _answered(shown)

        idle, screen = "textual.{}.wait_for_idle", "textual.pilot.Pilot._wait_for_screen"
        css = "textual.css.stylesheet.{}"
        with (
            patch(idle.format("app"), settle), patch(idle.format("pilot"), settle), patch(screen, answered),
            patch(css.format("tokenize_values"), _variables), patch(css.format("parse"), _rules),
            nullcontext() if draws else patch("textual._compositor.Compositor.render_update", _undrawn),
        ):  # fmt: skip
            async with asyncio.timeout(LIMIT * 2), shown.run_test(size=size, notifications=True) as pilot:
                await scenario(pilot)
                if shown.is_running:
                    strips(shown)

    asyncio.run(main())


def _undrawn(compositor, **_):
    """Note that all changes are drawn, without drawing them."""
    compositor._dirty_regions.clear()


# Every application parses the same styles, which takes a tenth of its start. So the results are kept.

_VARIABLES: dict[tuple, dict] = {}
_RULES: dict[tuple, list] = {}


def _variables(values):
    key = tuple(values.items())
    if key not in _VARIABLES:
        _VARIABLES[key] = tokenize_values(values)
    return _VARIABLES[key]


def _rules(*what, variable_tokens, **more):
    key = (*what, id(variable_tokens), *more.items())
    if key not in _RULES:
        _RULES[key] = list(parse(*what, variable_tokens=variable_tokens, **more))
    return _RULES[key]


async def settled(app: App) -> None:
    """Let the application do all pending work, including the work that this causes, and draw the screen.

    Textual's own function waits until the process is idle: 40 ms for a key, and up to a second while there is work.
    """
    calm = 0
    for _ in range(_ROUNDS):
        await _answered(app)
        if not app.screen_stack:
            break
        await Pilot(app).wait_for_animation()  # there are no animations; this draws the screen
        calm = 0 if any(map(_busy, _nodes(app))) else calm + 1
        if calm == _CALM:
            break
        app.screen.check_idle()  # for callbacks that wait until the screen is drawn


async def _answered(app: App) -> None:
    """Let every part of the application process its pending messages.

    Textual's own function sends a message to each of them, which costs more than the work of most tests.
    """
    waiting = _nodes(app)
    for turn in range(_MOST_TURNS):
        await asyncio.sleep(0 if turn < 10 * _TURNS else 0.001)  # a part may wait for a thread
        waiting = [node for node in waiting if _busy(node)]
        if turn >= _TURNS and not waiting:
            break


def _nodes(app: App) -> list[MessagePump]:
    return [app, *(node for screen in app.screen_stack for node in screen.walk_children(with_self=True))]


def _busy(node: MessagePump) -> bool:
    """Return whether a part has a message or processes one. Textual has only private names for that."""
    queue = node._message_queue
    return node.is_running and (queue.qsize() > 0 or not queue.ready_event._waiters)


async def until(pilot: Pilot, condition: Callable[[], object], what: str = "the condition") -> None:
    """Let the application work until the condition holds. Fail after LIMIT seconds and print the screen."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about:\n" + "\n".join(lines(pilot.app))
        await pilot.pause(0.01)


async def resize(pilot: Pilot, width: int, height: int) -> None:
    """Resize the terminal and wait until the screen and every part of it have the new size."""
    await pilot.resize_terminal(width, height)  # a timer of Textual resizes the screen a little later
    await until(pilot, lambda: [strip.cell_length for strip in strips(pilot.app)] == [width] * height, "the size")
    await pilot.pause()  # the parts get a message when the screen has its size


def strips(app: App) -> list[Strip]:
    """Return the drawn screen, line by line. Textual has only a private name for that."""
    return app.screen._compositor.render_strips()


def lines(app: App) -> list[str]:
    """Return the screen as text, line by line."""
    return [strip.text.rstrip() for strip in strips(app)]


def on_screen(pilot: Pilot, text: str) -> Callable[[], bool]:
    """Return a condition: the screen shows the text."""
    return lambda: text in "\n".join(lines(pilot.app))


def descriptors(path: str | os.PathLike[str]) -> int:
    """Return how many descriptors this process has open on a file."""
    wanted, found = os.stat(path), 0
    for number in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # the descriptor of the listing itself
            found += os.path.samestat(os.fstat(number), wanted)
    return found


def title(app: App) -> str:
    """Return the first line of the screen."""
    return lines(app)[0].strip()


def sessions(pilot: Pilot) -> SessionRows:
    """Return the list of sessions."""
    return pilot.app.screen.query_one(SessionRows)


def timeline(pilot: Pilot) -> TimelineRows:
    """Return the timeline of the open session."""
    return pilot.app.screen.query_one(TimelineRows)


def detail(pilot: Pilot) -> Detail:
    """Return the detail, which shows the selected message of the timeline."""
    return pilot.app.screen.query_one(Detail)


def pane(pilot: Pilot) -> Pane:
    """Return the pane of the selected message in the detail."""
    return detail(pilot).pane


def texts(document: Document, most: int = 1_000_000) -> list[str]:
    """Return the rows of a document, at most the first `most`."""
    while len(document) < most and document.grow(min(most, 1000)):
        pass
    return ["".join(text for text, _ in document.pieces(row)).rstrip() for row in range(min(len(document), most))]


def shown(widget) -> list[str]:
    """Return the lines of a widget as it renders them."""
    return [widget.render_line(y).text.rstrip() for y in range(widget.scrollable_content_region.height)]


def message(pilot: Pilot) -> str:
    """Return all lines of the message, also those that are not visible."""
    document = pane(pilot).document
    return "\n".join(texts(document)) if document else ""


async def opened(pilot: Pilot) -> TimelineRows:
    """Wait until the capture is read and the selected message is shown, and return the timeline."""
    await until(pilot, lambda: pilot.app.screen.query(TimelineRows), "a timeline")
    rows = timeline(pilot)
    await until(pilot, lambda: rows.session.complete, "the end of the capture")
    await pilot.pause()
    if not rows.parent.parent.display:  # it began with what failed
        await pilot.press("1")
    session, there = rows.session.of(rows.place())
    await until(pilot, lambda: f"#{session.line(there).n} " in message(pilot), "the message")
    return rows
