"""The line of keys at the bottom."""

import pytest
from textual.app import App
from textual.binding import Binding
from textual.widgets import Input

from mcpspy.tui.widgets.keys import KeyHint, Keys, fitting
from tests.tui.screen import STYLES, lines, play, resize, until


class Shell(App):
    """An application with two keys for one action, a hidden key, a question mark, and a refused key."""

    CSS_PATH = STYLES
    BINDINGS = (
        Binding("a,b", "add", "add"),
        Binding("h", "add_more", "hidden", show=False),
        Binding("question_mark", "ask", "[/] ask"),
        Binding("r", "refused", "refused"),
    )

    def __init__(self):
        super().__init__()
        self.done = []

    def compose(self):
        yield Keys()
        yield Input()

    def check_action(self, action, parameters):
        return None if action == "refused" else super().check_action(action, parameters)

    def action_add(self):
        self.done.append("add")

    def action_ask(self):
        self.done.append("ask")


KEYS = [KeyHint("a", "a", "add"), KeyHint("b", "b", "[/] ask"), KeyHint("x", "x", "漢字")]
OUT = [
    KeyHint("enter", "enter", "open"), KeyHint("q", "q", "quit"), KeyHint("escape", "esc", "back"),
    KeyHint("f", "f", "follow"), KeyHint("question_mark", "?", "help"),
]  # fmt: skip


@pytest.mark.parametrize(("width", "count"), [(100, 3), (26, 3), (25, 2), (18, 2), (17, 1), (7, 1), (6, 0), (0, 0)])
def test_keys_are_shown_whole_or_not_at_all(width, count):
    assert fitting(KEYS, width) == KEYS[:count]


@pytest.mark.parametrize(
    ("width", "names"),
    [
        (48, "enter q esc f ?"), (47, "enter q esc ?"), (37, "enter esc ?"), (29, "esc ?"), (18, "esc ?"), (17, "?"),
        (8, "?"), (7, ""), (0, ""),
    ],
)  # fmt: skip
def test_help_and_the_way_back_are_left_out_last(width, names):
    assert " ".join(it.display for it in fitting(OUT, width)) == names


def test_where_nothing_leads_back_the_way_out_is_left_out_last():
    assert [it.display for it in fitting([it for it in OUT if it.key != "escape"], 16)] == ["q", "?"]


def test_the_keys_of_the_place_are_told_of_and_a_click_presses_one():
    async def scenario(pilot):
        app = pilot.app
        app.set_focus(None)
        await until(pilot, lambda: lines(app)[0].startswith(" a add  ? [/] ask"))
        assert "hidden" not in lines(app)[0]
        assert "refused" not in lines(app)[0]
        await pilot.click(Keys, offset=(2, 0))
        await until(pilot, lambda: app.done == ["add"])
        await pilot.click(Keys, offset=(8, 0))
        await until(pilot, lambda: app.done == ["add", "ask"])
        await pilot.click(Keys, offset=(90, 0))  # no key is shown there
        await pilot.press("a")
        await until(pilot, lambda: app.done == ["add", "ask", "add"])

    play(scenario, app=Shell(), size=(120, 5))


def test_the_line_is_as_wide_as_the_screen_and_changes_with_the_focus():
    class Pages(Shell):
        def compose(self):
            yield Keys()
            yield Field()

    class Field(Input):
        BINDINGS = (Binding("f2", "submit", "of the field"),)

    async def scenario(pilot):
        app = pilot.app
        app.set_focus(None)
        await until(pilot, lambda: "of the field" not in lines(app)[0])
        app.query_one(Field).focus()
        await until(pilot, lambda: "of the field" in lines(app)[0])
        for width in (40, 12, 3, 1):
            await resize(pilot, width, 5)
            await until(pilot, lambda width=width: app.query_one(Keys).size.width == width)
            assert app.query_one(Keys).render_line(0).cell_length == width

    play(scenario, app=Pages(), size=(120, 5))
