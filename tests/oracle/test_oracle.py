"""Every output is as it was frozen: `scripts/oracle --diff` shows what differs, `scripts/oracle --renew` freezes it."""

import pytest

from tests.oracle import frozen
from tests.oracle.captures import PATCHED, PLANTED, SPOILED


@pytest.mark.parametrize("group", frozen.GROUPS)
def test_every_output_is_the_frozen_one(group):
    now, found = frozen.compare(lambda case: case.partition("/")[0] == group)
    assert now
    assert not found, f"{len(found)} outputs differ: scripts/oracle --diff {group}\n" + "\n".join(found[:20])


def test_every_case_belongs_to_a_group():
    assert {case.partition("/")[0] for case, _ in frozen.read()} == set(frozen.GROUPS)
    assert PATCHED + SPOILED + PLANTED == 300


def test_what_differs_is_named():
    before = {("a", "show"): "1", ("a", "check"): "2", ("b", "show"): "3"}
    now = {("a", "show"): "1", ("a", "check"): "4", ("c", "show"): "5"}
    assert frozen.differences(before, now) == ["a: check", "b: show (gone)", "c: show (new)"]
