"""The rules about expectations are in the rule table, but the judge does not run them."""

from mcpspy.conversation.history import Operations
from mcpspy.rules import RULES
from tests.each import each
from tests.rules.examples import findings


@each("rule", [it for it in RULES.values() if it.id.startswith("expect/")], ids=lambda rule: rule.id)
def test_the_judge_finds_nothing_by_them(rule):
    found = findings(rule.fails, operations=Operations())
    assert [it.rule for it in found if it.rule.startswith("expect/")] == []
