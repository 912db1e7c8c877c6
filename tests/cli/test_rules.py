"""`mcpspy rules`: the table, and one rule explained."""

from mcpspy.report.catalogue import explanation, overview
from mcpspy.rules import FORMER, RULES
from tests.cli.conftest import refusal


def test_a_rule_is_explained_by_the_id_that_it_had_before(rules, monkeypatch):
    monkeypatch.setitem(FORMER, "tools/args", "tools/arguments")
    assert rules("tools/args") == rules("tools/arguments")


def test_the_rules_are_listed_and_one_is_explained_and_a_wrong_name_has_a_nearest(rules):
    assert rules()[1].split() == overview().split()
    assert rules("tools/arguments")[0] == 0
    assert rules("tools/arguments")[1].split() == explanation(RULES["tools/arguments"]).split()
    assert "did you mean 'tools/arguments'" in refusal(rules("tool/argument"))
