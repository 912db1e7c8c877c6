import os
import sys

import pytest

from mcpspy.cli.output import has_colours, path_text, say


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
