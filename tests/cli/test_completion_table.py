"""The completion table has all options and arguments that the commands declare."""

import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mcpspy import cli
from mcpspy.cli import complete, completion_table
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.complete import answer, read_table

TABLE = read_table()
INNER = [(name, inner) for name, node in TABLE["commands"].items() for inner in node.get("commands", ())]


def test_the_table_is_that_of_the_commands():
    written = Path(complete.TABLE).read_text(encoding="utf-8")
    assert written == completion_table.document(), "scripts/write-rules writes it"


@pytest.mark.parametrize("words", [*([name] for name in COMMANDS), *INNER], ids=" ".join)
def test_each_option_that_a_help_lists_is_offered_and_explained(words, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["mcpspy", *words, "--help"])
    with suppress(SystemExit):
        cli.main()
    heads = re.findall(r"^  (-.*?)(?:  |$)", capfd.readouterr().out, re.MULTILINE)
    options = {option for head in heads for option in re.findall(r"(?<![^\s,])--?[a-z][a-z-]*", head)}
    found = answer(TABLE, [*words, "-"]).words
    assert {"-h", "--help"} <= options == set(found)
    assert all(found.values())


def test_every_command_is_offered_with_its_text():
    assert answer(TABLE, [""]).words == {name: command.help for name, command in COMMANDS.items()}
    assert set(answer(TABLE, ["-"]).words) == {"-h", "--help", "--version"}
    assert sorted(INNER) == [
        ("ca", "env"), ("ca", "export"), ("ca", "status"), ("schema", "diff"), ("schema", "list"), ("schema", "show"),
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["check", "--format", ""], ["export", "--format", ""], ["mock", "--pace", ""]])
def test_choices_are_offered(words):
    assert len(answer(TABLE, words).words) > 1
