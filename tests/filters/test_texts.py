"""Text comparison as people expect it; every match is also found by the trace of the text."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.filters.terms import contains, folded, glob, smart, trace, unescaped
from mcpspy.filters.tree import Value

EVERY_LETTER = [chr(code) for code in range(sys.maxunicode + 1)]


def test_folding_makes_no_letter_out_of_another_that_its_trace_would_keep():
    """The characters that a trace keeps must be in the bytes of every text with the same folding.

    Folding twice gives the same text, so a frame that contains the folded text needs no folding itself.
    """
    for letter in EVERY_LETTER:
        for low in folded(letter) if folded(letter) != letter else ():
            assert low.isascii() == letter.isascii(), letter
            assert low.isascii() or low.upper() != low.lower(), letter
            assert folded(low) == low, letter


@pytest.mark.parametrize(
    ("text", "frame", "fits"),
    [
        ("wind", "a Wind", True),
        ("Wind", "a wind", False),
        ("Wind", "a Wind", True),
        ("é", "caf\\u00c9", True),
        ('say "hi"', '{"x":"say \\"hi\\""}', True),
        ("σας", "ΣΑΣ", True),
        ("wind", "hay", False),
    ],
)
def test_a_frame_contains_a_text_as_it_came_or_with_its_escapes_undone(text, frame, fits):
    assert contains(text)(frame) is fits


@given(st.text())
def test_escapes_are_undone_as_a_json_parser_does(text):
    assert unescaped(json.dumps(text)) == f'"{text}"'
    assert unescaped(json.dumps(text, ensure_ascii=False)) == f'"{text}"'


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"a\/b", "a/b"),
        (r"\\n", r"\n"),
        (r"\\\n", "\\\n"),
        (r"\\\\u0041", r"\\u0041"),
        (r"\u0041\u00e9", "Aé"),
        (r"\ud83c\udf0d", "🌍"),
        (r"\ud83c", "\ud83c"),
        (r"\x \u12", r"\x \u12"),
        ("\\", "\\"),
    ],
)
def test_what_is_no_escape_stays(text, plain):
    assert unescaped(text) == plain


@pytest.mark.parametrize(
    ("pattern", "quoted", "text", "fits"),
    [
        ("tools/call", False, "tools/call", True),
        ("tools/call", False, "Tools/Call", True),
        ("Tools/call", False, "tools/call", False),
        ("tools", False, "tools/call", False),
        ("tools/*", False, "tools/call", True),
        ("*call", False, "tools/call", True),
        ("t?ols/*", False, "tools/call", True),
        ("T*", False, "tools", False),
        ("T*", False, "Tools", True),
        ("é*", False, "École", True),
        ("*", False, "", True),
        ("*", True, "anything", False),
        ("*", True, "*", True),
        ("a[b]*", False, "a[b]c", True),
        ("a[b]*", False, "abc", False),
        ("a*b", False, "a\nb", True),
    ],
)
def test_globs_stand_for_whole_texts_and_capitals_count_where_there_are_any(pattern, quoted, text, fits):
    assert glob(Value(pattern, quoted))(text) is fits


def test_a_glob_takes_linear_time():
    assert not glob(Value("*a*a*a*a*a*a*b"))("a" * 100_000)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("needle", (b"needle",)),
        ("NeEdle", (b"needle",)),
        ("tools/call", (b"tools", b"call")),
        ('say "hi"\n\\', (b"say ", b"hi")),
        ("café au", (b"caf", b" au")),
        ("Café", ("café".encode(),)),
        ("天気", ("天気".encode(),)),
        ("\ud800x", (b"x",)),
        ("/", ()),
    ],
)
def test_a_trace_is_what_has_one_form(text, runs):
    assert trace(text) == runs


@given(st.text(min_size=1), st.text(), st.text())
def test_whatever_contains_a_text_has_its_trace(text, before, after):
    case = smart(text)
    for whole in (before + text + after, before + text.upper() + after, before + text.swapcase() + after):
        line = json.dumps(json.dumps(whole, ensure_ascii=False), ensure_ascii=False)
        if case(text) in case(whole) and "\\u" not in line:
            found = line.encode(errors="surrogatepass").lower()
            assert all(run in found for run in trace(text))
