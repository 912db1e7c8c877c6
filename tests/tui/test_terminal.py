"""The application in a real terminal: tmux returns the screen, and a pty can disappear."""

import os
import re
import select
import signal
import sys
import termios
import time
from contextlib import suppress

import pytest

from mcpspy.tui.app import colourless
from tests import limits
from tests.each import each
from tests.optional import open_terminal
from tests.relay.harness import LIMIT, running, until
from tests.transcript import capture
from tests.tui.terminal import mcpspy

CALL = '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast"}}\n'


def test_it_watches_where_captures_go_and_leaves_the_terminal_as_it_was(tmp_path, terminal):
    terminal.shows("ready")
    terminal.type(f"{mcpspy()}; echo status $?", "Enter")
    terminal.shows("No captures in")
    assert terminal.alternate()
    folder = tmp_path / ".mcpspy" / "captures"
    folder.mkdir(parents=True)
    capture(folder / "a.jsonl", CALL, name="appeared")
    terminal.shows("appeared")
    terminal.type("Enter")
    terminal.shows("The server ended during tools/call forecast")
    terminal.type("1")
    terminal.shows("request · client → server · id 1")
    terminal.type("C-c")
    terminal.shows("status 0")
    assert not terminal.alternate()
    assert "forecast" not in terminal.screen()
    terminal.type("echo still $((40 + 2))", "Enter")
    terminal.shows("still 42")


def test_plain_terminals_show_the_session_and_take_a_filter(tmp_path, terminal):
    said = '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n> {"jsonrpc":"2.0","method":"other"}'
    path = capture(tmp_path / "a.jsonl", said)
    terminal.shows("ready")
    for number, env in enumerate(("TERM=vt100", "TERM=linux", "TERM=screen", "NO_COLOR=1")):
        terminal.type(f"clear; {mcpspy('tui', path, env=[env])}; echo {number} has status $?", "Enter")
        terminal.shows("The server ended during ping")
        terminal.type("/")
        terminal.type("method:oth*")
        terminal.shows("1 of 3")
        terminal.type("Enter")
        terminal.shows("1/1")
        assert "→ ping" not in terminal.screen()
        terminal.type("q")
        terminal.shows(f"{number} has status 0")


def test_a_small_terminal_and_back_and_the_shell_and_back(tmp_path, terminal):
    path = capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 30)
    terminal.shows("ready")
    terminal.type(mcpspy("tui", path), "Enter")
    terminal.shows("The server ended during ping")
    terminal.type("1")
    terminal.shows("1/31")
    terminal.shows("request · client → server")
    before = terminal.screen()
    terminal.resize(40, 10)
    until(lambda: len(terminal.screen().splitlines()) == 10 and "1/31" in terminal.screen(), "ten lines")
    assert "help" not in terminal.screen(), "every line counts"
    terminal.resize(100, 24)
    until(lambda: terminal.screen() == before, "the screen of before")
    for place in ("2/31", "3/31"):
        terminal.type("C-z")
        until(lambda: not terminal.alternate(), "the shell")
        terminal.type("echo still $((40 + 2))", "Enter")
        terminal.shows("still 42")
        terminal.type("fg", "Enter")
        terminal.shows("request · client → server")
        terminal.type("j")
        terminal.shows(place)
    terminal.type("q")
    until(lambda: not terminal.alternate(), "its end")


# A terminal that disappears.


@pytest.fixture
def lost(tmp_path):
    """Start `mcpspy tui` on a terminal that is not its controlling terminal, so no signal reports its end."""
    started, ends = [], []

    def start(*arguments, term="xterm-256color", program=("-m", "mcpspy", "tui")):
        own, other = open_terminal()
        ends.append(own)
        termios.tcsetwinsize(own, (30, 120))
        command = [sys.executable, *program, *map(str, arguments)]
        environ = os.environ | {"TERM": term, "COLORTERM": "truecolor", "HOME": str(tmp_path)}
        process = limits.Popen(command, stdin=other, stdout=other, stderr=other, env=environ, start_new_session=True)
        os.close(other)
        started.append(process)
        return process, own

    yield start
    for process in started:
        process.kill()
        process.wait()
    for end in ends:
        with suppress(OSError):
            os.close(end)


def read(end, text, seen=b""):
    """Return the application's output, up to the given text."""
    deadline = time.monotonic() + LIMIT
    while text not in seen:
        assert time.monotonic() < deadline, seen[-1000:]
        assert select.select([end], [], [], LIMIT)[0], seen[-1000:]
        seen += limits.read(end, 65536)
    return seen


@pytest.mark.parametrize("keys", ["", "\r2", "\r/", "\r:save\r"])
def test_it_ends_with_its_terminal(tmp_path, lost, keys):
    capture(tmp_path / "a.jsonl", CALL)
    process, end = lost(tmp_path)
    read(end, b"1 session")
    for key in keys:
        os.write(end, key.encode())
        read(end, b"\x1b")  # the screen is drawn
    os.close(end)
    assert process.wait(LIMIT) == 0


def test_it_ends_with_a_terminal_that_took_nothing_any_more(tmp_path, lost):
    process, end = lost(capture(tmp_path / "a.jsonl", CALL * 100))
    read(end, b"forecast")
    for _ in range(60):  # more screens than the buffers of the terminal and textual hold
        os.write(end, b"jk")
        time.sleep(0.02)  # two keys at once give one screen
    os.close(end)
    assert process.wait(LIMIT) == 0


def test_a_terminal_that_cannot_move_its_cursor_gets_text_only(tmp_path, lost):
    process, end = lost(capture(tmp_path / "a.jsonl", CALL), term="dumb")
    out = read(end, b"    name: forecast")
    assert process.wait(LIMIT) == 0
    assert b"TERM is dumb" in out
    assert b"\x1b" not in out


@each(
    "term, colours",
    [("xterm-mono", False), ("linux-m", False), ("vt220", False), ("linux", True), ("xterm", True)],
)
def test_the_type_of_a_terminal_tells_whether_it_has_colours(term, colours):
    assert colourless(term) != colours


@pytest.mark.parametrize(("term", "number"), [("vt220", signal.SIGHUP), ("xterm", signal.SIGTERM)])
def test_a_terminal_without_colours_gets_none_and_a_signal_gives_it_back(tmp_path, lost, term, number):
    process, end = lost(capture(tmp_path / "a.jsonl", CALL * 3), term=term)
    seen = read(end, b"The server ended")  # its problems, which open when all is read
    coloured = re.search(rb"\x1b\[(?:[0-9;]*;)?(?:[34][0-8]|9[0-7]|10[0-7])[;m]", seen)
    assert bool(coloured) == (term == "xterm")
    assert coloured or re.search(rb"\x1b\[(?:[0-9;]*;)?7[;m]", seen), "the selected row is seen all the same"
    assert b"\x1b[?1049h" in seen
    os.write(end, b"\xe1\xff\x80j\xc3")  # bytes that are no text are no key
    seen = read(end, b"2/4", seen)
    process.send_signal(number)
    assert b"Traceback" not in read(end, b"\x1b[?1049l", seen)
    assert process.wait(LIMIT) == 0


BUG = """
import sys
from mcpspy import cli
from mcpspy.tui.sessions import SessionsScreen
def on_mount(screen):
    raise ValueError(chr(0x9B) + "31m" + chr(0x202E))
SessionsScreen.on_mount = on_mount
sys.argv = ["mcpspy", "tui", sys.argv[1]]
sys.exit(cli.main())
"""


def test_a_bug_ends_it_with_one_line_and_no_traceback(tmp_path, lost):
    """A-14: a traceback of textual has the values of variables, which are captured text."""
    process, end = lost(tmp_path, program=["-c", BUG])
    seen = read(end, b"please report it\r\n")
    assert process.wait(LIMIT) == 2
    assert seen.rpartition(b"mcpspy: ")[2].startswith(
        rb"a bug of mcpspy ended 'tui' (ValueError: \x9b31m\u202e) in tui/"
    )
    assert b"Traceback" not in seen


def test_it_ends_with_the_pane_of_tmux(tmp_path, terminal):
    terminal.shows("ready")
    terminal.type(f"echo $$ > {tmp_path}/pid; exec {mcpspy('tui', tmp_path)}", "Enter")
    terminal.shows("No captures in")
    (process,) = (tmp_path / "pid").read_text().split()
    terminal.vanish()
    until(lambda: not running(int(process)), "its end")


def test_standard_input_is_the_capture_and_keys_come_from_the_terminal(tmp_path, terminal):
    path = capture(tmp_path / "a.jsonl", CALL)
    terminal.shows("ready")
    for number, command in enumerate((f"gzip -c {path} | {mcpspy('tui', '-')}", f"{mcpspy('tui', '-')} < {path}")):
        terminal.type(f"{command}; echo {number} has status $?", "Enter")
        terminal.shows("The server ended during tools/call forecast")
        terminal.type("1")
        terminal.shows("request · client → server · id 1")
        terminal.type("Escape")
        terminal.shows("w problems")
        until(lambda: "id 1" not in terminal.screen(), "the problems")
        terminal.type("Escape")
        terminal.shows("1 session, 0 live · standard input")
        terminal.type("q")
        terminal.shows(f"{number} has status 0")
        assert not terminal.alternate()
    terminal.type("echo still $((40 + 2))", "Enter")
    terminal.shows("still 42")
