import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.clients import formats
from mcpspy.clients.formats import COMMA, COMMENT, MARK, improper, read_jsonc
from mcpspy.clients.tree import DEEPEST, Syntax, plain, where
from tests.clients.configurations import Jsonc, generated
from tests.each import each

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_is_read_as_python_reads_it(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert plain(read_jsonc(text)) == value


@settings(deadline=None)
@given(generated(Jsonc))
def test_comments_trailing_commas_and_odd_blanks_change_nothing(made):
    servers, text = made
    assert plain(read_jsonc(text))["mcpServers"] == servers


@settings(deadline=None)
@given(JSON)
def test_the_text_at_the_place_of_a_value_is_that_value(value):
    text = json.dumps({"a": [value], "b": value})
    for member in read_jsonc(text).value.values():
        assert json.loads(text[member.start : member.end]) in ("a", "b")
        assert json.loads(text[member.node.start : member.node.end]) == plain(member.node)


def test_of_two_equal_keys_the_last_counts():
    assert plain(read_jsonc('{"a": 1, "b": 2, "a": 3}')) == {"a": 3, "b": 2}


def test_a_comment_may_hold_what_looks_like_text():
    text = '{"u": "http://x/*y*/", /* "v": 1, // */ "w": 2 // "}\n}'
    assert plain(read_jsonc(text)) == {"u": "http://x/*y*/", "w": 2}


@each(
    "text, place, reason",
    [
        ("", "line 1, column 1", "expected a value, got the end of the file"),
        ("{", "line 1, column 2", "expected a key in double quotes or '}', got the end of the file"),
        ('{\n  "a": 1\n  "b": 2}', "line 3, column 3", "expected ',' or '}', got '\"'"),
        ('{"a" 1}', "line 1, column 6", "expected ':' after the key 'a', got '1'"),
        ("{a: 1}", "line 1, column 2", "expected a key in double quotes or '}', got 'a'"),
        ("{'a': 1}", "line 1, column 2", "expected a key in double quotes"),
        ('{"a": tru}', "line 1, column 7", "expected a value, got 't'"),
        ('{"a": 1.2.3}', "line 1, column 7", "expected a value"),
        ('{"a": "x\n"}', "line 1, column 7", "an unterminated string"),
        ('{"a": "\\x"}', "line 1, column 7", "a string with an escape that JSON does not have"),
        ("{,}", "line 1, column 2", "expected a key"),
        ("[1,,2]", "line 1, column 4", "expected a value, got ','"),
        ("{} {}", "line 1, column 4", "text after the end: '{}'"),
        ("{/* x", "line 1, column 2", "an unterminated comment"),
        ('\ufeff{"a": }', "line 1, column 7", "expected a value, got '}'"),
        ("9" * 5000, "line 1, column 1", "a number with too many digits"),
        ("[" * (DEEPEST + 2), "line 1, column 202", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, place, reason):
    with pytest.raises(Syntax) as error:
        read_jsonc(text)
    assert where(text, error.value.offset) == place
    assert str(error.value).startswith(reason)


@each(
    "text, refused, reason",
    [
        ('{"a": "// , ] \\" /*"}', (COMMENT, COMMA, MARK), ""),
        ("{} // c", (COMMENT,), "line 1, column 4: a comment"),
        ('{"a": 1, // c\n /* d */}', (COMMA,), "line 1, column 8: a trailing comma"),
        ('{"a": 1, // c\n /* d */}', (MARK,), ""),
        ("\ufeff[1,\n2 , ]", (MARK,), "line 1, column 1: a byte order mark"),
        ("\ufeff[1,\n2 , ]", (COMMA,), "line 2, column 3: a trailing comma"),
        ('["x\ty"]', (MARK,), "Invalid control character at: line 1 column 4 (char 3)"),
    ],
)
def test_what_a_parser_refuses_is_told_with_its_place(text, refused, reason):
    """CF-11."""
    read_jsonc(text)
    assert improper(text, refused) == reason


def test_lines_of_slashes_after_a_comma_are_read_at_once():
    """CF-11: a regular expression that tries every split would take years for such a line."""
    text = '{"a": 1,\n' + "/" * 200 + '\n"b": 2,}'
    assert improper(text, (MARK,)) == ""
    assert improper(text, (COMMA,)) == "line 3, column 7: a trailing comma"


@each("text", [" " * 400_000, "//a\n" * 100_000, "\n/**/" * 80_000, '"' + "a" * 400_000 + '"'])
def test_reading_takes_memory_in_proportion_to_the_text(text):
    """A-21: the parser kept a place for each character that it could go back to, 120 bytes each."""
    text = text if text.startswith('"') else text + "1" + text
    tracemalloc.start()
    try:
        read_jsonc(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(text)


@pytest.mark.parametrize("value", ['{"a": 1', "[1"])
def test_the_number_of_values_is_limited(monkeypatch, value):
    """A-21."""
    monkeypatch.setattr(formats, "MOST_VALUES", 100)
    closing = "}" if value[0] == "{" else "]"
    read_jsonc(value + f", {value[1:]}" * 98 + closing)
    with pytest.raises(Syntax, match="more than 100 values"):
        read_jsonc(value + f", {value[1:]}" * 100 + closing)
