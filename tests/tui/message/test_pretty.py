"""JSON is shown token by token as it was written, and its content reaches the terminal only as plain text."""

import json
import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.text import printable
from mcpspy.tui.message.document import json_pieces, spans, text_pieces
from tests.each import each
from tests.test_text import unsafe
from tests.test_timeline import JSON


def json_lines(text):
    """Yield the indented lines of a JSON text."""
    for span in spans(text):
        yield [("  " * span.depth, "plain"), *json_pieces(text[span.start : span.end])]


def shown(text):
    """Return the lines as text."""
    return ["".join(piece for piece, _ in line) for line in json_lines(text)]


def kinds(text):
    """Return the pieces that are not blank, each with its kind."""
    return [(piece.strip(), kind) for line in json_lines(text) for piece, kind in line if piece.strip()]


def test_members_and_elements_stand_on_lines_of_their_own_and_each_piece_says_what_it_is():
    assert shown('{"a":[1,{"b":null}],"c":"x"}') == [
        "{", '  "a": [', "    1,", "    {", '      "b": null', "    }", "  ],", '  "c": "x"', "}",
    ]  # fmt: skip
    found = kinds('{"k":["s",-1.5e3,true,null]}')
    assert " ".join(piece for piece, _ in found) == '{ "k" : [ "s" , -1.5e3 , true , null ] }'
    assert [kind for _, kind in found if kind != "punctuation"] == ["key", "string", "number", "literal", "literal"]
    assert {piece for piece, kind in found if kind == "punctuation"} == set("{}[]:,")


@each("text", ["{}", "[]", '""', "0", "null", "[[],{}]", '{"a":{}}'])
def test_what_is_empty_stays_on_its_line(text):
    assert not [line for line in shown(text) if line.strip() in ("", "[", "{") and text in ("{}", "[]")]
    assert "".join(line.strip() for line in shown(text)).replace(": ", ":") == text


TOKENS = ["1.10", "1e0", "-0.0", "12345678901234567890123", "1E400", '"\\u00a0"', '"a\\"b\\\\"', '"\\ud800"', "NaN"]
NO_JSON = {
    "": [""], "Server running": ["Serverrunning"], '{"a":': ["{", '  "a": '], "]]}": ["", "]", "]", "}"],
    '{"a":"never ends': ["{", '  "a": "never ends'], "[1 2]": ["[", "  12", "]"], '"': ['"'], "{]": ["{]"],
    '{"a"}}}': ["{", '  "a"', "}", "}", "}"], "\u00a0[1]\u2028": ["[", "  1", "]"],
}  # fmt: skip


def test_a_token_is_shown_as_it_was_written_and_what_is_no_json_all_the_same():
    for token in TOKENS:
        assert shown(f'{{"a":{token}}}') == ["{", f'  "a": {token}', "}"]
    assert shown('{"a":1,"a":2}') == ["{", '  "a": 1,', '  "a": 2', "}"], "a doubled key stays doubled"
    assert {text: shown(text) for text in NO_JSON} == NO_JSON


ESCAPES = {
    r"\u6771\u4eac": "東京", r"\ud83d\udc68\u200d\ud83d\udc69": "👨\u200d👩", r"\u0041\/": "A/", r"\\u6771": r"\\u6771",
    r"\u0645\u06cc\u200c\u062e": "می\u200cخ", r"\ud800\u6771\udc00": r"\ud800東\udc00", r"\x\u00e9\u": r"\xé\u",
    **dict.fromkeys((r"\u0022", r"\u005C", r"\n", r"\u001b", r"\u202E", r"\u200d", r"\u2028", r"\u3000")),
}  # fmt: skip


def test_escapes_of_printable_characters_are_decoded_and_all_others_stay_as_they_are_on_the_wire():
    for escapes, expected in ESCAPES.items():
        assert shown(f'["{escapes}"]')[1].strip() == f'"{expected or escapes}"'


@given(st.text(st.characters() | st.sampled_from("日\u200d\u200c\u0300👩é/"), max_size=60))
def test_what_is_decoded_is_still_the_same_json(value):
    tree = "".join(shown(json.dumps([value]))).strip()
    assert json.loads(tree) == [value] or printable(value, 1000) != value


@given(JSON, st.sampled_from([None, 1, "\t"]))
def test_nothing_is_lost_and_nothing_added_but_blanks(value, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    tokens = [match[0] for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:\s"]+', text)]
    safe = [token for token in tokens if printable(token, 4000) == token]
    pieces = [piece for piece, _ in kinds(text)]
    assert len(pieces) == len(tokens)
    assert [piece for piece, token in zip(pieces, tokens, strict=True) if token in safe] == safe


@given(JSON)
def test_without_indentation_and_line_ends_it_is_what_it_was(value):
    text = json.dumps(value, separators=(",", ": "), ensure_ascii=False)
    if text.isprintable():
        assert "".join(re.sub(r"^ +", "", line) for line in shown(text)) == text


@given(st.text() | st.lists(st.sampled_from(['"', "\\", "{", "}", "[", "]", ",", ":", "1", "a", " "])).map("".join))
def test_text_of_any_kind_loses_nothing_but_blanks(text):
    if all(character.isprintable() for character in text) and not unsafe(text):
        assert re.sub(r"\s", "", "".join(shown(text))) == re.sub(r"\s", "", text)


@given(st.text(st.characters() | st.sampled_from('\x1b\x9b\x07\0\u202e\u2028\U000e0041\ud800[]{}",:\\'), max_size=60))
def test_no_text_can_hijack_a_terminal(text):
    """F-08."""
    for line in (*json_lines(text), text_pieces(text)):
        assert not unsafe("".join(piece for piece, _ in line))


def test_a_line_of_text_is_one_piece():
    assert text_pieces("\x1b[2Jb\r") == [("\\e[2Jb\\r", "plain")]
    assert text_pieces("") == [("", "plain")]


def test_what_has_no_token_has_no_pieces():
    assert json_pieces(" \n") == []


# Size.


def test_a_long_string_is_clipped_and_says_how_much_is_lost():
    (line,) = json_lines(json.dumps("x" * (1 << 20)))
    assert line[-1][0] == '"' + "x" * 3999 + " (+1,044,578 characters)"
    line = text_pieces("y" * 5000)
    assert line[0][0] == "y" * 4000 + " (+1,000 characters)"


def test_a_string_that_is_not_all_there_is_one_piece():
    """Only the beginning of a large frame is shown."""
    assert shown('{"text":"a, b: c [d] \\"e')[1:] == ['  "text": "a, b: c [d] \\"e']
    (_, line) = json_lines('{"text":"' + "word, " * 200_000)
    assert line[-1][0].endswith("characters)")


def test_a_long_string_that_grows_by_escaping_is_clipped_too():
    line = text_pieces("\x1b" * 4000)
    assert len(line[0][0]) <= 4000
    line = text_pieces("\x1b" * 9000)
    assert len(line[0][0]) < 4050
    assert line[0][0].endswith("(+5,000 characters)")


def test_more_ends_than_beginnings_do_not_indent_the_other_way():
    assert shown("}" * 3 + '{"a":1}')[-3:] == ["}{", '"a": 1', "}"]


def test_lines_come_as_they_are_asked_for():
    """A frame of a megabyte shows its first lines at once."""
    lines = json_lines("[" + "1," * 500_000)
    assert [line[-1][0] for line in islice(lines, 3)] == ["[", ",", ","]


@pytest.mark.parametrize(
    "text",
    ['"' + "\\" * 500_000, '"' * 500_001, " " * 1_000_000, "a" * 1_000_000, '"\\"' * 200_000, "\\" * 500_000],
    ids=["backslashes in a string", "quotes", "blanks", "letters", "escaped quotes", "backslashes"],
)
def test_no_text_takes_more_than_linear_time(text):
    """In quadratic time, half a million characters would take minutes."""
    assert sum(1 for _ in json_lines(text)) >= 1
