"""One view of a session without the session's screen. As there, the view is notified when the capture grows."""

from textual.app import App, ComposeResult

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.widgets.rows import Jump, Rows
from tests.tui.screen import STYLES, play


class Shell(App):
    """An application with only the view of the capture at `path`. It records the jumps that the view requests."""

    CSS_PATH = STYLES

    def __init__(self, view, path):
        super().__init__()
        self.session = OpenCapture(str(path))
        self._settle()
        self.view = view(self.session)
        self.jumps = []

    def compose(self) -> ComposeResult:
        yield self.view

    @property
    def rows(self):
        return self.view if isinstance(self.view, Rows) else self.view.query_one(Rows)

    def on_mount(self):
        self.view.focus()

    def on_unmount(self):
        self.session.close()

    def grow(self):
        """Read the new records and notify the view."""
        self._settle()
        self.view.grown()

    def _settle(self):
        for _ in range(3):  # some reads without new records release those that wait for their order
            while self.session.grow(1.0):
                pass

    def on_jump(self, message: Jump):
        self.jumps.append(message.n)


def view(kind, path, scenario, size=(120, 30)):
    """Run a scenario in a view of a capture, and return the application."""
    app = Shell(kind, path)
    play(scenario, app=app, size=size)
    return app


async def show(pilot, kind):
    """Show another view of the capture instead, and return its rows."""
    app = pilot.app
    await app.view.remove()
    app.view, app.jumps = kind(app.session), []
    await app.mount(app.view)
    app.view.focus()
    await pilot.pause()
    return app.rows


HOSTILE = (
    "[/] [bold red]x[/bold red]",
    "\x1b[31mred\x1b[0m\x1b]0;x\x07",
    "\u202eesrever\u2066",
    "x" * 100_000,
    "日本" * 99,
)
"""Texts that a screen must not interpret."""
