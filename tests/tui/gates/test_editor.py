"""Editing a message, in the user's editor and in the TUI."""

from contextlib import nullcontext
from unittest.mock import patch

import pytest
from textual.app import App
from textual.widgets import TextArea

from mcpspy.tui.message.editor import MessageEditor
from mcpspy.tui.message.text import json_mistake
from tests.test_text import unsafe
from tests.tui.message.test_dialogs import asked
from tests.tui.screen import lines, on_screen, until
from tests.tui.widgets.test_programs import program


@pytest.fixture(autouse=True)
def none(monkeypatch):
    """Unset the editor of the user who runs the tests."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


def editor(text, **more):
    return MessageEditor(lambda: "edit #9", text, json_mistake, **more)


async def gone(pilot):
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


def area(pilot):
    return pilot.app.screen.query_one(TextArea)


def test_a_text_is_edited_in_place_where_there_is_no_editor_and_what_is_no_json_asks_again():
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "edit #9"))
        await pilot.press("end", "x", "ctrl+s")
        await until(pilot, on_screen(pilot, "not JSON: Extra data at line 1, column 4"))
        assert area(pilot).text == "[1]x"
        await pilot.press("backspace")
        await until(pilot, lambda: not on_screen(pilot, "not JSON")())
        await pilot.press("left", "comma", "2", "ctrl+s")
        await gone(pilot)

    assert asked(editor("[1]", outside=True), scenario) == ["[1,2]"]


def test_who_leaves_finds_the_text_kept_below_a_title_that_goes_on():
    titles = iter(["first \x1b[2J", *(f"then [/] {number}" for number in range(99))])
    shown = MessageEditor(lambda: next(titles), "[1]", json_mistake)

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "first \\e[2J"))
        assert not unsafe("".join(lines(pilot.app)))
        await until(pilot, on_screen(pilot, "then [/]"))
        await pilot.press("end", "x", "escape")
        await gone(pilot)

    assert asked(shown, scenario) == [None]
    assert shown.draft == "[1]x"


def outside(monkeypatch, command, text, scenario, **more):
    """Edit a text in an application that can hand its terminal to an editor."""
    monkeypatch.setenv("EDITOR", command)
    with patch.object(App, "suspend", lambda _: nullcontext()):
        return asked(editor(text, **more), scenario)


def test_what_an_editor_makes_is_taken_at_once(tmp_path, monkeypatch):
    command = program(tmp_path, "path.write_text(path.read_text().replace('1', '2'))")
    assert outside(monkeypatch, command, "[1]", gone, outside=True) == ["[2]"]


def test_the_key_opens_the_editor(tmp_path, monkeypatch):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "edit #9"))
        assert area(pilot).text == "[1]"
        await pilot.press("ctrl+o")
        await gone(pilot)

    command = program(tmp_path, "path.write_text('[2]')")
    assert outside(monkeypatch, command, "[1]", scenario) == ["[2]"]


def test_what_an_editor_makes_and_is_no_json_stays_to_be_edited(tmp_path, monkeypatch):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "not JSON"))
        assert area(pilot).text == "[1"
        await pilot.press("end", "]", "ctrl+s")
        await gone(pilot)

    command = program(tmp_path, "path.write_text('[1')")
    assert outside(monkeypatch, command, "[1]", scenario, outside=True) == ["[1]"]


@pytest.mark.parametrize(
    ("source", "why"),
    [("", "the editor changed nothing"), ("path.write_text('[2]'); sys.exit(1)", "ended with status 1")],
)
def test_an_editor_that_was_left_changes_nothing(tmp_path, monkeypatch, source, why):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, why))
        assert area(pilot).text == "[1]"
        await pilot.press("escape")
        await gone(pilot)

    assert outside(monkeypatch, program(tmp_path, source), "[1]", scenario, outside=True) == [None]


def test_a_terminal_that_cannot_be_given_away_says_so(monkeypatch):
    """The application in the tests has no real terminal."""
    monkeypatch.setenv("EDITOR", "vi")

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "this terminal cannot run another program"))
        await pilot.press("ctrl+s")
        await gone(pilot)

    assert asked(editor("[1]", outside=True), scenario) == ["[1]"]


def test_in_the_browser_a_text_is_edited_in_place(tmp_path, monkeypatch):
    async def scenario(pilot):
        with patch.object(App, "is_web", True):
            await until(pilot, on_screen(pilot, "edit #9"))
            await pilot.press("ctrl+o")
            await until(pilot, on_screen(pilot, "no editor in the browser"))
            await pilot.press("escape")
            await gone(pilot)

    with patch.object(App, "is_web", True):
        assert outside(monkeypatch, program(tmp_path, "path.write_text('[2]')"), "[1]", scenario, outside=True) == [
            None
        ]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "no editor is set: set $VISUAL or $EDITOR"),
        ("vi 'x", "$EDITOR is malformed: no closing quotation in vi"),
    ],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_without_an_editor_the_key_says_so(monkeypatch, command, says, at_once):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)

    async def scenario(pilot):
        if not (at_once and command):
            await pilot.press("ctrl+o")
        await until(pilot, on_screen(pilot, says))
        await pilot.press("escape")
        await gone(pilot)

    asked(editor("[1]", outside=at_once), scenario)
