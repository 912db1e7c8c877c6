"""The shared parts of the views: the text of an empty view, following, and the focus."""

from textual.app import App

from mcpspy.tui.widgets.rows import Following, View
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


def test_a_list_says_that_it_has_no_rows_and_the_row_that_is_looked_at_stays_unless_following():
    async def scenario(pilot):
        rows = pilot.app.query_one(Numbers)
        assert pilot.app.focused is rows, "the focus of a view is that of its list"
        await pilot.press("down", "f", "G", "enter")
        assert shown(rows)[0] == " no numbers yet"
        pilot.app.grow(1)
        await pilot.pause()
        assert shown(rows)[:2] == ["row 0", ""]
        pilot.app.grow(99)
        assert rows.follow
        for pressed in ("up", "g", "f", "pageup"):
            pilot.app.grow(50)
            assert rows.cursor == rows.count() - 1
            await pilot.press(pressed)
            await pilot.pause()
            before = rows.cursor, rows.scroll_offset.y, shown(rows)
            pilot.app.grow(50)
            await pilot.pause()
            assert (rows.cursor, rows.scroll_offset.y, shown(rows)) == before, pressed
            await pilot.press("f")
            assert rows.cursor == rows.count() - 1

    play(scenario, app=Shell(0), size=(40, 10))
