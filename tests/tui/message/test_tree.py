"""Lines of JSON that fold. Each knows its place, its value as it was written, and the lines that its fold hides."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.json_values import pointer
from mcpspy.tui.message.document import ALL, Folds, Tree
from tests.test_text import unsafe
from tests.test_timeline import JSON

NESTED = '{"a":[1,{"b":null}], "c/d" : "x","a":1.10,"e":{}}'


def grown(text):
    tree = Tree(text)
    while tree.grow(7):
        pass
    return tree


def shown(tree, *folded):
    """Return all lines as text."""
    return ["".join(text for text, _ in tree.pieces(line, folded=line in folded)) for line in range(len(tree))]


def at(value, path):
    for step in path:
        value = value[step]
    return value


def test_each_line_has_its_path_and_its_value_as_it_was_written():
    tree = grown(NESTED)
    assert [(pointer(*tree.path(line)), tree.value(line)) for line in range(len(tree))] == [
        ("", NESTED),
        ("/a", '[1,{"b":null}]'),
        ("/a/0", "1"),
        ("/a/1", '{"b":null}'),
        ("/a/1/b", "null"),
        ("/a/1", '{"b":null}'),
        ("/a", '[1,{"b":null}]'),
        ("/c~1d", '"x"'),
        ("/a", "1.10"),
        ("/e", "{}"),
        ("", NESTED),
    ]


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_the_value_at_a_path_is_the_one_that_stands_there(value, indent, ascii_):
    tree = grown(json.dumps(value, indent=indent, ensure_ascii=ascii_))
    for line in range(len(tree)):
        there = json.loads(tree.value(line))
        assert json.dumps(there) == json.dumps(at(value, tree.path(line)))  # NaN is not equal to itself


@given(
    st.text() | st.lists(st.sampled_from(['"', "\\", "{", "}", "[", "]", ",", ":", "1", "a", " ", "\x1b"])).map("".join)
)
def test_what_is_no_json_has_lines_all_the_same(text):
    tree = grown(text)
    for line in range(len(tree)):
        assert pointer(*tree.path(line)).count("/") <= len(text) * 2
        assert tree.above(line) is None or tree.above(line) < line
        assert tree.value(line) in text
        for folded in (False, True):
            pieces = tree.pieces(line, folded=folded)
            assert not unsafe("".join(piece for piece, _ in pieces))
            most = tree.width(line)
            assert most is None or folded or most >= sum(len(piece) for piece, _ in pieces)


def test_a_fold_says_how_much_it_hides():
    assert shown(grown(NESTED), 1, 3)[1:4] == ['▸ "a": […] 2 elements', "    1,", "  ▸ {…} 1 member"]
    assert shown(grown(NESTED), 0)[0] == "{…} 4 members"


def test_what_opens_something_is_marked_inside_its_indentation():
    assert shown(grown(NESTED))[:4] == ["{", '▾ "a": [', "    1,", "  ▾ {"]


@pytest.mark.parametrize(("text", "path"), [('{"\\u0061\\n":1}', ("a\n",)), ('{"\\ud800":1}', ("\ud800",))])
def test_a_name_is_decoded(text, path):
    assert grown(text).path(1) == path


@pytest.mark.parametrize("text", ['{"\\x":1}', '["a":1]', '{"a" 1}'])
def test_a_name_that_is_none_has_a_path_all_the_same(text):
    assert grown(text).path(1) in [("\\x",), ('"\\x"',), (0,)]


def test_a_value_that_is_not_all_there_ends_with_the_text():
    assert grown('{"a":{"b":[1,2').value(1) == '{"b":[1,2'


def test_lines_are_made_as_they_are_asked_for():
    tree = Tree("[" + "1," * 500_000)
    assert tree.grow(3)
    assert len(tree) == 3


def test_a_deep_value_is_indented_no_deeper_than_a_screen():
    tree = grown("[" * 20_000 + "1" + "]" * 20_000)
    assert len(tree) == 40_001
    assert max(map(len, shown(tree))) <= 83
    assert len(tree.path(20_000)) == 20_000


def test_folds_are_told_by_level_until_somebody_says_otherwise():
    tree, folds = grown(f'{{"a":[1,{{"b":[[[]]]}}],"c":"{"x" * 5000}"}}'), Folds()
    opening = [line for line in range(len(tree)) if tree.opens(line)]
    assert [folds.folded(tree, line) for line in opening] == [False, False, False, False, True]
    folds.say(("a",), folded=False)
    folds.say((), folded=True)
    assert [folds.folded(tree, line) for line in opening] == [True, False, False, False, True]
    folds.say_all(ALL)
    assert not any(folds.folded(tree, line) for line in opening)
