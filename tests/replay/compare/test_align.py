"""Which entries of two arrays correspond; `test_values.py` tests the comparison that uses it."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.align import aligned, by_order

ITEMS = st.lists(
    st.integers(0, 5) | st.fixed_dictionaries({"id": st.integers(0, 4), "v": st.integers(0, 2)}), max_size=8
)
KEYS = (json.dumps,)


@given(ITEMS, ITEMS)
def test_each_item_is_in_one_pair(one, other):
    """R-15."""
    for pairs in (aligned(one, other, KEYS), list(by_order(one, other, KEYS))):
        assert sorted(first for first, _ in pairs if first is not None) == list(range(len(one)))
        assert sorted(second for _, second in pairs if second is not None) == list(range(len(other)))


@given(ITEMS, ITEMS)
def test_two_arrays_the_other_way_round_give_the_same_pairs_the_other_way_round(one, other):
    """R-15."""
    back = {(first, second) for second, first in aligned(other, one, KEYS)}
    assert set(aligned(one, other, KEYS)) == back


@given(ITEMS)
def test_an_array_is_aligned_with_itself(items):
    """R-15."""
    assert sorted(aligned(items, list(items), KEYS)) == [(place, place) for place in range(len(items))]


@pytest.mark.parametrize("length", [20_000])
def test_a_long_array_takes_no_longer_than_sorting_it(length):
    """R-15: an edit script in quadratic time would practically not end."""
    one = list(range(length))
    other = one.copy()
    random.Random(1).shuffle(other)  # noqa: S311 (the same in every run)
    pairs = list(by_order(one, other, (str,)))
    assert len({first for first, _ in pairs} - {None}) == length
    changed = [*one[: length // 2], -1, *one[length // 2 :]]
    assert [pair for pair in by_order(one, changed, (str,)) if pair[0] is None] == [(None, length // 2)]
