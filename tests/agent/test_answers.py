import pytest

from mcpspy.agent.answers import address, cursor_at, facts, fitting, milliseconds, place_of, split_address
from mcpspy.errors import UsageError


def test_an_address_names_a_capture_and_a_line():
    assert split_address(address("3d345f", 17)) == ("3d345f", 17)


@pytest.mark.parametrize("text", ["", "17", "3d345f", "#", "3d#x", "3d#-1", "3d#" + "9" * 30])
def test_what_is_no_address_says_how_one_looks(text):
    with pytest.raises(UsageError, match="one looks like 3d345f#17"):
        split_address(text)


def test_facts_leave_out_what_there_is_not():
    assert facts(a=0, b="", c=None, d=[], e=False, from_="client") == {"a": 0, "e": False, "from": "client"}


def test_a_cursor_belongs_to_one_question():
    cursor = cursor_at(("rows", "a"), 40)
    assert place_of(cursor, ("rows", "a")) == 40
    assert place_of("", ("rows", "a")) == 0


@pytest.mark.parametrize("text", ["40", "x", "40-00000000", "-1-2", cursor_at(("rows", "b"), 40), "9" * 40])
def test_another_cursor_is_refused(text):
    with pytest.raises(UsageError, match="does not belong to this question"):
        place_of(text, ("rows", "a"))


def test_as_many_as_there_is_room_for_and_one_at_least():
    assert list(fitting(["aaaa", "bbbb", "cccc"], 16, 10)) == ["aaaa", "bbbb"]
    assert list(fitting(["a" * 100], 10, 10)) == ["a" * 100]
    assert list(fitting("abc", 1000, 2)) == ["a", "b"]


def test_latencies_are_milliseconds():
    assert milliseconds(1_234_567) == 1.235
    assert milliseconds(None) is None
