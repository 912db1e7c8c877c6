"""The table of replaced and kept values that the user sees before a scrub is written."""

import pytest

from mcpspy.cli.arguments import Parser
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.share import agreed, refuse_without_terminal, scrub_options
from mcpspy.errors import UsageError
from mcpspy.sharing.scrub import Scrub
from tests.transcript import capture


def options(*words):
    return Parser(COMMANDS["scrub"]).parse_args(["a.jsonl", *words])


def test_the_options_are_those_of_a_scrub():
    found = scrub_options(options("--replace", "a+", "--replace", "b", "--keep", "/params/x", "--only-secrets"))
    assert ([each.pattern for each in found.replace], found.keep, found.only_secrets) == (
        ["a+", "b"],
        ("/params/x",),
        True,
    )


def test_what_is_no_regular_expression_is_refused():
    with pytest.raises(UsageError, match=r"--replace '\(' is not a regular expression: missing"):
        scrub_options(options("--replace", "("))


def test_the_table_shows_values_that_look_random_by_their_first_letters_only(tmp_path, capsys):
    odd = "q7Zx" + "Lm29TfWpR4sVbN81KdYc"
    path = capture(tmp_path / "a.jsonl", f'> 1 tools/call {{"name":"x"}}\n! jane@corp.example {odd}\x1b[2J')
    assert agreed(Scrub(path), path, "out.html", yes=True)
    out = capsys.readouterr().out
    assert "email-1@redacted.invalid" in out
    assert odd not in out
    assert "\x1b" not in out


def test_it_asks_where_somebody_can_answer(monkeypatch):
    with pytest.raises(UsageError, match="scrub asks before it writes"):
        refuse_without_terminal("scrub", yes=False)
    refuse_without_terminal("scrub", yes=True)
