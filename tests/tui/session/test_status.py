"""The lines above and below a session."""

import pytest
from textual.app import App

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.session import Status, tab_texts, title_text
from mcpspy.tui.views.table import VIEWS
from tests.test_text import unsafe
from tests.transcript import capture
from tests.tui.screen import STYLES, lines, play, resize


@pytest.mark.parametrize(
    ("width", "named"), [(200, "all"), (120, "all"), (80, "shown"), (60, "shown"), (40, ""), (5, "")]
)
def test_the_views_are_named_where_there_is_room(width, named):
    found = tab_texts(width, "tools")
    assert len(found) == len(VIEWS)
    assert ("timeline" in found[0]) == (named == "all")
    assert ("tools" in found[list(VIEWS).index("tools")]) == (named != "")


def test_the_title_tells_how_the_session_is_and_is_safe_to_show(tmp_path):
    session = OpenCapture(str(capture(tmp_path / "a", '> {"id":1,"method":"ping"}\n< | nonsense', name="\x1b[2J[/]")))
    try:
        while session.grow(1):
            pass
        said = title_text(session, following=True)
    finally:
        session.close()
    assert said.startswith("\\e[2J[/] · stdio · ended · 3 rows · 2 problems · found: ✗ ")
    assert said.endswith(" · following")
    assert not unsafe(said)


def test_the_title_names_the_recorded_client(tmp_path):
    """V-06."""
    hello = '> {"id":1,"method":"initialize","params":{"clientInfo":{"name":"mcp","version":"0.1.0"}}}'
    session = OpenCapture(str(capture(tmp_path / "a", hello, client=["python3", "agent.py"])))
    try:
        while session.grow(1):
            pass
        assert title_text(session, following=False).endswith(" · client agent.py (mcp 0.1.0)")
    finally:
        session.close()


class Shell(App):
    """An application with only the line."""

    CSS_PATH = STYLES

    def compose(self):
        yield Status()


def test_the_line_is_as_wide_as_the_screen_and_tells_what_came_before_where_one_is():
    async def scenario(pilot):
        status = pilot.app.query_one(Status)
        for width in (120, 40, 10, 1):
            await resize(pilot, width, 1)
            for said, held in (("", 0), ("[/]\x1b[2J" * 30, 0), ("", 2), ("[/]\x1b[2J" * 30, 2)):
                status.show("findings", "3/17 · 2 marked", said, held)
                await pilot.pause()
                strip = status.render_line(0)
                assert strip.cell_length == width
                assert not unsafe(strip.text)
                if width == 120:
                    assert (r"[/]\e" in lines(pilot.app)[0]) == bool(said)
                    assert ("2 held" in lines(pilot.app)[0]) == bool(held)
                    assert ("3/17 · 2 marked" in lines(pilot.app)[0]) != bool(said)

        await resize(pilot, 96, 1)  # views give their names for what is said
        keys = " ".join(view.key for view in VIEWS.values())
        ended = "weather has ended: only a running session can be controlled"
        status.show("gates", "1/2", ended, 3)
        await pilot.pause()
        assert " ".join(lines(pilot.app)[0].split()) == f"{keys} 3 held {ended}"
        status.show("gates", "1/2", "")
        await pilot.pause()
        assert "6 gates" in lines(pilot.app)[0]

    play(scenario, app=Shell(), size=(96, 1))
