import json
import re
import unicodedata
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.errors import UsageError
from mcpspy.text import (
    age_text,
    capture_limit,
    columns,
    duration_text,
    escaped,
    fitted,
    fitted_name,
    length_text,
    measured,
    plural,
    printable,
    series,
    size_text,
    suggestion,
    without_unsafe,
    wrapped,
)
from tests.each import each
from tests.hostile_text import without_joins

# Characters that change direction, are invisible or join others. The list must not come from the code under test.
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
    assert not unsafe(without_joins(shown))
    assert len(shown) <= limit


@each(
    "text, width",
    [
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 2),  # a family
        ("\u2764\ufe0f", 2),  # a heart
        ("\U0001f44d\U0001f3fd", 2),  # a thumb with a tone
        ("\U0001f3f3\ufe0f\u200d\U0001f308", 2),  # a flag
        ("1\ufe0f\u20e3", 2),  # a key
        ("\U0001f469\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f469", 2),  # a kiss
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", 7),  # Persian
        ("\u0915\u094d\u200d\u0937", 1),  # Devanagari
    ],
)
def test_what_joins_pictures_and_letters_is_kept(text, width):
    """U-01."""
    assert printable(text * 3, 99) == text * 3
    assert columns(text) == width == cell_len(text)


@each(
    "text",
    [
        "a\u200db",
        "\u200d\U0001f469",
        "\U0001f469\u200d",
        "\U0001f469\u200c\U0001f469",
        "x\ufe0f",
        "1\ufe0f",
        "\u0645\u200d\u0645",
        "\u0645\u200ca",
        "\U0001f469\ufe0f\ufe0f",
        "\U0001f468" + "\u200d\U0001f469" * 9,
    ],
)
def test_what_hides_is_not_kept(text):
    """F-08."""
    assert "\\u" in printable(text, 999)


@each(
    "word",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937" * 2,
        "\U0001f469\u200d\U0001f4bb\U0001f469\U0001f3fd\u200d\u2764\ufe0f\u200d\U0001f469",
    ],
)
def test_a_joiner_where_a_text_is_shortened_is_no_escape(word):
    """U-01: whoever shortened it, and however often it is made printable."""
    for room in range(1, 14):
        cut = f"{word[:room]}…"
        for shown in (printable(word, room), measured(word, room)[0], printable(cut, 99), *wrapped(word, room)):
            assert "\\" not in escaped(shown)
            assert columns(shown) == cell_len(shown)
        assert measured(word, room)[1] == columns(fitted(word, room)) <= room
        assert printable(cut, 99)[-2:-1] not in ("\u200c", "\u200d")
    assert printable("a\u200d…", 9) == "a\\u200d…"


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
        ("\U000e0041", "\\U000e0041"),
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


@given(st.lists(UNSAFE | st.characters(exclude_categories=["Cs"])).map("".join))
def test_an_escaped_text_is_safe_and_whole(text):
    """A-20: in JSON it is the same value."""
    text = text.replace("\\", "").replace('"', "")
    shown = escaped(text)
    assert not unsafe(shown.replace("\n", "").replace("\t", ""))
    assert json.loads(f'"{shown}"', strict=False).encode("utf-16", "surrogatepass") == text.encode(
        "utf-16", "surrogatepass"
    )


@given(st.lists(UNSAFE | st.characters()).map("".join))
def test_what_is_left_without_unsafe_characters_is_safe(text):
    """A-14: in a line that the user edits."""
    left = without_unsafe(text)
    assert not unsafe(left)
    assert printable(left, len(left)) == left


@pytest.mark.parametrize("length", [79, 80, 81, 100_000])
def test_a_long_text_is_clipped_and_says_so(length):
    """F-08."""
    shown = printable("x" * length, 80)
    assert len(shown) == min(length, 80)
    assert shown.endswith("…") == (length > 80)


def slowly_printable(text, limit):
    """Escape each character separately, then clip."""
    shown = "".join(printable(character, 10) for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: max(limit - 1, 0)] + "…"


def slowly_measured(text, room):
    """Measure each character separately."""
    shown = slowly_printable(text, max(room, 0))
    widths = [columns(character) for character in shown]
    if sum(widths) > room:
        end = max((end for end in range(len(shown)) if sum(widths[:end]) < room), default=-1)
        shown = f"{shown[:end]}…" if room > 0 else ""
    return shown, sum(columns(character) for character in shown)


def test_texts_of_one_kind_of_character_are_shown_as_if_each_was_looked_at():
    random = Random(1)  # noqa: S311 - the same texts in each run
    odd = "\n\t\x1b\x7f\x85éµ…東京Ａ\u0301\u20dd\u200b\ud800\u2028🌡"
    for _ in range(1500):
        letters = 'abc ="' + random.choice(["", "é…", odd]) * random.choice([0, 1, 1, 3])
        text = "".join(random.choices(letters, k=random.randrange(40)))
        if not re.search("[\u0301\u20dd]{5}", text):
            room = random.randrange(-1, 45)
            assert printable(text, max(room, 0)) == slowly_printable(text, max(room, 0))
            assert measured(text, room) == slowly_measured(text, room)
            assert fitted(text, room) == measured(text, room)[0]


# Quantities.


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (999_949, "999.9 kB"),
        (2 * 10**6, "2.0 MB"),
        (10**9, "1.0 GB"),
        (5 * 10**12, "5000.0 GB"),
    ],
)
def test_sizes_are_in_powers_of_1000(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s ago"),
        (0, "0 s ago"),
        (59.4, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (7200, "2 h ago"),
        (86399, "23 h ago"),
        (86400, "1 d ago"),
        (1e9, "11574 d ago"),
    ],
)
def test_ages_are_in_the_largest_unit_that_fits(seconds, text):
    assert age_text(seconds) == text
    assert f"{length_text(seconds)} ago" == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 µs"),
        (1_499, "1 µs"),
        (999_000, "999 µs"),
        (1_000_000, "1.0 ms"),
        (12_340_000, "12.3 ms"),
        (999_900_000, "999.9 ms"),
        (1_000_000_000, "1.00 s"),
        (3_600_000_000_000, "3600.00 s"),
    ],
)
def test_durations_are_in_the_unit_that_suits_them(nanoseconds, text):
    assert duration_text(nanoseconds) == text


def test_one_is_singular_and_thousands_are_set_apart():
    expected = ["0 frames", "1 frame", "2 frames", "1,000 frames", "1,234,567 frames"]
    assert [plural(number, "frame") for number in (0, 1, 2, 1000, 1234567)] == expected


@pytest.mark.parametrize(
    ("text", "size"), [(None, None), ("100000", 100_000), ("500MB", 5 * 10**8), ("1.5 gb", 15 * 10**8)]
)
def test_a_limit_of_captures(text, size):
    assert capture_limit(text) == size


@pytest.mark.parametrize("text", ["", "many", "5 parsecs", "-1MB", "10kB"])
def test_a_limit_that_is_none_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="--max-capture"):
        capture_limit(text)


@pytest.mark.parametrize(("text", "wide"), [("abc", 3), ("東京", 4), ("e\u0301", 1), ("\uff46", 2), ("", 0), ("🐞", 2)])
def test_columns_are_those_of_a_terminal(text, wide):
    assert columns(text) == wide


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("東京", 4, "東京"), ("東京都", 4, "東…"), ("東京", 3, "東…"),
        ("東", 1, "…"), ("a", 0, ""), ("東", 0, ""), ("a\x1b", 3, "a\\e"), ("abc", -5, ""),
    ],
)  # fmt: skip
def test_a_text_is_fitted_into_columns(text, room, shown):
    assert fitted(text, room) == shown
    assert columns(shown) <= max(room, 0)


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        ("get_forecast", 12, "get_forecast"), ("a_name_of_some_length", 9, "a_na…ngth"), ("a_long_name", 7, "a_long…"),
        ("東京の天気予報一覧", 10, "東京…一覧"), ("x" * 9 + "👩\u200d👧", 8, "xxx…xx👩\u200d👧"),
        ("x" * 9 + "e\u0301" * 4, 8, "xxx…" + "e\u0301" * 4), ("a" * 400, 10, "aaaa…aaaa…"), ("abc", 0, ""),
    ],
)  # fmt: skip
def test_a_name_is_shortened_in_the_middle(name, room, shown):
    assert fitted_name(name, room) == shown
    assert columns(shown) <= room


@given(st.text(), st.integers(0, 40))
def test_no_name_takes_more_columns_than_there_are(name, room):
    shown = fitted_name(name, room)
    assert columns(shown) <= room
    assert not unsafe(without_joins(shown))


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 13, ["one two three"]),
        ("abcdefgh ij", 3, ["abc", "def", "gh", "ij"]),
        ("a\n\n b\r\nc", 9, ["a", "", " b", "c"]),
        ("\x1b[2J x", 6, ["\\e[2J", "x"]),
        ("天気予報 天気", 5, ["天気", "予報", "天気"]),
        ("ab", 0, ["a", "b"]),
        ("", 4, [""]),
    ],
)
def test_text_is_broken_at_blanks_into_lines_that_fit(text, room, lines):
    assert list(wrapped(text, room)) == lines


@pytest.mark.parametrize("text", ["\x00" * 500 + "\u202e" * 500, "e" + "\u0301" * 999, "日本 " * 300, "\ud800" * 99])
def test_text_in_lines_is_safe_and_complete(text):
    lines = list(wrapped(text, 40))
    assert max(map(columns, lines)) <= 40
    assert not any(map(unsafe, lines))
    assert "".join(lines).replace(" ", "") == printable(text, 10**6).replace(" ", "")


@each(
    "words, text",
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
    ],
)
def test_words_are_listed_as_in_a_sentence(words, text):
    assert series(words) == text


@each(
    "name, hint",
    [
        ("tols", "did you mean 'Tools'?"),
        ("TOOLS", "did you mean 'Tools'?"),
        ("x" * 10_000, "there are Tools and prompts"),
    ],
)
def test_a_wrong_name_gets_the_nearest_one(name, hint):
    assert suggestion(name, ("Tools", "prompts"), "there are Tools and prompts") == hint


def test_several_near_names_are_choices():
    assert suggestion("list", ("lists", "last", "other"), "", 2) == "did you mean 'lists' or 'last'?"
