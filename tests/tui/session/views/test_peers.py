"""The view of both peers' self-descriptions."""

from mcpspy.tui.views.peers import PeersView
from tests.test_overview import HANDSHAKE
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import resize, shown
from tests.tui.views import view

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
