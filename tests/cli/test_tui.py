import io
import socket
import sys

import pytest

from mcpspy import cli
from mcpspy.tui import app
from tests.transcript import capture


@pytest.fixture
def tui(monkeypatch, capsys, tmp_path):
    """Run `mcpspy ARGUMENTS` with or without a terminal. Return status, output and the targets that the TUI gets."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MCPSPY_CAPTURE_DIR", raising=False)
    monkeypatch.delenv("ACCESSIBLE", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def run(*arguments, terminal=True):
        watched = []
        monkeypatch.setattr(sys, "argv", ["mcpspy", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
        monkeypatch.setattr(app.Spy, "run", lambda spy: watched.append(spy.targets))
        return cli.main(), *capsys.readouterr(), watched

    return run


def test_captures_and_directories_are_watched(tmp_path, tui):
    path = capture(tmp_path / "a.jsonl", "")
    assert tui("tui", path, tmp_path) == (0, "", "", [[path, str(tmp_path)]])


def test_without_a_command_it_lists_where_wrap_writes_even_if_nothing_is_there_yet(tmp_path, tui, monkeypatch):
    assert tui() == (0, "", "", [[str(tmp_path / "home" / ".mcpspy" / "captures")]])
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "mine"))
    assert tui() == (0, "", "", [[str(tmp_path / "mine")]])


def test_without_a_target_it_opens_the_newest_capture_over_the_list(tmp_path, tui, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    path, opened = capture(tmp_path / "a.jsonl", "> 1 ping"), []
    monkeypatch.setattr(app, "OpenCapture", opened.append)
    monkeypatch.setattr(app, "SessionScreen", lambda _: None)
    assert tui("tui") == (0, "", f"mcpspy: newest capture: {path}\n", [[str(tmp_path)]])
    assert opened == [path]


def test_without_a_target_and_without_captures_it_says_how_to_record_one(tmp_path, tui, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    status, _, err, watched = tui("tui")
    assert (status, watched) == (2, [])
    assert "'mcpspy wrap -- COMMAND' records one" in err


PLAIN = [("TERM", "dumb"), ("TERM", "unknown"), ("ACCESSIBLE", "1")]


@pytest.mark.parametrize(("name", "value"), PLAIN)
def test_a_terminal_that_must_stay_plain_gets_the_same_as_text(tmp_path, tui, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    path = capture(tmp_path / "a b.jsonl", "> 1 ping")
    status, out, err, watched = tui("tui", path)
    assert (status, watched) == (0, [])
    why = f"TERM is {value}" if name == "TERM" else "ACCESSIBLE is set"
    command = f"mcpspy show --long '{path}'"
    assert err == f"mcpspy: {why}: the TUI does not start; '{command}' prints this\n"
    assert out == tui("show", "--long", path)[1]


def test_a_directory_is_then_listed(tmp_path, tui, monkeypatch):
    monkeypatch.setenv("ACCESSIBLE", "yes")
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    path = capture(tmp_path / "a.jsonl", "> 1 ping")
    rest = "prints this; 'mcpspy show --long CAPTURE' prints a session\n"
    for words, command in (((), "ls"), (("tui", tmp_path / ".."), f"ls {tmp_path / '..'}")):
        status, out, err, watched = tui(*words)
        assert (status, err, watched) == (
            0,
            f"mcpspy: ACCESSIBLE is set: the TUI does not start; 'mcpspy {command}' {rest}",
            [],
        )
        assert "1 capture" in out or words
    assert f"'mcpspy show --long {path}' prints this\n" in tui("tui")[2]


def test_without_a_terminal_there_is_nothing_to_print_instead(tmp_path, tui, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert tui("tui", capture(tmp_path / "a.jsonl", ""), terminal=False)[:2] == (2, "")


@pytest.mark.parametrize("others", [False, True])
def test_a_path_that_does_not_exist_is_one_line_and_exit_code_2(tmp_path, tui, others):
    path = tmp_path / "missing.jsonl"
    status, out, err, watched = tui("tui", *([tmp_path] if others else []), path)
    assert (status, out, watched) == (2, "", [])
    assert err == f"mcpspy: {path} does not exist; 'mcpspy ls' lists the captures that exist\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"hello\n", "is not a capture: its first line is not a capture header"),
        (b"", "is empty: not a capture"),
        (
            b'{"mcpspy":2,"tool":"mcpspy 9.0"}\n',
            "has format 2, written by mcpspy 9.0; this mcpspy reads up to 1: update it",
        ),
    ],
)
def test_a_file_that_is_no_capture_is_one_line_and_exit_code_2(tmp_path, tui, content, sentence):
    (tmp_path / "a").write_bytes(content)
    assert tui("tui", tmp_path / "a") == (2, "", f"mcpspy: {tmp_path / 'a'} {sentence}\n", [])


def test_without_a_terminal_it_is_one_line_and_exit_code_2(tmp_path, tui):
    expected = "mcpspy: the TUI needs a terminal; 'mcpspy ls' and 'mcpspy show --long CAPTURE' print the same\n"
    assert tui("tui", tmp_path, terminal=False) == (2, "", expected, [])


def test_an_option_that_there_is_not_is_one_line_and_exit_code_2(tui):
    status, out, err, watched = tui("tui", "--follow")
    assert (status, out, watched) == (2, "", [])
    assert err.count("\n") == 1
    assert "see 'mcpspy --help'" in err or "see 'mcpspy tui --help'" in err


@pytest.mark.parametrize(
    ("option", "place"),
    [
        (["--web"], ("127.0.0.1", 0)),
        (["--web", "127.0.0.1:6280"], ("127.0.0.1", 6280)),
        (["--web", "[::1]:1"], ("::1", 1)),
    ],
)
def test_for_the_browser_it_takes_a_free_port_or_the_one_that_is_given(tmp_path, tui, monkeypatch, option, place):
    """A-15: on a fixed port an earlier program may have left a service worker, which could read the link."""
    served = []
    pytest.importorskip("textual_serve")
    monkeypatch.setattr("mcpspy.tui.web.page.serve", lambda *arguments: served.append(arguments) or 0)
    assert tui("tui", tmp_path, *option, terminal=False) == (0, "", "", [])
    assert served == [([str(tmp_path)], *place)]


@pytest.mark.parametrize("place", ["6280", "h:x", "captures"])
def test_a_place_for_the_browser_that_is_none_is_one_line_and_exit_code_2(tmp_path, tui, place):
    status, out, err, watched = tui("tui", tmp_path, "--web", place, terminal=False)
    assert (status, out, watched) == (2, "", [])
    assert err == f"mcpspy: --web takes HOST:PORT, such as 127.0.0.1:6280, not {place!r}\n"


def test_without_the_extra_it_names_the_command_that_installs_it(tmp_path, tui, monkeypatch):
    monkeypatch.delitem(sys.modules, "mcpspy.tui.web.page", raising=False)
    monkeypatch.delattr("mcpspy.tui.web.page", raising=False)
    for name in [name for name in sys.modules if name.startswith("textual_serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    status, out, err, watched = tui("tui", tmp_path, "--web", terminal=False)
    assert (status, out, watched) == (2, "", [])
    command = f"{sys.executable} -m pip install 'mcpspy[web]'"
    assert err == f"mcpspy: --web needs textual-serve, which is not installed: {command}\n"


def test_a_port_that_is_taken_is_one_line_that_names_the_option(tmp_path, tui):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, err, _ = tui("tui", tmp_path, "--web", f"127.0.0.1:{taken.getsockname()[1]}", terminal=False)
    assert status == 2
    assert err.endswith("choose another port with --web\n")
