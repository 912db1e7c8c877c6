"""Options with named values. The usage mistakes of every command are in `test_commands.py`."""

import argparse

import pytest

from mcpspy.cli.arguments import Parser, choice, offer, offered
from mcpspy.errors import UsageError


@pytest.fixture
def parser():
    parser = Parser(prog="mcpspy x")
    choice(parser, "--format", ("text", "json"), "format of the report", "FORMAT")
    return parser


def test_the_first_name_is_the_default(parser):
    assert parser.parse_args([]) == argparse.Namespace(format="text")
    assert parser.parse_args(["--format", "json"]) == argparse.Namespace(format="json")


def test_the_help_lists_the_names(parser):
    assert "--format FORMAT  format of the report: text, json (default: text)" in parser.format_help()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--format", "jsn"], "--format cannot be 'jsn'; did you mean 'json'?"),
        (["--format", "x"], "--format cannot be 'x'; it takes text, json"),
        (["--form", "json"], "there is no option '--form'; did you mean '--format'? see 'mcpspy x --help'"),
        (["https://me:secret@host/"], "see 'mcpspy x --help'"),
    ],
)
def test_a_mistake_is_one_sentence(parser, given, sentence):
    with pytest.raises(UsageError) as raised:
        parser.parse_args(given)
    assert sentence in str(raised.value)
    assert "secret" not in str(raised.value)


def test_names_are_offered_to_shells_and_judged_by_the_command():
    parser = Parser(prog="mcpspy x")
    action = parser.add_argument("--rule")
    assert offered(action) is None
    offer(action, {"a": "the first"})
    assert offered(action) == {"a": "the first"}
    assert parser.parse(["--rule", "b"], argparse.Namespace()).rule == "b"
