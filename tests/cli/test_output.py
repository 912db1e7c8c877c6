import sys

import pytest

from mcpspy.cli.output import has_colours, say


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
