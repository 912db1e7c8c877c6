import os
import subprocess
import sys

import pytest

from mcpspy import cli
from mcpspy.cli.commands import COMMANDS
from tests.cli.conftest import refusal
from tests.limits import LIMIT


def test_the_help_groups_the_commands_by_task_and_fits_a_terminal(run):
    _, out, _ = run("--help")
    groups = [line.rstrip(":") for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups == ["Record", "Look", "Check", "Replay", "Share", "Set up", "Options"]
    assert max(map(len, out.splitlines())) < 80


def test_the_help_of_all_commands_imports_none_of_them():
    script = "from mcpspy.cli.commands import run; import sys; run(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not {f"mcpspy.cli.{command.module or command.name}" for command in COMMANDS.values()} & loaded
    assert not {"argparse", "difflib", "mcpspy.rules", "textual", "rich"} & loaded


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["shwo"], "there is no command 'shwo'; did you mean 'show'?"),
        (["prnue"], "did you mean 'prune'?"),
        (["wrpa"], "did you mean 'wrap'?"),
        (["xyzzy"], "the commands are wrap, "),
        (["/etc/passwd"], "there is no command '/etc/passwd'; to open this file: mcpspy tui /etc/passwd"),
        (["--verbose"], "there is no option '--verbose'; did you mean '--version'?"),
        (["--quick"], "there is no option '--quick'; see 'mcpspy --help'"),
        (["show", "a", "b"], "unexpected argument b"),
        (["show", "--jsno", "a"], "--jsno"),
        (["show", "--js", "a"], "--js"),
        (["ls", "a", "b"], "unexpected argument b"),
        (["prune"], "--older 30d, --keep 2GB"),
        (["prune", "--older"], "--older"),
        (["wrap"], "wrap needs the server's command after '--'"),
        (["wrap", "--"], "wrap needs the server's command after '--'"),
        (["wrap", "true"], "put '--' before the server's command: mcpspy wrap -- true"),
        (["wrap", "--nmae", "x", "--", "true"], "did you mean '--name'?"),
        (["wrap", "--name", "--", "true"], "--name needs a value"),
        (["wrap", "--name=", "--", "true"], "--name needs a value"),
        (["wrap", "-o", "a", "--capture-dir", "b", "--", "true"], "give one of them"),
        (["--", "wrap"], ""),
        (["--", "show"], ""),
        ([""], ""),
        (["", "x"], ""),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, arguments, hint):
    """The line names the mistake and the nearest alternative."""
    assert hint in refusal(run(*arguments))


def test_help_for_wrap_is_shown_without_a_command(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["mcpspy", "wrap", "--help"])
    assert cli.main() == 0
    out = capfd.readouterr().out
    assert out.startswith("usage: mcpspy wrap")
    assert max(map(len, out.splitlines())) < 80


def test_an_interrupt_ends_quietly(run, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mcpspy.cli.commands.run", interrupt)
    assert run("ls") == (130, "", "")


def test_a_bug_of_ours_is_not_hidden(run, monkeypatch):
    """Only errors that the user can do something about become one line."""

    def stumble(_):
        raise ZeroDivisionError

    monkeypatch.setattr("mcpspy.cli.commands.run", stumble)
    with pytest.raises(ZeroDivisionError):
        run("ls")


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["shwo"], 2), (["ls", "/nowhere"], 2)])
def test_the_exit_status_is_that_of_the_process(arguments, status):
    root = os.path.dirname(os.path.dirname(os.path.dirname(cli.__file__)))
    command = [sys.executable, "-m", "mcpspy", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=LIMIT)
    assert run.returncode == status
    assert (run.stderr.count("\n"), "Traceback" in run.stderr) == (int(status != 0), False)
