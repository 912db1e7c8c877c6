"""Members, pointers and excerpts of JSON values."""

import subprocess
import sys

import pytest

from mcpspy.json_values import (
    LONGEST_POINTER,
    Number,
    excerpt,
    member,
    nearest,
    parsed,
    pointer,
    resolve,
    steps_of,
    text_of,
    walk,
)
from tests.limits import LIMIT

EXAMPLE = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}
"""The example document of RFC 6901, section 5."""
POINTERS = {
    "": EXAMPLE, "/foo": ["bar", "baz"], "/foo/0": "bar", "/": 0, "/a~1b": 1, "/c%d": 2, "/e^f": 3, "/g|h": 4,
    "/i\\j": 5, '/k"l': 6, "/ ": 7, "/m~0n": 8,
}  # fmt: skip


def test_a_value_that_cannot_be_parsed_is_one_kind_of_error():
    assert parsed(b'{"a": [1]}') == {"a": [1]}
    for text in ("{", b"\xff", "[" * 100_000):
        with pytest.raises(ValueError, match=r"\S"):
            parsed(text)


def test_a_member_is_looked_for_in_objects_only():
    value = {"a": {"b": {"c": 1}}, "l": [1]}
    assert member(value) is value
    assert member(value, "a", "b", "c") == 1
    for names in (("x",), ("a", "x", "c"), ("l", "0"), ("a", "b", "c", "d")):
        assert member(value, *names) is None


@pytest.mark.parametrize(("text", "value"), POINTERS.items())
def test_a_pointer_resolves_as_in_rfc_6901(text, value):
    assert resolve(EXAMPLE, text) == value
    assert pointer(*steps_of(text)) == text


def test_a_pointer_escapes_names():
    assert pointer() == ""
    assert pointer("a/b", 0, "m~n", "", "~1") == "/a~1b/0/m~0n//~01"
    assert steps_of("/a~1b/0/m~0n//~01") == ("a/b", "0", "m~n", "", "~1")


@pytest.mark.parametrize("text", ["/x", "//x", *(f"/foo/{step}" for step in ["2", "-1", "00", "-", "x", "9" * 5000])])
def test_a_pointer_to_nothing_is_an_error(text):
    with pytest.raises(LookupError):
        resolve(EXAMPLE, text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/a/b/c", "/a/b"),
        ("/a/b", "/a/b"),
        ("/x/b", ""),
        ("", ""),
        ("/l/1/x", "/l"),
        ("/l/0", "/l/0"),
        ("/s~1t/0", "/s~1t"),
    ],
)
def test_the_nearest_pointer_leads_to_a_value(text, found):
    value = {"a": {"b": 1}, "l": [0], "s/t": {}}
    assert nearest(value, text) == found
    resolve(value, found)


def test_a_pointer_of_a_long_name_ends_before_it():
    name = "x" * LONGEST_POINTER
    assert nearest({"a": {name: {"b": 1}}}, pointer("a", name, "b")) == "/a"
    assert nearest({name[1:]: 1}, pointer(name[1:])) == pointer(name[1:])


def test_a_walk_comes_to_each_value_in_its_order():
    value = {"a": [1, {"b/c": None}], "d": {}, "e": []}
    found = [(pointer(*path), inner) for path, inner in walk(value)]
    assert [text for text, _ in found] == ["", "/a", "/a/0", "/a/1", "/a/1/b~1c", "/d", "/e"]
    assert all(resolve(value, text) == inner for text, inner in found)
    assert list(walk(5)) == [([], 5)]


def test_a_walk_goes_to_any_depth():
    value = []
    for _ in range(100_000):
        value = [value]
    assert sum(1 for _ in walk(value)) == 100_001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 100, '"' + "x" * 59 + '…"'),
        ("\n\ud800", '"\\n\ud800"'),
        ({}, "{}"),
        ({"a": 1, "b" * 50: {}}, '{"a": …, "bbbbbbbbbbbbbbbbbbbb": …}'),
        (dict.fromkeys("abcdefgh"), '{"a": …, "b": …, "c": …, "d": …, "e": …, "f": …, …}'),
        ([], "[]"),
        ([1, 2], "an array of 2"),
        (None, "null"),
        (True, "true"),
        (10**70, "a number of many digits"),
        (-(10**900), "a number of many digits"),
        (float("inf"), "Infinity"),
    ],
)
def test_an_excerpt_is_short(value, text):
    assert excerpt(value) == text


def test_a_number_of_any_length_is_quoted_by_its_digits():
    """R-05."""
    assert excerpt(Number("9" * 50)) == "9" * 50
    assert excerpt(Number("9" * 5000)) == "9" * 59 + "…"


def test_the_module_is_light():
    """S-13: the gate imports it before the first byte."""
    program = "import sys; before = set(sys.modules); import mcpspy.json_values; print(*set(sys.modules) - before)"
    run = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    assert set(run.stdout.split()) == {"mcpspy", "mcpspy.json_values", "_json"}


def test_a_text_to_compare_by_is_the_same_for_equal_values():
    """A capture may hold a value of any depth. All values that are too deep have the same text."""
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert text_of({"a": [1, None]}) == text_of({"a": [1, None]}) != text_of({"a": [1]})
    assert text_of(deep) == ""
    while deep:  # frees it level by level
        deep = deep.pop()
