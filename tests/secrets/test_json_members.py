"""A-13: lists and objects below secret names, in JSON that is a part of a text."""

import json
from functools import partial
from pathlib import Path

import pytest

from mcpspy.secrets.patterns import is_secret_name
from mcpspy.secrets.text import redacted_members, redacted_text, redacted_url
from tests.cases import pairs
from tests.limits import proportionate

redacted = partial(redacted_members, is_secret=is_secret_name, mark=lambda _: "M", prose=None)

MEMBERS = pairs(Path(__file__).parent / "cases" / "json-members.txt")


@pytest.mark.parametrize(("text", "clean"), MEMBERS)
def test_all_strings_and_numbers_below_a_secret_name_are_redacted(text, clean):
    """A-13."""
    assert redacted(text) == clean


@pytest.mark.parametrize(("text", "clean"), MEMBERS)
@pytest.mark.parametrize("redact", [redacted_text, redacted_url])
def test_they_are_redacted_in_every_text(redact, text, clean):
    """A-13: the same in a word, a header and a URL; a mark is not replaced again."""
    first = redact(text, lambda _: "«redacted:1234»")
    assert first == clean.replace("M", "«redacted:1234»")
    assert redact(first, lambda _: "«redacted:5678»") == first


@pytest.mark.parametrize("text", [text for text, _ in MEMBERS[:7]])
def test_json_stays_json(text):
    """A-13."""
    json.loads(redacted(text))


def test_in_a_message_the_caller_decides():
    """A-13: schemas have secret names too."""
    text = '{"token":{"type":"string","default":"S"}}'
    assert redacted(text, prose=lambda name, value: f"M of {name}" if value == "S" else value) == text.replace(
        '"S"', '"M of token"'
    )


@pytest.mark.parametrize(
    "unit", ['{"key":', '{"key":["', '"key":[', '{"key":{}', r"{\"key\":[\"", '"', '\\"', '"key":[1,']
)
def test_a_long_text_takes_time_linear_in_its_length(unit):
    """A-01."""
    with proportionate(1):
        redacted(unit * (80_000 // len(unit)))
