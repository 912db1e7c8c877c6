"""A-14: hostile text in every member of every record reaches no screen: no view, no dialog and no notice."""

import os
from unittest.mock import patch

import pytest
from textual.widgets import Input, Static

from mcpspy.tui.app import Barrier
from mcpspy.tui.views.table import VIEWS
from tests import NIGHTLY
from tests.hostile_text import EVERY_MEMBER, NASTY, gentle, harsh, unsafe
from tests.tui.gates.relay import CLIENT, ScriptedRelay
from tests.tui.screen import on_screen, opened, play, sessions, strips, timeline, until

FOLDER = "captures\x9b\u202e[bold]"


class Recorder(Barrier):
    """The barrier, which also notes what it is there to stop."""

    def __init__(self):
        super().__init__()
        self.found = set()
        self.seen = set()
        self.shown = False

    def apply(self, segments, background):
        for text, style, _ in segments:
            if text not in self.seen:
                self.seen.add(text)
                self.shown = self.shown or "\\x9b31m" in text
                if unsafe(text):
                    self.found.add(text.strip()[:200])
            if style and (style.link or "@click" in (style.meta or {})):
                self.found.add(f"markup: {text}")
        return super().apply(segments, background)


def watched(scenario, *targets, size=(150, 45)):
    """Run a scenario; fail if a widget draws hostile text, even though the barrier would stop it."""
    recorder = Recorder()

    async def run(pilot):
        await scenario(pilot)
        assert not unsafe("".join(strip.text for strip in strips(pilot.app)))

    with patch("mcpspy.tui.app.Barrier", lambda: recorder):
        play(run, *targets, size=size, draws=True)
    assert not recorder.found
    assert recorder.shown, "hostile text is drawn, with escapes"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the directory of the captures, below the current directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("VISUAL", "EDITOR", "PAGER"):
        monkeypatch.setenv(name, f"'{NASTY.replace(chr(0), '')}")
    folder = tmp_path / FOLDER
    folder.mkdir()
    return folder


async def look_through(pilot):
    """Show each view of a session, and go through its rows, with details and all their forms."""
    for view in VIEWS.values():
        await pilot.press(view.key, "plus", *["down"] * 8, "end", "o", "space")
    await pilot.press("1", "home")  # each row, in each form
    for form in range(4):
        await pilot.press("r", *["up" if form % 2 else "down"] * timeline(pilot).count())
    await pilot.press("b", *["down"] * timeline(pilot).count(), "enter", "plus", *["down"] * 8, "minus", "escape")
    await pilot.press("ctrl+f", "ctrl+u", *"31m", "enter", "n", "n", "N")  # places in messages


async def open_dialogs(pilot):
    """Open each dialog and each input line of a session, and let each of them fail."""
    await pilot.press("1", "home")
    for _ in range(4):
        await pilot.press("y", "escape", "s", "escape", "B", "escape", "R", "escape", "o", "O", "H", "e", "p", "down")
    await pilot.press("g", "s")
    for text in (f"{FOLDER}/none/x", FOLDER):
        pilot.app.screen.query_one(Input).value = text
        await pilot.press("enter")
    await pilot.press("escape", "question_mark", "escape", "c", "end", "enter")
    for key in await copies(pilot):
        await pilot.press("1", "y", key, "escape")
    commands = (
        f"filter name:{NASTY}", f"filter {NASTY} (", f"find {NASTY}", "goto 999", f"goto {NASTY}", f"{NASTY}",
        f"export csv {FOLDER}/none/x", f"export {NASTY}", f"export mermaid {FOLDER}/m\x9b", f"share {FOLDER}/s\x9b",
        f"theme {NASTY}", "save",
    )  # fmt: skip
    for command in commands:
        await pilot.press("1", "colon")
        prompt = pilot.app.screen.query_one(Input)
        prompt.value = command
        await pilot.press("enter", "escape")
        for worker in [worker for worker in pilot.app.workers if worker.group == "exports"]:
            await worker.wait()  # its notice is drawn, and no thread outlives the test


async def copies(pilot):
    """Return the keys of the copy menu."""
    await pilot.press("1", "home", "down", "down", "y")
    lines = [str(line.content) for line in pilot.app.screen.query(Static)]
    await pilot.press("escape")
    return [line[0] for line in lines if line[1:3] == "  "]


@pytest.mark.parametrize("name", EVERY_MEMBER)
@pytest.mark.parametrize("make", [gentle, harsh] if NIGHTLY else [gentle])
def test_every_view_of_a_session(folder, make, name):
    """A-14."""
    path = make(name, folder / "a\x9b\u202e.jsonl")

    async def scenario(pilot):
        await opened(pilot)
        await look_through(pilot)

    watched(scenario, path)


@pytest.mark.parametrize("name", EVERY_MEMBER)
def test_every_dialog_of_a_session(folder, name):
    """A-14."""
    path = gentle(name, folder / "a\x9b\u202e.jsonl")

    async def scenario(pilot):
        await opened(pilot)
        await open_dialogs(pilot)

    watched(scenario, path)


def test_the_sessions_a_merge_and_comparisons(folder):
    """A-14: also of files that are not captures."""
    for how in (gentle, harsh):
        for name in EVERY_MEMBER:
            how(name, folder / f"{how.__name__}\x9b-{name}.jsonl")
    (folder / "not\x9b.jsonl").write_text(NASTY)

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() >= 4, "the sessions")
        await pilot.press("plus", "right", *["down"] * 8, "home")
        await pilot.press("slash")
        pilot.app.screen.query_one(Input).value = NASTY
        await pilot.press("enter", "escape", "escape")
        await pilot.press("home", "d", "m", "space", "space", "d")
        await pilot.pause()
        await pilot.press("z", *["n", "right", "down"] * 6)
        await pilot.press("home", "enter", "escape", "down", "enter", "escape", "escape")
        await until(pilot, lambda: pilot.app.screen.query("SessionRows"))
        await pilot.press("m")
        await opened(pilot)
        await look_through(pilot)
        await pilot.press("1", "g", "m", "down", "d")
        await pilot.pause()
        await pilot.press("z", *["n", "right", "down"] * 4, "escape")

    watched(scenario, folder)


def test_breakpoints_of_a_running_session(folder):
    """A-14: gates of others, a gate of this viewer, the editor and its titles."""
    relay = ScriptedRelay(folder / "live\x9b.jsonl", client=r"c\u009b\u202e", name=NASTY)
    gate = {"name": f"other {NASTY}", "when": {"name": NASTY}, "action": {"hold": 10**12, "drop": NASTY}}
    call = rb'{"jsonrpc":"2.0","id":"\u009b","method":"tools/call\u202e","params":{"name":"x\u009b[31m"}}'

    async def scenario(pilot):
        await until(pilot, lambda: pilot.app.screen.query("TimelineRows") and timeline(pilot).count() == 5)
        relay.writer.gates(80 * 10**9, [gate], "viewer")
        relay.hold(1, gate["name"], call, CLIENT, at=90)
        relay.frame(call, CLIENT, at=91)
        await until(pilot, on_screen(pilot, "held"), "the held frame")
        await pilot.press("G", "up", "B")
        await pilot.press("enter", "6", "down", "enter", "6", "space", "x", "enter", "1", "G", "up", "E")
        await pilot.pause()
        await pilot.press("x", "ctrl+s", "ctrl+o", "escape", "A")
        await pilot.pause()
        await pilot.press("x", "ctrl+s", "ctrl+o", "escape", "R")
        await pilot.pause()
        await pilot.press("x", "ctrl+s", "escape", "H", "enter")
        relay.end()
        await pilot.press("6", "space", "x")
        await pilot.pause()

    watched(scenario, relay.path)
    assert os.listdir(folder)
