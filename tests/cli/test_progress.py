import io
import subprocess
import sys

import pytest

from mcpspy.cli import progress
from mcpspy.cli.progress import ProgressBar
from tests.limits import LIMIT


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that makes stderr a terminal with a bar at once. pytest resets stderr after the setup."""
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def attach():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return attach


def work():
    with ProgressBar("checking [red]", 100) as bar:
        bar.advance(40)
        print("a result")
        bar.advance(60)


def test_the_bar_is_on_stderr_and_results_are_on_stdout(terminal, capsys):
    screen = terminal()
    work()
    assert capsys.readouterr().out == "a result\n"
    assert "checking [red]" in screen.getvalue()
    assert "40%" in screen.getvalue()


def test_what_is_written_above_the_bar_is_made_safe(terminal):
    """A-14: rich writes it to the terminal itself, after it has interpreted escape sequences such as links."""
    screen = terminal()
    with ProgressBar("checking", 100) as bar:
        bar.advance(40)
        print("a \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9b31m \u202e", file=sys.stderr)
    assert sys.stderr is screen
    shown = screen.getvalue()
    assert not {"\x9b", "\u202e"} & set(shown)
    assert "]8;" not in shown.replace("\\u001b]8;;http://x", "").replace("\\u001b]8;;", "")
    assert "\\u009b31m \\u202e" in shown


def test_the_bar_goes_away_with_an_exception_too(terminal):
    def stumble():
        with ProgressBar("checking", 100) as bar:
            bar.advance(1)
            raise KeyError

    screen = terminal()
    with pytest.raises(KeyError):
        stumble()
    assert "\x1b[?25h" in screen.getvalue(), "the cursor is back"


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("TERM", "dumb")])
def test_in_ci_and_on_a_terminal_without_movement_there_is_none(terminal, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    screen = terminal()
    work()
    assert screen.getvalue() == ""


def test_work_that_is_done_soon_has_none(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 1e9)
    screen = terminal()
    work()
    assert screen.getvalue() == ""


def test_without_a_terminal_nothing_is_imported_and_nothing_written():
    script = (
        "import sys; from mcpspy.cli import progress; progress.PATIENCE = 0\n"
        "with progress.ProgressBar('checking', 10) as bar: bar.advance(5)\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert (done.stdout, done.stderr) == ("False\n", "")
