"""The prompt, a line for typed text."""

import pytest
from rich.cells import cell_len
from textual.app import App
from textual.events import Paste

from mcpspy.tui.widgets.prompt import KINDS, Prompt, caret
from tests.test_text import unsafe
from tests.tui.screen import STYLES, lines, play, until


class Shell(App):
    """An application with only the prompt. It records the prompt's messages."""

    CSS_PATH = STYLES

    def __init__(self):
        super().__init__()
        self.said = []

    def compose(self):
        yield Prompt()

    def on_prompt_typed(self):
        self.said.append("typed")

    def on_prompt_entered(self):
        self.said.append("entered")

    def on_prompt_left(self):
        self.said.append("left")


@pytest.mark.parametrize(
    ("column", "sentence", "width", "shown"),
    [
        (1, "wrong", 20, "^ wrong"),
        (5, "wrong", 20, "    ^ wrong"),
        (18, "wrong", 20, f"{' ' * 17}^\nwrong"),
        (99, "wrong", 20, f"{' ' * 19}^\nwrong"),
        (3, "x" * 50, 20, f"  ^\n{'x' * 50}"),
        (0, "wrong", 0, "^\nwrong"),
        (5, "日本語日本語日本", 20, "    ^\n日本語日本語日本"),
    ],
)
def test_a_caret_stands_below_its_column_with_the_sentence_where_there_is_room(column, sentence, width, shown):
    assert caret(column, sentence, width) == shown


def test_it_says_what_is_typed_entered_and_left_and_each_kind_has_its_own_history():
    async def scenario(pilot):
        prompt, typed = pilot.app.query_one(Prompt), {}
        for kind, start in KINDS.items():
            pilot.app.said.clear()
            prompt.show(kind, f"was {kind}")
            prompt.focus()
            assert pilot.app.said == []
            await pilot.press("b")
            typed[kind] = "b" if kind == "find" else f"was {kind}b"
            assert prompt.text == typed[kind], "what is typed replaces the last search"
            await prompt.settle()
            await pilot.press("enter", "escape")
            assert pilot.app.said == ["typed", "entered", "left"]
            assert f"{start}{typed[kind]}" in lines(pilot.app)[0]
            prompt.remember()
        for kind in KINDS:
            prompt.show(kind)
            prompt.focus()
            await pilot.press("up")
            assert prompt.text == typed[kind]
            await pilot.press("down")
            assert prompt.text == ""
        prompt.show("filter")
        pilot.app.focused.post_message(Paste("a\x1b[2J\u202eb\t日本\ud800\nc"))
        await until(pilot, lambda: prompt.text)
        assert prompt.text == "a[2Jb日本", "only what can be seen is pasted"

    play(scenario, app=Shell())


def column(line, text):
    """Return the screen column where a text begins in a line."""
    return cell_len(line[: line.index(text)])


def test_what_is_wrong_stands_below_until_it_is_mended_and_is_safe_to_show():
    async def scenario(pilot):
        prompt = pilot.app.query_one(Prompt)
        for text in ("abc metod:x", '"日本語日本語" metod:x'):
            prompt.show("filter", text)
            prompt.tell("no \x1b[2J[/] here", text.index("metod") + 1)
            await until(pilot, lambda: len(lines(pilot.app)) > 1 and "no" in lines(pilot.app)[1])
            line, below = lines(pilot.app)[:2]
            assert column(line, "metod") == column(below, "^")
            assert "[/]" in below
            assert not unsafe(below)
            prompt.tell("")
            await until(pilot, lambda: "^" not in lines(pilot.app)[1])

    play(scenario, app=Shell())


def test_the_caret_goes_with_a_line_that_is_longer_than_the_screen():
    async def scenario(pilot):
        prompt = pilot.app.query_one(Prompt)

        def right():
            line, below = lines(pilot.app)[:2]
            return "metod" in line and "^" in below and column(line, "metod") == column(below, "^")

        text = f"method:x metod:x {'y' * 60}"
        prompt.show("filter", text)
        prompt.focus()
        await pilot.pause()
        await pilot.press("home", "end")
        await until(pilot, lambda: "metod" not in lines(pilot.app)[0])
        prompt.tell("no such key", text.index("metod") + 1)
        await pilot.press("home")
        await until(pilot, right)

    play(scenario, app=Shell(), size=(60, 10))
