"""Short forms of values."""

from random import Random

import pytest

from mcpspy.conversation.preview import brief_json, clipped, folded, members, parts, words
from mcpspy.json_values import Number


def test_a_text_is_clipped_and_folded():
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("abcdef", 4) == "abc…"
    assert folded("  a\r\n\tb  ") == "a b"
    assert folded("a" + " " * 5000 + "b") == "a …"
    assert folded(" " * 5000) == "…"
    assert folded("ab " * 3000, 6) == "ab ab…"


def test_the_words_of_a_long_text_are_those_of_a_short_one_that_begins_like_it():
    random = Random(1)  # noqa: S311 (the same texts in each run)
    for _ in range(500):
        blanks = random.choice([" ", " \n", " \t\u2003" * 9])
        text = "".join(random.choices("abcdef" + blanks, k=random.choice([0, 9, 20, 60, 5000])))
        room = random.choice([6, 20, 300])
        found = " ".join(text[:4096].split())
        more = len(text) > 4096 and len(found) < room
        assert folded(text, room) == clipped(f"{found} …" if more else found, room)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True, "x\ny"]}, '{"a":[1,2.5,null,true,"x\\ny"]}'),
        ([], "[]"),
        ({}, "{}"),
        ([[[[[[[[1]]]]]]]], "[[[[[[[…]]]]]]]"),
        (2.0, "2.0"),
        (10**90, "a number of many digits"),
        (Number("1.50"), "1.50"),
        ("ü", '"ü"'),
    ],
)
def test_json_without_white_space(value, text):
    assert brief_json(value) == text


def test_json_is_clipped_where_there_is_no_more_room():
    assert brief_json(["abc"] * 100, 20) == '["abc","abc","abc",…'
    assert brief_json("a" * 100, 10) == '"aaaaaaa…"'
    assert len(brief_json({"a" * 500: 1}, 50)) == 50


def test_members_stand_in_their_order_and_leave_room_for_those_behind():
    assert members({"b": 1, "a": "x", "c": {}}, "c") == 'b=1 a="x"'
    long = members({"q": "x" * 1000, "n": 5})
    assert long.endswith('…" n=5')
    assert len(members({"q": "x" * 1000})) == 300
    assert members({"": 1, "a=b": 2}) == '""=1 "a=b"=2'
    assert members({}) == ""
    assert len(members({str(n): "x" * 70 for n in range(100)})) == 300


def test_words_are_text_members_or_json():
    assert words("a\nb") == "a b"
    assert words({"a": 1}) == "a=1"
    assert words({}) == "{}"
    assert words([1]) == "[1]"


def test_names_and_their_strings_are_told_from_the_rest():
    text = 'info: a="b \\" c=d" n=5 e="cut'
    found = [piece for piece in parts(text) if piece[0]]
    assert "".join(piece for piece, _ in found) == text
    assert found == [
        ("info: ", ""), ("a=", "name"), ('"b \\" c=d"', "string"), (" ", ""), ("n=", "name"), ("5 ", ""),
        ("e=", "name"), ('"cut', "string"),
    ]  # fmt: skip
    assert [piece for piece in parts('He said "x=1"') if piece[1]] == []
