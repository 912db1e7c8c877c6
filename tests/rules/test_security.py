"""Hidden text, instructions to models and secrets are found; ordinary text in any script has no finding."""

import json

import pytest

from tests.rules.examples import findings, told


def listing(description, *, ascii_only=False):
    tool = {"name": "echo", "description": description, "inputSchema": {"type": "object"}}
    result = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"tools": [tool]}}, ensure_ascii=ascii_only)
    return f"= 2025-06-18\n> 2 tools/list\n< | {result}"


ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
ORDINARY = (
    "plain", "naïve café", "日本語", "Ελληνικά", "👍🏽", "👨\u200d👩\u200d👧", "❤\ufe0f", "🏳\ufe0f\u200d🌈", ENGLAND,
    "می\u200cخواهم", "क्\u200dष", "مرحبا",  # noqa: RUF001 (Persian has these letters)
)  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_what_scripts_and_emoji_need_is_no_finding(text):
    for ascii_only in (False, True):
        assert told(listing(text, ascii_only=ascii_only), "security/") == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a \u200bb", "U+200B"),
        ("a\u202eb", "U+202E"),
        ("a\u2066b", "U+2066"),
        ("a\u200db", "U+200D"),
        ("a\U000e0041", "U+E0041"),
        ("a\ufeffb", "U+FEFF"),
        ("a\u00ad b", "U+00AD"),
        ("a\u200eb", "U+200E"),
        ("a\u2063b", "U+2063"),
    ],
)
def test_what_hides_is_named_however_it_is_written(text, named):
    for ascii_only in (False, True):
        (finding,) = [it for it in findings(listing(text, ascii_only=ascii_only)) if it.rule == "security/hidden-text"]
        assert named in finding.message
        assert finding.pointer == "/result/tools/0/description"


@pytest.mark.parametrize("text", ["מחיר: 5\u200e$", "Donau\u00addampf", "ភាសា\u200bខ្មែរ", "مرحبا\u061c"])
def test_marks_of_direction_and_breaks_between_letters_are_no_finding(text):
    assert told(listing(text), "security/") == []


def test_a_token_in_parts_is_found_wherever_it_begins():
    token = ".".join(("eyJ" + "a" * 20, "eyJ" + "b" * 5000, "c" * 20))
    assert told(listing(f"Bearer {token}"), "security/") == ["#5 security/secret-in-frame"]
