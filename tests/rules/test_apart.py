"""The rules about expectations and locks are in the table of rules, but the judge does not run them.

`tests/contract/` tests what they find.
"""

from mcpspy.conversation.facts import Operations
from mcpspy.rules import RULES
from tests.each import each
from tests.rules.examples import judged, records, unlocked

APART = [rule for rule in RULES.values() if rule.id.startswith(("expect/", "lock/"))]


@each("rule", APART, ids=lambda rule: rule.id)
def test_the_judge_finds_nothing_by_them(rule):
    found = judged(records(rule.fails), operations=Operations())
    assert not [it for it in found if it.rule.startswith(("expect/", "lock/"))]
    assert [it.rule for it in unlocked(rule.fails)] == ([rule.id] if rule.id.startswith("lock/") else [])


def test_there_are_five_rules_about_locks():
    assert sum(rule.id.startswith("lock/") for rule in APART) == 5
