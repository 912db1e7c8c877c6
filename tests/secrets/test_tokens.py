"""The two searches that are built from the table: one for frames, one for texts."""

import time

import pytest

from mcpspy.secrets.patterns import KINDS
from mcpspy.secrets.tokens import in_frame, replaced
from tests.each import each
from tests.secrets.examples import TOKENS, token


@pytest.mark.parametrize(
    ("before", "after"), [(b"", b""), (b'"', b'"'), (b"\\n", b"\\n"), (b"a ", b" b"), (b"=", b"&")]
)
def test_a_token_is_found_whole_in_a_frame(before, after):
    for kind, literal in TOKENS:
        value = token(kind, literal).replace("\n", "\\n")
        name, found = in_frame(before + value.encode() + after)
        assert name == kind.name
        assert found.startswith(literal.encode())


def test_a_token_behind_a_letter_is_none():
    assert in_frame(b"xghp_" + b"a1" * 20) is None
    assert in_frame(b"task-" + b"a1" * 20) is None


def test_each_text_is_marked_in_place():
    value = "ghp_" + "A1" * 18
    assert replaced(f"a {value}, b", lambda _: "M") == "a M, b"
    assert replaced(f"{'x ' * 500}{value}", lambda _: "M") == "x " * 500 + "M"
    assert replaced("https://hooks.slack.com/services/T0/B0/abc", lambda _: "M") == "https://hooks.slack.com/services/M"


@each("kind", KINDS, ids=lambda kind: kind.name)
def test_many_beginnings_of_tokens_take_time_linear_in_their_length(kind):
    """A-01: it takes a millisecond; a regular expression that scans from each place to the end takes 45."""
    for literal in kind.literals:
        for unit in (literal, " " + literal, literal + "a", literal + "0-"):
            long = unit * (12_000 // len(unit))
            assert any(seconds(long) < 0.02 for _ in range(TRIES)), unit


TRIES = 20
"""The number of attempts, because a busy machine may be slow now and then; quadratic time is slow each time."""


def seconds(text):
    """Return the processor time that both searches take."""
    begun = time.process_time()
    in_frame(text.encode())
    replaced(text, lambda _: "M")
    return time.process_time() - begun
