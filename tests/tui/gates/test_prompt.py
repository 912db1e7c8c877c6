"""The prompt for the filter of a breakpoint."""

import pytest

from mcpspy.errors import CaptureError
from mcpspy.gate_files.file import compile_when
from mcpspy.tui.widgets.dialogs import LinePrompt
from tests.test_text import unsafe
from tests.tui.message.test_dialogs import asked
from tests.tui.screen import lines, on_screen, until


def accept(text):
    compile_when(text)
    return f"set {text}"


async def gone(pilot):
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


@pytest.mark.parametrize(("key", "answer"), [("enter", "set from:client"), ("escape", None)])
def test_enter_sets_what_stands_there_and_escape_nothing(key, answer):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "hold the frames of \\e[2J that match"))
        await pilot.press(key)
        await gone(pilot)

    assert asked(LinePrompt("hold the frames of \x1b[2J that match", "from:client", accept), scenario) == [answer]


@pytest.mark.parametrize("width", [120, 60])
def test_a_mistake_is_shown_below_its_column_and_asked_again(width):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "latency:>1s"))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "needs more than one frame"))
        await pilot.press("ctrl+u", *"from:client", "space", *"metod:x", "enter")
        await until(pilot, on_screen(pilot, "unknown key 'metod'"))
        found = lines(pilot.app)
        line = next(line for line in found if "from:client metod:x" in line)
        caret = next(line for line in found if "^" in line)
        assert caret.index("^") == line.index("metod")
        await pilot.press(*["left"] * 4, "h", "enter")
        await gone(pilot)

    prompt = LinePrompt("hold the frames of weather that match", "latency:>1s", accept)
    assert asked(prompt, scenario, size=(width, 24)) == ["set from:client method:x"]


def test_what_goes_wrong_otherwise_is_one_line():
    def refuse(text):
        raise CaptureError(f"cannot control this session: {text} \x1b[2J")

    async def scenario(pilot):
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "cannot control this session: a \\e[2J"))
        assert not unsafe("".join(lines(pilot.app)))
        await pilot.press("escape")
        await gone(pilot)

    asked(LinePrompt("hold the frames of weather that match", "a", refuse), scenario)
