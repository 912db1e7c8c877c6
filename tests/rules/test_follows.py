"""One fault gives one finding: the most specific rule reports it, and findings that follow from it are left out."""

import pytest

from mcpspy.rules import RULES
from mcpspy.rules.follows import FOLLOWS, FOLLOWS_FROM_LOCK, LOST_ANSWER, UNFIT, specific
from mcpspy.rules.rule import Fault


def test_the_tables_name_rules():
    assert {*FOLLOWS, *UNFIT, *LOST_ANSWER, *(name for names in FOLLOWS.values() for name in names)} <= {*RULES}
    assert {*FOLLOWS_FROM_LOCK, *FOLLOWS_FROM_LOCK.values()} <= {*RULES}


class CountedPointer(str):
    """A pointer that counts how often it is formatted, hashed, compared or split."""

    __slots__ = ()
    looked_at = 0

    def _count(self):
        type(self).looked_at += 1

    def __format__(self, spec):
        self._count()
        return super().__format__(spec)

    def __hash__(self):
        self._count()
        return super().__hash__()

    def __eq__(self, other):
        self._count()
        return super().__eq__(other)

    def rpartition(self, separator):
        self._count()
        return super().rpartition(separator)


@pytest.mark.parametrize(
    "rules", [("schema/invalid", "tools/schema-invalid"), ("tools/schema-invalid", "schema/format")]
)
def test_how_often_a_pointer_is_looked_at_does_not_grow_with_the_number_of_faults(rules):
    """R-07: one response may have thousands of invalid entries."""
    CountedPointer.looked_at = 0
    some = 300
    pointers = [CountedPointer(f"/result/tools/{n}/inputSchema") for n in range(some)]
    specific([(RULES[name], Fault("bad", pointer)) for pointer in pointers for name in rules])
    assert CountedPointer.looked_at <= 20 * some


@pytest.mark.parametrize(
    ("general", "better", "left"),
    [
        ("", "/result/tools/0", 1),
        ("/result/tools/0", "", 1),
        ("/result/tools/0", "/result/tools/0", 1),
        ("/result/tools/1", "/result/tools/0", 2),
        ("/result/tools/10", "/result/tools/1", 2),
        ("/result/tools/1", "/result/tools/10", 2),
    ],
)
def test_a_fault_follows_where_one_pointer_lies_within_the_other(general, better, left):
    """R-07."""
    faults = [(RULES["schema/invalid"], Fault("a", general)), (RULES["tools/schema-invalid"], Fault("b", better))]
    assert len(specific(faults)) == left
