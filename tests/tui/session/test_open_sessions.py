"""Several open sessions, one in front of the others. `test_sessions` tests how they are opened."""

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.sessions import TurnScreen
from tests.transcript import capture
from tests.tui.screen import descriptors, on_screen, play, until


def test_one_alone_has_nothing_to_turn_to(tmp_path):
    path = capture(tmp_path / "a.jsonl", "> {}")

    async def scenario(pilot):
        screen = TurnScreen(OpenCapture(path), [])
        await pilot.app.push_screen(screen)
        await until(pilot, on_screen(pilot, "weather · stdio"))
        await pilot.press("]", "[")
        assert pilot.app.screen is screen

    play(scenario, tmp_path)


def test_what_is_forgotten_gives_its_file_back_shown_or_not(tmp_path):
    path = capture(tmp_path / "a.jsonl", "> {}")
    turn = []

    async def scenario(pilot):
        for name in "ab":
            pilot.app.install_screen(TurnScreen(OpenCapture(path), turn), name)
        await pilot.app.push_screen(turn[0])
        await until(pilot, on_screen(pilot, "weather · stdio"))
        await pilot.app.pop_screen()
        for screen in turn:
            screen.forget()
        await until(pilot, lambda: not descriptors(path))

    play(scenario, tmp_path)
