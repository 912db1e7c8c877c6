"""The judge does not run the rules about locks; `tests/contract/test_locked.py` tests what they find."""

from mcpspy.rules import RULES
from tests.rules.examples import judged, records, unlocked


def test_only_a_lock_finds_something():
    rules = [rule for rule in RULES.values() if rule.id.startswith("lock/")]
    assert len(rules) == 5
    for rule in rules:
        assert not [it for it in judged(records(rule.fails)) if it.rule.startswith("lock/")]
        assert [it.rule for it in unlocked(rule.fails)] == [rule.id]
