import json

import pytest

from mcpspy.clients.withheld import withheld


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"env": {"DB": "pass", "N": 1, "E": ""}}, {"env": {"DB": "«withheld»", "N": 1, "E": ""}}),
        ({"headers": {"X": ["a", {"b": "c"}]}}, {"headers": {"X": ["«withheld»", {"b": "«withheld»"}]}}),
        ({"api_key": "s"}, {"api_key": "«withheld»"}),
        ({"args": ["--token", "s", "--x", "y"]}, {"args": ["--token", "«withheld»", "--x", "y"]}),
        ({"args": ["A_TOKEN=s", ["sk-abc123"]]}, {"args": ["A_TOKEN=«withheld»", ["«withheld»"]]}),
        ({"url": "https://u:p@h/?api_key=s&q=1"}, {"url": "https://u:«withheld»@h/?api_key=«withheld»&q=1"}),
        ({"command": "npx", "args": ["-y", "--name"]}, {"command": "npx", "args": ["-y", "--name"]}),
    ],
)
def test_secrets_and_nothing_else_are_withheld(entry, shown):
    text = json.dumps({"servers": {"s": entry}})
    assert json.loads(withheld(text, "json")) == {"servers": {"s": shown}}


def test_all_else_is_as_it_was_written():
    text = '{ // c\r\n\t"env" : { "A":"s" , }, /* d */ "x":\'\'}'.replace("''", '"\\u0041"')
    assert withheld(text, "json") == text.replace('"s"', '"«withheld»"')
    assert withheld("env: {A: s}\nb: x", "yaml") == 'env: {A: "«withheld»"}\nb: x'
    assert withheld("env.A = 's'\nb = 'x'", "toml") == "env.A = \"«withheld»\"\nb = 'x'"


def test_an_alias_is_withheld_once():
    assert withheld("env:\n  A: &a s\n  B: *a\n", "yaml").count("«withheld»") == 1
