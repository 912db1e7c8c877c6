import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.text import printable

# What changes direction, hides or joins, named one by one: the tests must not learn it from the code.
HIDDEN = "\u061c\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\ufff9\ufffa\ufffb"
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
TAGS = "".join(map(chr, range(0xE0000, 0xE0080)))
UNSAFE = st.sampled_from(HIDDEN + BIDI + TAGS + "\x1b\x9b\x07\n\r\t\0\x7f\ud800\udfff\u2028\u2029")


def unsafe(text):
    return [
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in HIDDEN + BIDI + TAGS
    ]


@given(st.lists(UNSAFE | st.characters()).map("".join), st.integers(1, 300))
@example("\x1b" * 50, 1)
@example("\u2028" * 50, 5)
def test_no_text_can_hijack_or_flood_a_terminal(text, limit):
    """F-08."""
    shown = printable(text, limit)
    assert not unsafe(shown)
    assert len(shown) <= limit


@given(st.text(st.sampled_from("a\u0300\u0489\u20dd\u0e31\u200b\ufe0f"), max_size=60))
def test_no_more_than_four_marks_are_piled_on_a_character(text):
    """F-08."""
    shown = printable(text, 999)
    piles = "".join("^" if unicodedata.category(character) in ("Mn", "Me") else " " for character in shown)
    assert "^^^^^" not in piles


@given(st.text(UNSAFE, min_size=1))
def test_what_is_unsafe_is_shown_not_dropped(text):
    """F-08."""
    assert len(printable(text, 10 * len(text))) >= 2 * len(text)


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=80))
def test_plain_text_within_the_limit_stays_as_it_is(text):
    assert printable(text, 80) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J", "\\e[2J"),
        ("\x1b]0;title\x07", "\\e]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("\ud800", "\\ud800"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("\U000e0041", "\\ue0041"),
        ("température 🌡", "température 🌡"),
        ("e" + "\u0301" * 4 + "e\u20dd", "e" + "\u0301" * 4 + "e\u20dd"),
        ("e" + "\u0301" * 5 + "\u20dde\u0301", "e" + "\u0301" * 4 + "\\u0301\\u20dde\u0301"),
        ("हिन्दी ไม่รู้ שָׁלוֹם", "हिन्दी ไม่รู้ שָׁלוֹם"),
        ("", ""),
    ],
)
def test_unsafe_characters_are_escaped(text, shown):
    """F-08."""
    assert printable(text, 80) == shown


@pytest.mark.parametrize("length", [79, 80, 81, 100_000])
def test_a_long_text_is_clipped_and_says_so(length):
    """F-08."""
    shown = printable("x" * length, 80)
    assert len(shown) == min(length, 80)
    assert shown.endswith("…") == (length > 80)
