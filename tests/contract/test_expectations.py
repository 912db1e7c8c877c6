"""Expectations as values: their titles, joined expectations, and comparisons."""

from mcpspy.contract.expectations import (
    Expectations,
    NoErrors,
    SessionDuration,
    StderrWithout,
    ToolCalled,
    ToolForbidden,
    times_text,
)
from tests.each import each


@each(
    "least, most, told",
    [
        (1, None, ""), (2, None, " at least 2 times"), (1, 1, " once"), (3, 3, " 3 times"),
        (0, 1, " at most 1 time"), (0, 2, " at most 2 times"), (1, 4, " 1 to 4 times"),
    ],
)  # fmt: skip
def test_a_number_of_times_is_told_in_words(least, most, told):
    assert times_text(least, most) == told


def test_a_title_names_tool_arguments_and_server():
    expected = ToolCalled("wea*", "get_*", (("/city", "Oslo"), ("/days", 3)), 1, 1)
    assert expected.title == 'get_* with /city "Oslo" and /days 3 is called once, of server wea*'


def test_what_two_expect_counts_once_and_slow_calls_are_those_of_the_first():
    one = Expectations((NoErrors(None), SessionDuration(None, 1)), 5)
    two = Expectations((NoErrors(None), NoErrors("x"), SessionDuration(None, 1_000)))
    assert one.joined(two) == Expectations(
        (NoErrors(None), SessionDuration(None, 1), NoErrors("x"), SessionDuration(None, 1_000)), 5
    )
    assert two.joined(one).slow_call == 5


def test_a_call_is_one_that_counts_by_name_and_arguments():
    expected = ToolForbidden(None, "a*", (("/x", 1),))
    assert expected.counts("ab", {"x": 1})
    assert not expected.counts("b", {"x": 1})
    assert not expected.counts(None, {"x": 1})
    assert expected.misses({}) == ["/x"]
    assert expected.seen({}, "/x") == "missing"
    assert expected.seen({"x": None}, "/x") == "null"


def test_a_long_line_with_many_stars_takes_no_time():
    assert not StderrWithout(None, "*a" * 500 + "b").finds("a" * 100_000)
