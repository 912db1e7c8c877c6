"""The application in a real terminal: tmux is one that tells what stands on its screen."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.relay.harness import until
from tests.transcript import capture

SHELL = "sh"
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def terminal(tmp_path):
    """A terminal of 100 by 24 with a shell in it: types keys, returns its screen. Its server is this test's own."""
    tmux = ["tmux", "-L", f"mcpspy-{os.getpid()}", "-f", os.devnull]
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMUX_TMPDIR": str(tmp_path)}

    def run(*arguments):
        return subprocess.run(
            [*tmux, *arguments], capture_output=True, check=True, env=home, timeout=20
        ).stdout.decode()

    run("new-session", "-d", "-x", "100", "-y", "24", "env", "PS1=ready ", "ENV=", SHELL)

    class Terminal:
        def type(self, *keys):
            run("send-keys", *keys)

        def screen(self):
            return run("capture-pane", "-p")

        def shows(self, text):
            until(lambda: text in self.screen(), repr(text))

        def resize(self, width, height):
            run("resize-window", "-x", str(width), "-y", str(height))

        def alternate(self):
            return run("display-message", "-p", "#{alternate_on}").strip() == "1"

    yield Terminal()
    subprocess.run([*tmux, "kill-server"], check=False, env=home, timeout=20)


def mcpspy(*arguments, env=()):
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return shlex.join(["env", f"PYTHONPATH={root}", *env, sys.executable, "-m", "mcpspy", *map(str, arguments)])


def test_the_sessions_are_shown_one_is_opened_and_the_terminal_is_left_as_it_was(tmp_path, terminal):
    capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast"}}')
    terminal.shows("ready")
    terminal.type(f"{mcpspy('tui', tmp_path)}; echo status $?", "Enter")
    terminal.shows("1 session, 0 live")
    assert terminal.alternate()
    terminal.type("Enter")
    terminal.shows("tools/call forecast")
    terminal.shows("request · client → server · id 1")
    terminal.type("q")
    terminal.shows("status 0")
    assert not terminal.alternate()
    assert "forecast" not in terminal.screen()
    terminal.type("echo still $((40 + 2))", "Enter")
    terminal.shows("still 42")


def test_without_a_command_it_watches_where_captures_go(tmp_path, terminal):
    terminal.shows("ready")
    terminal.type(f"{mcpspy()}; echo status $?", "Enter")
    terminal.shows("No captures in")
    folder = tmp_path / ".mcpspy" / "captures"
    folder.mkdir(parents=True)
    capture(folder / "a.jsonl", "", name="appeared")
    terminal.shows("appeared")
    terminal.type("C-c")
    terminal.shows("status 0")
    assert not terminal.alternate()


@pytest.mark.parametrize("env", ["TERM=vt100", "TERM=linux", "TERM=screen", "NO_COLOR=1"])
def test_plain_terminals_show_the_session_and_take_a_filter(tmp_path, terminal, env):
    path = capture(
        tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n> {"jsonrpc":"2.0","method":"other"}'
    )
    terminal.shows("ready")
    terminal.type(f"{mcpspy('tui', path, env=[env])}; echo status $?", "Enter")
    terminal.shows("→ ping")
    terminal.type("/")
    terminal.type("method:oth*")
    terminal.shows("1 of 3")
    terminal.type("Enter")
    terminal.shows("1/1")
    assert "→ ping" not in terminal.screen()
    terminal.type("q")
    terminal.shows("status 0")


def test_a_small_terminal_and_back(tmp_path, terminal):
    path = capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 30)
    terminal.shows("ready")
    terminal.type(f"{mcpspy('tui', path)}; echo status $?", "Enter")
    terminal.shows("1/31")
    terminal.shows("request · client → server")
    before = terminal.screen()
    terminal.resize(40, 10)
    until(lambda: len(terminal.screen().splitlines()) == 10 and "1/31" in terminal.screen(), "ten lines")
    assert "help" not in terminal.screen(), "every line counts"
    terminal.resize(100, 24)
    until(lambda: terminal.screen() == before, "the screen of before")
    terminal.type("q")
    terminal.shows("status 0")
