"""Two dialogs: what to copy, and the name to save under."""

import pytest
from rich.cells import cell_len
from textual.app import App
from textual.widgets import Input

from mcpspy.errors import UsageError
from mcpspy.tui.widgets.dialogs import CopyMenu, SavePrompt, ending
from tests.test_text import unsafe
from tests.tui.screen import STYLES, lines, on_screen, play, until


class Shell(App):
    """An application for one dialog."""

    CSS_PATH = STYLES


def asked(question, scenario, size=(80, 24)):
    """Open a dialog, run a scenario, and return the answers."""
    answers = []

    async def main(pilot):
        pilot.app.push_screen(question, answers.append)
        await until(pilot, lambda: pilot.app.screen is question)
        await scenario(pilot)

    play(main, app=Shell(), size=size)
    return answers


CHOICES = [("j", "as JSON", lambda: "{}"), ("c", "[/] \\e", lambda: "curl")]


@pytest.mark.parametrize(("keys", "chosen"), [("x c", CHOICES[1]), ("escape", None)])
def test_a_key_chooses_what_to_copy_and_escape_nothing(keys, chosen):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "j  as JSON"))
        assert on_screen(pilot, "c  [/] \\e")()
        await pilot.press(*keys.split())
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)

    assert asked(CopyMenu(CHOICES), scenario, size=(40, 10)) == [chosen]


def test_a_name_is_asked_for_until_it_is_taken():
    names = []

    def save(name):
        names.append(name)
        if name == "a.json":
            raise UsageError("a.json is there already: \x1b[2J[/] is not")

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "a.json"))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "is there already: \\e[2J[/] is not"))
        assert not unsafe("".join(lines(pilot.app)))
        await pilot.press("x", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)

    assert asked(SavePrompt("save #1 as", "a.json", save), scenario) == ["a.jsonx"]
    assert names == ["a.json", "a.jsonx"]


def test_escape_saves_nothing():
    names = []

    async def scenario(pilot):
        await until(pilot, lambda: isinstance(pilot.app.focused, Input))
        await pilot.press("q", "escape")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)

    assert asked(SavePrompt("save #1 as", "a", names.append), scenario, size=(40, 10)) == [None]
    assert names == []


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("/a/bc", 5, "/a/bc"), ("/a/bcd", 5, "…/bcd"), ("/日本/語", 8, "/日本/語"), ("/日本/語", 7, "…本/語"),
     ("/日本/語", 6, "…本/語"), ("/a", 1, "…"), ("/a", 0, "…"), ("", 0, "")],
)  # fmt: skip
def test_of_a_long_path_the_end_is_shown(text, columns, shown):
    assert ending(text, columns) == shown
    assert cell_len(shown) <= max(columns, 1)


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
def test_it_says_where_the_file_will_be(size, tmp_path, monkeypatch):
    folder = tmp_path / ("long" * 30) / "[/]\x1b[2J end"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "[/]\\e[2J end"))
        assert on_screen(pilot, "…")()

    asked(SavePrompt("save #1 as", "a.json", lambda name: None), scenario, size)


def test_a_directory_that_was_deleted_is_no_end(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "in a directory that was deleted"))

    asked(SavePrompt("save #1 as", "a.json", lambda name: None), scenario)
