"""Secrets in texts by their form (A-09)."""

from pathlib import Path

import pytest

from mcpspy.secrets.text import redacted_fields, redacted_text, redacted_url
from tests.cases import pairs
from tests.each import each
from tests.limits import proportionate

CASES = Path(__file__).parent / "cases"
MARK = "«redacted:1234abcd»"
"""In the form of those of a recording."""
AZURE_KEY = "a1B2/c3D" * 10 + "aB1/cD" + "=="


def shown(text):
    return redacted_text(text, lambda _: "M")


FORMS = [
    *pairs(CASES / "texts.txt"),
    ("machine h\n  login u\n  password hunter2\n", "machine h\n  login u\n  password M\n"),
]


@each("text, expected", FORMS)
def test_forms(text, expected):
    assert shown(text) == expected


def test_an_encoded_secret_is_found():
    assert redacted_url("/x?next=https%3A%2F%2Fhunter2%40host", lambda _: "M") == "/x?next=M"


@pytest.mark.parametrize(
    "unit",
    [
        "bearer ",
        "basic a ",
        " token=",
        " key: ",
        '\\"a\\":',
        " -u a:",
        "https://a@",
        "a://b:",
        "'",
        "@",
        " ",
        "{'",
        "a://b:c#",
        "a:b@",
        "a/b@",
        "mysql ",
        "machine a ",
        "a =",
        "'a' =>",
        "sqlplus a/",
        "https://a:b#",
    ],
)
def test_a_long_text_takes_time_linear_in_its_length(unit):
    """A-01."""
    with proportionate(1):
        shown(unit * (40_000 // len(unit)))


@each("text", ["postgres://hunter2hunter2hunter2:pw@host/x", *(text for text, _ in FORMS)])
@pytest.mark.parametrize("redact", [redacted_text, redacted_url])
def test_a_mark_is_not_replaced_again(redact, text):
    """A-13: it must stay whole, also if it has a colon as those of a recording do."""
    clean = redact(text, lambda _: MARK)
    assert redact(clean, lambda _: "«redacted:5678»") == clean
    assert clean.count("«") == clean.count("»") == clean.count(MARK)


def test_a_percent_sign_in_a_value_is_no_encoding():
    assert redacted_fields('f --password=%s"', lambda _: "M") == 'f --password=%s"'


@pytest.mark.parametrize("text", ["`token={}`", "`token = {}`", "see `X-Api-Key: {}`"])
def test_the_name_may_follow_a_backtick(text):
    """A-13: Markdown in descriptions and answers."""
    assert "hunter2" not in shown(text.format("hunter2x"))
    kept = redacted_text(text.format("hunter2x"), lambda _: "M", lambda _, value: value.replace("hunter2x", "M"))
    assert kept == text.format("M")


def test_a_field_that_the_mark_keeps_is_not_decoded():
    """A-13: a caller that decides about each value gets back the text as it was."""
    assert redacted_fields("/?key=a%20b&token=c+d%2B", lambda value: value) == "/?key=a%20b&token=c+d%2B"
