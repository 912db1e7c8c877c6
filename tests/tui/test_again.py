"""`R` after the end of a session: the request is sent again by another process, and both answers are compared."""

import json
import os
import shlex
import sys

import pytest
from textual.widgets import Input, TextArea

from mcpspy.tui.compare import MessagesCompared
from mcpspy.tui.session import SessionScreen
from tests.cli.test_replay import SESSION
from tests.replay.scripts import SERVER
from tests.test_text import unsafe
from tests.transcript import capture
from tests.tui.screen import lines, on_screen, play, timeline, until


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def weather(tmp_path):
    """A session that has ended; its server answers in another way now."""
    return capture(tmp_path / "weather.jsonl", SESSION, argv=[*SERVER, "result"], cwd=str(tmp_path))


async def on_row(pilot, n):
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen) and timeline(pilot).session.complete)
    rows = timeline(pilot)
    rows.move_to(rows.session.index.row_of(n))
    await until(pilot, lambda: timeline(pilot).selected == n)


async def sends(pilot):
    """Wait for the editor, and send its text."""
    await until(pilot, lambda: bool(pilot.app.screen.query(TextArea)), "an editor")
    await pilot.press("ctrl+s")
    await until(pilot, on_screen(pilot, "y sends it"))
    await pilot.press("y")


async def compared(pilot):
    await until(pilot, lambda: isinstance(pilot.app.screen, MessagesCompared), "the comparison")
    await until(pilot, on_screen(pilot, "compare · "))


def new_captures(home):
    folder = home / ".mcpspy" / "captures"
    return list(folder.iterdir()) if folder.exists() else []


def test_three_keys_send_it_again_and_show_both_answers(weather, home):
    async def scenario(pilot):
        await on_row(pilot, 11)  # the answer
        await pilot.press("R")
        await until(pilot, on_screen(pilot, "send #10 again, in a session of its own"))
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "y sends it"))
        for text in (
            f"starts       {sys.executable}",
            f"in           {home}",
            "sends first  #8 {",
            "then sends   #10 {",
        ):
            assert on_screen(pilot, text)()
        await pilot.press("y")
        await compared(pilot)
        await until(pilot, on_screen(pilot, "1 difference"))
        assert on_screen(pilot, "recorded  #11 tools/call get_forecast")()
        assert on_screen(pilot, "tools/call get_forecast · result · ok · ")()
        assert on_screen(pilot, "13 °C, sun")()
        await pilot.press(">")
        await until(pilot, lambda: timeline(pilot).session.path != weather, "the new session")
        await until(pilot, on_screen(pilot, "13 °C, sun"))
        (path,) = new_captures(home)
        assert timeline(pilot).session.path == str(path)

    play(scenario, weather, size=(160, 40))


def test_the_request_is_edited_first(weather):
    async def scenario(pilot):
        await on_row(pilot, 10)
        await pilot.press("R")
        await until(pilot, lambda: bool(pilot.app.screen.query(TextArea)))
        area = pilot.app.screen.query_one(TextArea)
        text = area.text
        area.text = text.replace('"id":3', '"id":4')
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "the id must stay 3"))
        area.text = text.replace("Oslo", "Bergen")
        await sends(pilot)
        await compared(pilot)
        await until(pilot, on_screen(pilot, "9 °C, rain"))

    play(scenario, weather, size=(160, 40))


def test_a_command_is_typed_if_the_capture_is_not_trusted(weather, home):
    fields, _, rest = (home / "weather.jsonl").read_bytes().partition(b"\n")
    header = json.loads(fields) | {"argv": ["touch", str(home / "started")], "name": "we\x1b[2Jather"}
    (home / "weather.jsonl").write_bytes(json.dumps(header).encode() + b"\n" + rest)

    async def scenario(pilot):
        await on_row(pilot, 12)  # a call that may write, so there is a question
        await pilot.press("R")
        await until(pilot, on_screen(pilot, "its header has no proof of its origin"))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "type a command, such as python server.py, or a URL"))
        pilot.app.screen.query_one(Input).value = shlex.join([*SERVER, "none"])
        await pilot.press("enter")
        await sends(pilot)
        await compared(pilot)
        await until(pilot, on_screen(pilot, "no differences"))
        assert not unsafe("".join(lines(pilot.app)))

    play(scenario, weather, size=(160, 40))
    assert not (home / "started").exists()


def test_a_server_that_does_not_answer_is_told_with_its_stderr(weather, home):
    async def scenario(pilot):
        await on_row(pilot, 10)
        await pilot.press("R")
        await sends(pilot)
        await until(pilot, on_screen(pilot, "not sent: the server exited with code 3"))
        assert on_screen(pilot, "no key")()

    server = [sys.executable, "-c", "import sys; print('no key', file=sys.stderr); sys.exit(3)"]
    capture(weather, SESSION, argv=server, cwd=str(home))
    play(scenario, weather, size=(160, 40))


def test_escape_ends_the_server(weather, home):
    async def scenario(pilot):
        await on_row(pilot, 10)
        await pilot.press("R")
        await sends(pilot)
        await until(pilot, on_screen(pilot, "waiting for the answer"))
        await until(pilot, (home / "pid").exists)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen))
        await until(pilot, lambda: not runs(int((home / "pid").read_text())), "the end of the server")

    silent = "import os, time; open('part', 'w').write(str(os.getpid())); os.rename('part', 'pid'); time.sleep(1000)"
    server = [sys.executable, "-c", silent]
    capture(weather, SESSION, argv=server, cwd=str(home))
    play(scenario, weather, size=(160, 40))


def runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
