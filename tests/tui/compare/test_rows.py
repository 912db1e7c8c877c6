"""A comparison with a cursor: keys jump to differences, fold and unfold, and the cursor stays on its line."""

from textual.app import App, ComposeResult

from mcpspy.tui.compare import ComparedRows
from mcpspy.tui.model import comparison
from mcpspy.tui.model.comparison import compared
from tests.tui.screen import STYLES, play, resize, shown, until

ONE = {"a": 1, "b": 2, "c": {"d": {"e": 1, "f": 2}, "g": "x"}, "h": 1}
OTHER = {"a": 1, "b": 2, "c": {"d": {"e": 1, "f": 3}, "g": "y"}, "h": 1}


class Alone(App):
    CSS_PATH = STYLES

    def compose(self) -> ComposeResult:
        yield ComparedRows()


def compare(scenario, *values, size=(80, 20)):
    async def main(pilot):
        rows = pilot.app.query_one(ComparedRows)
        rows.show(None, "comparing")
        rows.focus()
        await until(pilot, lambda: "comparing" in shown(rows)[0])
        rows.show(compared(*values))
        await scenario(pilot, rows)

    play(main, app=Alone(), size=size)


def words(rows):
    return [" ".join(line.split()) for line in shown(rows) if line]


def at(rows):
    return words(rows)[rows.cursor]


def test_it_begins_at_the_first_difference_and_goes_to_the_next():
    async def scenario(_, rows):
        assert at(rows) == "- f: 2"
        assert rows.difference(1)
        assert at(rows) == '- g: "x"'
        assert not rows.difference(1)
        assert rows.difference(-1)
        assert not rows.difference(-1)
        assert at(rows) == "- f: 2"

    compare(scenario, ONE, OTHER)


def test_it_folds_and_unfolds():
    async def scenario(pilot, rows):
        whole = words(rows)
        await pilot.press("left")
        assert at(rows) == "▾ d"
        await pilot.press("left")
        assert at(rows) == "▸ d: {…} 2 members"
        await pilot.press("enter", "home", "space")
        assert words(rows) == ["▾ 2 equal: a, b", "a: 1", "b: 2", *whole[1:]]
        await pilot.press("h")
        assert words(rows) == whole
        await pilot.press("end", "z")
        assert at(rows) == "h: 1"
        assert words(rows) == ["a: 1", "b: 2", *whole[1:]]
        await pilot.press("z")
        assert words(rows) == whole

    compare(scenario, ONE, OTHER)


def test_the_cursor_stays_on_its_line_when_the_width_changes():
    async def scenario(pilot, rows):
        rows.difference(1)
        await resize(pilot, 120, 20)
        assert at(rows) == 'g: "x" ≠ g: "y"'
        await resize(pilot, 40, 20)
        assert at(rows) == '- g: "x"'

    compare(scenario, ONE, OTHER)


def test_it_says_where_it_ends(monkeypatch):
    monkeypatch.setattr(comparison, "MOST", 4)
    monkeypatch.setattr("mcpspy.tui.compare.MOST", 4)

    async def scenario(_, rows):
        assert words(rows)[-1] == "the first 4 lines are shown"

    compare(scenario, list(range(10)), [str(n) for n in range(10)])
