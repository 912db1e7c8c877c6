"""The shared parts of the views: the text of an empty view, following, and the focus."""

import pytest
from textual.app import App

from mcpspy.tui.widgets.rows import Rows
from mcpspy.tui.widgets.view import Following, View
from tests.tui.screen import STYLES, play, shown


class Numbers(Following):
    """Rows that show their number."""

    number = 0

    def count(self):
        return self.number

    def nothing(self):
        return "no numbers yet"

    def cells(self, place, width):
        return [(f"row {place}", "")]


class Framed(View):
    """The rows in a view."""

    def compose(self):
        yield Numbers()


class Shell(App):
    CSS_PATH = STYLES

    def __init__(self, number):
        super().__init__()
        self.number = number

    def compose(self):
        yield Framed()

    def on_mount(self):
        self.query_one(Framed).focus()
        self.grow(self.number)

    def grow(self, more):
        self.query_one(Numbers).number += more
        self.query_one(Numbers).grown()


def keys(number, scenario):
    play(scenario, app=Shell(number), size=(40, 10))


def test_the_focus_of_a_view_is_that_of_its_list():
    async def scenario(pilot):
        await pilot.pause()
        assert pilot.app.focused is pilot.app.query_one(Rows)

    keys(3, scenario)


def test_a_list_without_rows_says_so_until_there_are_some():
    async def scenario(pilot):
        rows = pilot.app.query_one(Numbers)
        await pilot.press("down", "f", "G", "enter")
        assert shown(rows)[0] == " no numbers yet"
        pilot.app.grow(1)
        await pilot.pause()
        assert shown(rows)[:2] == ["row 0", ""]

    keys(0, scenario)


@pytest.mark.parametrize("pressed", ["up", "g", "f", "pageup"])
def test_the_row_that_is_looked_at_stays_unless_following(pressed):
    async def scenario(pilot):
        rows = pilot.app.query_one(Numbers)
        await pilot.press("f")
        pilot.app.grow(50)
        assert rows.cursor == 149
        await pilot.press(pressed)
        await pilot.pause()
        before = rows.cursor, rows.scroll_offset.y, shown(rows)
        pilot.app.grow(50)
        await pilot.pause()
        assert (rows.cursor, rows.scroll_offset.y, shown(rows)) == before
        await pilot.press("f")
        assert rows.cursor == 199

    keys(100, scenario)
