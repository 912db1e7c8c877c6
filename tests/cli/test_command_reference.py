"""docs/commands.md lists every command and option that the parsers declare."""

import re
from pathlib import Path

import pytest

from mcpspy.cli import command_reference
from mcpspy.cli.complete import read_table

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
COMMANDS = read_table()["commands"]


def test_the_page_is_that_of_the_commands():
    assert PAGE.read_text(encoding="utf-8") == command_reference.document(), "scripts/write-rules writes it"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section_with_all_its_options(name):
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^##+ (?!#)(?!mcpspy \w+ )", text.partition(f"### mcpspy {name}\n")[2], flags=re.MULTILINE)[0]
    for node in (COMMANDS[name], *COMMANDS[name].get("commands", {}).values()):
        for option in set(node["options"]) - {"-h", "--help"}:
            assert re.search(rf"(?<![-\w]){re.escape(option)}(?![-\w])", section), option
    for inner in COMMANDS[name].get("commands", ()):
        assert f"#### mcpspy {name} {inner}\n" in section


def test_no_cell_of_a_table_breaks_it():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)
