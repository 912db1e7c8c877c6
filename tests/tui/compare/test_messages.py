"""The comparison of two messages of a timeline."""

from mcpspy.tui.compare import ComparedRows, MessagesCompared, summary
from mcpspy.tui.model.comparison import compared
from tests.tui.compare.weather import weather
from tests.tui.screen import lines, on_screen, opened, play, until


def test_the_marked_and_the_selected_message_are_compared(tmp_path):
    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("d")
        await until(pilot, on_screen(pilot, "m marks a row, then d on another compares the two"))
        await pilot.press("down", "m", "down", "down", "d")
        await until(pilot, on_screen(pilot, "3 differences, 1 probably different in each run (≈)"))
        text = "\n".join(lines(pilot.app))
        assert "#6 tools/call get_forecast · result" in text
        assert "#8 tools/call get_forecast · result" in text
        assert '"18 degrees"' in text
        assert "≈" in text
        await pilot.press("n", "N", "n", "greater_than_sign")
        await until(pilot, lambda: not isinstance(pilot.app.screen, MessagesCompared))
        assert rows.selected == 8
        await pilot.press("d")
        await until(pilot, on_screen(pilot, "3 differences"))
        await pilot.press("less_than_sign")
        await until(pilot, lambda: rows.selected == 6)

        await pilot.press("m", "g", "m", "down", "down", "m", "end", "d")  # two marked ones
        await until(pilot, on_screen(pilot, "compare · 1 difference"))
        assert "days: 3" in "\n".join(lines(pilot.app))
        await pilot.press("escape", "m", "d")
        await until(pilot, on_screen(pilot, "3 rows are marked; d compares two"))

    play(scenario, weather(tmp_path / "a.jsonl"))


def test_messages_of_two_sessions_of_a_merge_are_compared(tmp_path):
    async def scenario(pilot):
        await until(pilot, lambda: len(pilot.app.screen.query("SessionRows")) and on_screen(pilot, "2 sessions")())
        await pilot.press("space", "space", "m")
        await opened(pilot)
        await pilot.press("m", "end", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, MessagesCompared))
        await until(pilot, lambda: pilot.app.screen.query_one(ComparedRows).count())
        assert "weather #5 tools/call" in "\n".join(lines(pilot.app))

    play(scenario, weather(tmp_path / "a.jsonl"), weather(tmp_path / "b.jsonl"))


def test_a_summary_says_how_much_differs():
    assert summary(compared(1, 1)) == "no differences"
    assert summary(compared([1, 2], ["a", "b"])) == "2 differences"
