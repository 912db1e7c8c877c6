"""Two values as an outline. Its differences are those of `mcpspy diff`, and equal parts are folded."""

import pytest
from hypothesis import given

from mcpspy.replay.differences import ABSENT, Difference, differences
from mcpspy.timeline import Row
from mcpspy.tui.model import comparison
from mcpspy.tui.model.comparison import DIFFERENT, ComparisonOutline, bare, comparable, compared, listed
from tests.replay.compare.test_values import JSON


def told(outline):
    """Return each line: depth, label, state, and whether it is folded."""
    return [
        (it.depth, f"{len(it.run)} equal" if it.run else it.pairing.label, it.pairing.state, it.folded)
        for it in outline.lines()
    ]


def leaves(pairing):
    if pairing.state in DIFFERENT:
        return [pairing]
    return [leaf for part in pairing.parts or () for leaf in leaves(part)]


@given(JSON, JSON)
def test_what_differs_is_what_diff_reports(one, other):
    """R-15."""
    found = compared(one, other)
    told_there = [(it.path, it.recorded, it.observed) for it in leaves(found)]
    assert repr(told_there) == repr([(it.path, it.recorded, it.observed) for it in differences(one, other)])
    assert found.differing == len(told_there)
    ComparisonOutline(found).lines()


@given(JSON)
def test_a_value_does_not_differ_from_itself(value):
    outline = ComparisonOutline(compared(value, value))
    outline.show_everything(everything=True)
    assert not any(it.pairing.state in DIFFERENT for it in outline.lines())


def test_what_is_equal_is_folded_and_unfolds():
    outline = ComparisonOutline(compared({"a": 1, "b": {"c": [1]}, "d": 2}, {"a": 1, "b": {"c": [1]}, "d": 3}))
    assert told(outline) == [(0, "2 equal", "same", True), (0, "d", "changed", None)]
    outline.turn(outline.lines()[0])
    assert told(outline) == [
        (0, "2 equal", "same", False),
        (1, "a", "same", None),
        (1, "b", "same", True),
        (0, "d", "changed", None),
    ]
    outline.turn(outline.lines()[2])
    assert told(outline)[2:4] == [(1, "b", "same", False), (2, "c", "same", True)]
    outline.show_everything(everything=True)
    assert [label for _, label, *_ in told(outline)] == ["a", "b", "c", "[0]", "d"]
    outline.show_everything(everything=False)
    assert len(outline.lines()) == 2


def test_an_item_more_at_the_top_is_one_difference():
    """R-15."""
    found = compared({"result": {"content": [{"text": "b"}]}}, {"result": {"content": [{"text": "a"}, {"text": "b"}]}})
    assert (found.differing, found.volatile) == (1, 0)
    assert told(ComparisonOutline(found)) == [
        (0, "result", "parts", False),
        (1, "content", "parts", False),
        (2, "[0]", "extra", True),
        (2, "[0]", "same", True),
    ]


def test_what_only_one_side_has_unfolds_if_it_is_large():
    outline = ComparisonOutline(compared({"a": {"b": "x" * 80, "c": {"d": 1}}}, {}))
    assert told(outline) == [(0, "a", "missing", False), (1, "b", "missing", None), (1, "c", "missing", True)]
    assert outline.root.differing == 1


def test_the_lines_of_texts_are_aligned_and_are_one_difference():
    outline = ComparisonOutline(compared({"a": "one\ntwo\nthree\nfour"}, {"a": "one\ntwo\n3\nnew\nfour"}))
    assert outline.root.differing == 1
    assert told(outline) == [
        (0, "a", "changed", False),
        (1, "2 equal", "same", True),
        (1, "", "changed", None),
        (1, "", "extra", None),
        (1, "", "same", None),
    ]


def test_what_is_new_in_each_run_and_what_is_not_compared_look_so():
    found = compared(
        {"result": {"at": "2026-01-01T00:00:00Z", "serverInfo": {"version": "1"}}},
        {"result": {"at": "2026-01-02T00:00:00Z", "serverInfo": {"version": "2"}}},
    )
    assert (found.differing, found.volatile) == (1, 1)
    assert [it.pairing.state for it in ComparisonOutline(found).lines()] == ["parts", "volatile", "same"]
    info = found.parts[0].parts[1]
    assert [it.state for it in info.opened()] == ["passed"]


def test_differences_that_were_found_stand_below_each_other():
    found = listed([Difference(("result", "a/b"), 1, ABSENT), Difference((), "x", "y")])
    assert [(it.label, it.state) for it in found.opened()] == [("/result/a~1b", "missing"), ("(the whole)", "changed")]
    assert found.differing == 2


def test_a_depth_that_nobody_means_is_one_difference():
    deep = 1
    for _ in range(1200):
        deep = {"a": deep}
    found = compared({"a": deep}, {"a": deep, "b": 1})
    assert (found.state, found.differing) == ("changed", 1)
    assert ComparisonOutline(found).lines()
    assert ComparisonOutline(compared({"a": deep}, {})).lines(), "of one side alone"


@pytest.mark.parametrize("levels", range(100, 1000, 50))
def test_what_is_equal_at_any_depth_unfolds(levels):
    deep = 1
    for _ in range(levels):
        deep = {"a": deep}
    outline = ComparisonOutline(compared({"x": deep, "b": 1}, {"x": deep, "b": 2}))
    outline.show_everything(everything=True)
    assert outline.lines()


def test_an_outline_has_an_end(monkeypatch):
    monkeypatch.setattr(comparison, "MOST", 5)
    assert len(ComparisonOutline(compared(list(range(10)), [str(n) for n in range(10)])).lines()) == 5


def row(raw, value=None, text=None):
    return Row(1, 0, "request", "client", raw=raw, value=value, text=text)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(b"x", {"jsonrpc": "2.0", "id": 1, "method": "ping"})], {"method": "ping"}),
        ([row(b"x", {"result": 1}), row(b"x", 5)], [{"result": 1}, 5]),
        ([row(b"no\xff")], "no\ufffd"),
        ([row(b"", text="ended")], "ended"),
    ],
)
def test_a_message_is_compared_without_its_envelope(rows, expected):
    assert comparable(rows) == expected
    assert bare([1]) == [1]
