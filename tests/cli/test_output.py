import os
import subprocess
import sys

import pytest

from mcpspy.cli.output import confirmed, explain, has_colours, path_text, say
from tests import limits


def test_what_is_said_is_one_line_on_stderr(capsys):
    """F-08."""
    say("a\nb\x1b[2J")
    assert capsys.readouterr() == ("", "mcpspy: a\\nb\\e[2J\n")


@pytest.mark.parametrize(
    ("terminal", "no_color", "expected"),
    [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)],
)
def test_colours_are_for_terminals_whose_user_wants_them(monkeypatch, terminal, no_color, expected):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert has_colours() is expected


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/home/me", "~"), ("/home/me/a\x1b", "~/a\\e"), ("/home/me2/a", "/home/me2/a"), ("a", "a"), ("/", "/")],
)
def test_a_path_does_not_tell_whose_home_it_is_in(monkeypatch, path, shown):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("USERPROFILE", "/home/me")
    assert path_text(path.replace("/", os.sep)) == shown.replace("/", os.sep)


PRINTS = "from mcpspy.cli.output import prepare_streams; prepare_streams(); print('\\udc80 ä', flush=True)"


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_22_an_error_of_stdout_is_marked_as_one(options):
    program = [sys.executable, *options, "-X", "utf8", "-c", PRINTS]
    done = limits.run(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\\udc80 \xc3\xa4\n", b"")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            done = limits.run(program, stdout=full, stderr=subprocess.PIPE)
        assert b"mcpspy.output_file.WriteError: [Errno 28] No space left on device" in done.stderr
    read, write = os.pipe()
    os.close(read)
    done = limits.run(program, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert b"mcpspy.output_file.OutputClosed: [Errno 32] Broken pipe" in done.stderr


def test_lines_that_explain_a_notice_are_printable_too(capsys):
    """A-14."""
    explain("a\x9b", "b\nc")
    assert capsys.readouterr() == ("", "a\\x9b\nb\\nc\n")


@pytest.mark.parametrize(("answer", "agreed"), [("y", True), (" YES ", True), ("", False), ("no", False)])
def test_a_question_is_printable(monkeypatch, answer, agreed):
    """A-14."""
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or answer)
    assert confirmed("Write a\x9b?") is agreed
    assert asked == ["Write a\\x9b? [y/N] "]
