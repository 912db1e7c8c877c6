"""`mcpspy rules`: the table, and one rule explained."""

from mcpspy.rules import FORMER


def test_a_rule_is_explained_by_the_id_that_it_had_before(rules, monkeypatch):
    monkeypatch.setitem(FORMER, "tools/args", "tools/arguments")
    assert rules("tools/args") == rules("tools/arguments")
