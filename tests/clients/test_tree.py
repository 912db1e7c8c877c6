import json
import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mcpspy.clients.tree import Edit, Member, Node, edited, plain, quote, where
from tests.each import each


def test_edits_are_made_at_once_whatever_their_order():
    assert edited("abcdef", [Edit(4, 5, "X"), Edit(0, 1, "long"), Edit(2, 2, "-")]) == "longb-cdXf"
    assert edited("abc", []) == "abc"


def test_a_tree_without_places_is_a_value():
    scalar = Node(0, 0, 1)
    assert plain(Node(0, 0, {"a": Member(0, 0, 0, scalar), "b": Member(0, 0, 0, Node(0, 0, [scalar]))})) == {
        "a": 1,
        "b": [1],
    }


@each(
    "text, offset, place",
    [
        ("abc", 0, "line 1, column 1"),
        ("a\nbc", 3, "line 2, column 2"),
        ("a\r\nbc", 3, "line 2, column 1"),
        ("\ufeffabc", 1, "line 1, column 1"),
        ("a\n", 2, "line 2, column 1"),
    ],
)
def test_a_place_is_said_as_people_count(text, offset, place):
    assert where(text, offset) == place


def test_half_a_surrogate_pair_is_quoted_so_that_the_text_can_be_written():
    assert quote("a\ud800").encode() == b'"a\\ud800"'


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_what_is_quoted_is_read_alike_in_all_formats(word):
    quoted = quote(word)
    assert json.loads(quoted) == word
    assert tomllib.loads(f"v = {quoted}")["v"] == word
    yaml = YAML(typ="safe", pure=True)
    assert yaml.load(f"- {quoted}") == [word]
