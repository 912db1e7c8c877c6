"""The view of both peers' self-descriptions."""

import pytest

from mcpspy.tui.session.views.peers import PeersView
from tests import NIGHTLY
from tests.test_overview import HANDSHAKE
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import lines, resize, shown
from tests.tui.views import HOSTILE, view

LONG = HANDSHAKE.replace("Grüße", "Ask for one city at a time. " * 9 + "\\n\\nDays are numbers.")


def words(app):
    """Return the lines, with runs of blanks joined."""
    return [" ".join(line.split()) for line in shown(app.rows) if line]


def test_both_sides_are_told_in_full_and_each_line_leads_to_its_frame(tmp_path):
    async def scenario(pilot):
        app = pilot.app
        assert words(app)[1:8] == [
            "client",
            "name cursor",
            "version 2.1",
            "revision asks for 2025-06-18",
            'capability roots {"listChanged":true}',
            "capability sampling",
            "server",
        ] or words(app)[2:4] == ["client", "name cursor"]
        assert "capability sampling" in words(app)
        assert "instructions 271 B, ~67 tokens" in words(app)
        assert words(app)[-1] == "Days are numbers."
        for _ in range(app.rows.count()):
            await pilot.press("enter", "down")
        before = app.rows.count()
        await resize(pilot, 40, 30)
        assert app.rows.count() > before

    app = view(PeersView, capture(tmp_path / "a.jsonl", LONG), scenario)
    assert set(app.jumps) == {5, 6}


def test_what_is_said_meanwhile_is_shown(tmp_path):
    writer = begin(tmp_path / "a.jsonl")

    async def scenario(pilot):
        await pilot.press("enter")
        assert "client has sent no name" in words(pilot.app)
        record(writer, HANDSHAKE)
        pilot.app.grow()
        await pilot.pause()
        assert "name weather" in words(pilot.app)
        finish(writer)

    assert view(PeersView, tmp_path / "a.jsonl", scenario).jumps == []


SIZES = [(80, 24), (1, 1), (200, 60), *([(40, 10), (20, 5)] if NIGHTLY else [])]


@pytest.mark.parametrize("size", SIZES)
def test_hostile_text_is_shown_harmless_at_every_size(tmp_path, size):
    names = [text.replace("\x1b", "\\u001b").replace("\x07", "") for text in (*HOSTILE, "\\ud800")]
    members = ",".join(f'"{name}{n}":{{"{name}":"{name}"}}' for n, name in enumerate(names))
    text = f'> {{"id":9,"method":"initialize","params":{{"clientInfo":{{{members}}},"capabilities":{{{members}}}}}}}\n'
    text += f'< {{"id":9,"result":{{"serverInfo":{{{members}}},"instructions":"{"".join(names)}"}}}}'

    async def scenario(pilot):
        await pilot.press(*(["down"] * 12), "G", "g")
        for line in lines(pilot.app):
            assert line.isprintable()

    view(PeersView, capture(tmp_path / "a.jsonl", text), scenario, size)
