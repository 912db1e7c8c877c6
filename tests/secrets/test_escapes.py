"""Tokens after escapes and with escapes inside (A-16)."""

import pytest

from mcpspy.secrets.redactor import Withheld
from mcpspy.secrets.tokens import Unescaped, in_frame, replaced, without_percent
from tests.each import each
from tests.limits import proportionate
from tests.secrets.examples import TOKENS, secret, token

BEFORE = (
    "%2F", "%2f", "%3D", "%3d", "%253D", "%25253d", "+", "\\n", "\\t", "\\b",
    "\\u002f", "\\u003D", "\\u00253D", "\\x3d",
    "&#x2f;", "&#x2F;", "&#47;", "&amp;", "=3D",
)  # fmt: skip


def percent(text, sign="%"):
    """Return a text with every character encoded that is not a letter or a digit."""
    return "".join(one if one.isalnum() else f"{sign}{ord(one):02X}" for one in text)


def left_of(value, text):
    """Return whether the end of a secret is left in a text."""
    return value[-8:] in text


@each("kind, literal", TOKENS, ids=lambda it: f"{it[0].name}: {it[1]}")
def test_a_token_after_an_escape_is_found_in_frames_and_texts_alike(kind, literal):
    """A-16: the last character of an escape is not a letter before the token."""
    for before in BEFORE:
        text = before + token(kind, literal).replace("\n", "\\n")
        assert in_frame(text.encode()), before
        new = replaced(f"a{text} b", lambda _: "M", full=True)
        assert not left_of(secret(kind, literal), new), before
        assert new.startswith("a" + before), before


@each("kind, literal", TOKENS, ids=lambda it: f"{it[0].name}: {it[1]}")
def test_a_token_with_escapes_inside_is_found_in_frames_and_texts_alike(kind, literal):
    """A-16: `ghp%5F…`, also encoded twice."""
    for sign in ("%", "%25", "%2525"):
        text = percent(token(kind, literal), sign)
        assert in_frame(text.encode()), sign
        assert not left_of(secret(kind, literal), replaced(text, lambda _: "M", full=True)), sign
    if kind.name != "private key (PEM)":
        for written in (r"\u00{:02x}", "&#x{:02x};", "&#{};", r"\x{:02X}"):
            value = token(kind, literal)
            text = "".join(one if one.isalnum() else written.format(ord(one)) for one in value)
            assert not left_of(secret(kind, literal), replaced(text, lambda _: "M", full=True)), written


@each("kind, literal", TOKENS, ids=lambda it: f"{it[0].name}: {it[1]}")
def test_no_escape_keeps_a_token_in_what_a_recording_writes(kind, literal):
    """A-16: the header of a capture, and heads."""
    redactor = Withheld()
    value, end = token(kind, literal).replace("\n", " "), secret(kind, literal)
    for before in ("%2F", "%253D", "&#47;"):
        for text in (before + value, before + percent(value)):
            assert not left_of(end, "".join(redactor.argv(["server", text, f"--x={text}", "sh", f"run {text}"])))
            assert not left_of(end, redactor.url(f"https://a.example/b?c={text}"))
            assert not left_of(end, str(redactor.head({"headers": [["x-a", text]], "reason": text, "target": text})))


def test_equal_tokens_have_equal_replacements_however_they_are_written():
    value = "ghp_" + "a1B2" * 9
    seen = []
    replaced(f"{value} ghp%5F{value[4:]} ghp%255f{value[4:]}", lambda it: seen.append(it) or "M")
    assert seen == [value] * 3


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a%2Fb%252fc", "a/b/c"),
        ("\\u0025%2541", "%A"),
        ("&#47;&#x2f;&#0047;", "///"),
        ("https:\\/\\/a", "https://a"),
        ("100%, 5%-9%zz &#x; \\u12 %C3%A4", "100%, 5%-9%zz &#x; \\u12 %C3%A4"),
        ("%0A%09", "\n\t"),
    ],
)
def test_each_place_in_a_plain_text_is_known_in_the_original(text, plain):
    found = Unescaped(text)
    assert found.text == plain
    assert (found.place(0), found.place(len(plain))) == (0, len(text))
    parts = [text[found.place(n) : found.place(n + 1)] for n in range(len(plain))]
    assert "".join(parts) == text
    assert [Unescaped(part).text for part in parts] == list(plain)


def test_bytes_without_percent_escapes_are_the_same_object():
    raw = b"100% of a"
    assert without_percent(raw) is raw
    assert without_percent(b"a%252Fb") == b"a/b"
    assert without_percent(b"a=%2F%\r\nb=\n%") == b"a=/=\r\nb=\n"


@pytest.mark.parametrize("unit", ["%", "%25", "%2F", "\\", "\\u00", "&#", "&#x0", "%2Fghp_", "\\/"])
def test_many_escapes_take_time_linear_in_their_length(unit):
    """A-01."""
    text = unit * (40_000 // len(unit))
    with proportionate(1):
        in_frame(text.encode())
        replaced(text, lambda _: "M")
