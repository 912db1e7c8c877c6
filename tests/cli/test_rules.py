"""`mcpspy rules`: the table, and one rule explained."""

from mcpspy.rules import FORMER, RULES


def test_the_rules_are_listed_by_group(rules):
    status, out, _ = rules()
    assert status == 0
    assert all(f"  {rule} " in out for rule in RULES)


def test_a_rule_is_explained(rules):
    status, out, _ = rules("tools/arguments")
    assert status == 0
    assert out.startswith("tools/arguments: error\n")
    assert "\nfix (client)\n" in out
    assert "\nmeanwhile (server)\n" in out


def test_a_wrong_name_answers_with_the_nearest(rules):
    status, out, err = rules("tools/argument")
    assert (status, out) == (2, "")
    assert "there is no rule 'tools/argument'; did you mean tools/arguments" in err


def test_a_rule_is_explained_by_the_id_that_it_had_before(rules, monkeypatch):
    monkeypatch.setitem(FORMER, "tools/args", "tools/arguments")
    assert rules("tools/args") == rules("tools/arguments")
