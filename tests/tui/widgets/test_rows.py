"""A list of rows with a cursor. Only visible rows are made, however many there are."""

import pytest
from textual.app import App

from mcpspy.tui.widgets.rows import Rows
from tests.tui.screen import STYLES, play, resize, shown, until


class Numbers(Rows):
    """Rows that show their number, and record which of them were made."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        self.made = set()

    def count(self):
        return self.number

    def cells(self, place, width):
        self.made.add(place)
        return [(f"row {place} ", ""), ("x" * 500, "rows--cursor")]


class Shell(App):
    """An application with only the list. It records the chosen rows."""

    CSS_PATH = STYLES

    def __init__(self, number):
        super().__init__()
        self.rows = Numbers(number)
        self.chosen = []

    def compose(self):
        yield self.rows

    def on_mount(self):
        self.rows.focus()

    def on_rows_chosen(self):
        self.chosen.append(self.rows.cursor)


def keys(number, scenario, size=(80, 10)):
    app = Shell(number)
    play(scenario, app=app, size=size)
    return app


MOVES = {
    "down": (1, 0), "up j j k": (1, 0), "pagedown pagedown": (18, 9), "pagedown pagedown pageup": (9, 9),
    "space pagedown ctrl+b": (9, 9), "end down": (99_999, 99_990), "G k home": (0, 0),
}  # fmt: skip
"""Where the cursor and the first row in sight are after some keys."""


def test_keys_move_the_cursor_and_what_is_in_sight():
    async def scenario(pilot):
        rows = pilot.app.rows
        for pressed, (cursor, top) in MOVES.items():
            rows.move_to(0)
            await until(pilot, lambda: rows.scroll_offset.y == 0)
            await pilot.press(*pressed.split())
            await until(pilot, lambda top=top: rows.scroll_offset.y == top, pressed)
            assert rows.cursor == cursor
            assert shown(rows)[cursor - top].startswith(f"row {cursor} x")

    app = keys(100_000, scenario)
    assert len(app.rows.made) < 100 * len(MOVES), "of 100,000 rows"


def test_the_selected_row_is_marked_and_enter_or_a_second_click_chooses_it():
    async def scenario(pilot):
        rows = pilot.app.rows
        assert [rows.render_line(y).cell_length for y in (0, 4, 5, 9)] == [rows.scrollable_content_region.width] * 4
        assert shown(rows)[5:] == [""] * 5
        await pilot.press("down")
        styles = [next(iter(rows.render_line(y))).style.bgcolor for y in range(3)]
        assert styles[0] == styles[2] != styles[1]
        await pilot.press("down", "enter")
        assert pilot.app.chosen == [2]
        await pilot.click(Numbers, offset=(3, 8))  # below the last row
        assert (rows.cursor, pilot.app.chosen) == (2, [2])
        await pilot.click(Numbers, offset=(3, 4))
        assert (rows.cursor, pilot.app.chosen) == (4, [2])
        await pilot.click(Numbers, offset=(3, 4))
        assert pilot.app.chosen == [2, 4]

    keys(5, scenario)


def test_an_empty_list_takes_every_key():
    async def scenario(pilot):
        await pilot.press("down", "up", "pagedown", "pageup", "home", "end", "enter")
        await pilot.click(Numbers, offset=(3, 3))
        assert pilot.app.rows.cursor == 0

    assert keys(0, scenario).chosen == []


def test_rows_that_come_leave_those_in_sight_where_they_are():
    async def scenario(pilot):
        rows = pilot.app.rows
        await pilot.press("pagedown", "pagedown")
        top = rows.scroll_offset.y
        await pilot.click(Numbers, offset=(3, 4))
        assert (rows.cursor, pilot.app.chosen) == (top + 4, [])
        before = shown(rows), rows.cursor
        rows.number = 1000
        rows.rows_changed()
        await pilot.pause()
        assert (shown(rows), rows.cursor) == before
        assert rows.virtual_size.height == 1000

    keys(100, scenario)


@pytest.mark.parametrize(("left", "cursor"), [(3, 2), (0, 0)])
def test_where_rows_go_the_cursor_stays_on_one_there_is(left, cursor):
    async def scenario(pilot):
        rows = pilot.app.rows
        await pilot.press("end")
        rows.number = left
        rows.rows_changed()
        await until(pilot, lambda: rows.scroll_offset.y == 0)
        assert rows.cursor == cursor
        assert [line.split(" x")[0] for line in shown(rows)][: left + 1] == [f"row {n}" for n in range(left)] + [""]

    keys(100, scenario)


def test_the_selected_row_stays_in_sight_when_the_view_shrinks_and_grows():
    async def scenario(pilot):
        rows = pilot.app.rows
        for _ in range(8):
            await pilot.press("down")
        for size in ((40, 4), (200, 60), (10, 1), (80, 10)):
            await resize(pilot, *size)
            await until(
                pilot,
                lambda: (
                    rows.scroll_offset.y <= rows.cursor < rows.scroll_offset.y + rows.scrollable_content_region.height
                ),
            )
        assert rows.cursor == 8

    keys(100, scenario)


def test_the_selected_row_looks_otherwise_without_the_focus():
    async def scenario(pilot):
        rows = pilot.app.rows
        rows.face = lambda place: place  # drawn rows are kept
        await pilot.pause()
        before = rows.render_line(0)
        pilot.app.screen.set_focus(None)
        await pilot.pause()
        assert rows.render_line(0) != before
        assert rows.render_line(0).text == before.text
        rows.focus()
        await pilot.pause()
        assert rows.render_line(0) == before

    keys(3, scenario)


def test_some_hundred_drawn_rows_are_kept_and_not_made_again():
    async def scenario(pilot):
        rows = pilot.app.rows
        rows.face = lambda place: place  # drawn rows are kept
        for _ in range(70):
            shown(rows)
            await pilot.press("pagedown")
        shown(rows)
        rows.made.clear()
        shown(rows)
        assert rows.made == set()
        await pilot.press("home")
        shown(rows)
        assert 5 in rows.made, "not all are kept"

    keys(1000, scenario)
