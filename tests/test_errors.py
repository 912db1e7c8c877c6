import inspect
import re

import pytest

import mcpspy.errors
from mcpspy import cli
from mcpspy.errors import CaptureError, FilterError, McpspyError, NewerFormat, NotACapture, SpawnError, UsageError

CLASSES = {name: value for name, value in vars(mcpspy.errors).items() if inspect.isclass(value)}


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    parents = {}
    above = {}
    for line in mcpspy.errors.__doc__.splitlines():
        if match := re.match(r"    (?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+) {2}", line):
            depth = len(match["branch"]) // 4
            above[depth] = match["name"]
            parents[match["name"]] = above[depth - 1] if depth else "Exception"
    assert parents == {name: value.__base__.__name__ for name, value in CLASSES.items()}


@pytest.mark.parametrize(
    "error",
    [
        UsageError("wrap needs a command"),
        FilterError("unknown key 'metod' at column 1; did you mean method?", 1),
        SpawnError("cannot start 'x': not found", "not found", SpawnError.NOT_FOUND),
        CaptureError("cannot read x: no such file"),
        NotACapture("x is empty: not a capture"),
        NewerFormat("x has format 2"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_ends_as_one_line_and_exit_code_2(error, monkeypatch, capsys):
    def fail(_):
        raise error

    monkeypatch.setattr("sys.argv", ["mcpspy", "ls"])
    monkeypatch.setattr("mcpspy.cli.commands.run", fail)
    assert cli.main() == 2
    assert capsys.readouterr() == ("", f"mcpspy: {error}\n")


def test_every_error_is_an_error():
    assert all(issubclass(value, McpspyError) for value in CLASSES.values())


def test_a_command_that_cannot_start_has_the_status_that_says_so():
    """S-05."""
    assert (SpawnError.NOT_FOUND, SpawnError.NOT_EXECUTABLE) == (127, 126)
    assert SpawnError("x", "not found", 126).status == 126
