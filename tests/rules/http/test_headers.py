"""Headers that repeat members of a request: cases that the rule examples do not cover."""

import pytest

from mcpspy.rules.http.headers import decoded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("us-west1", "us-west1"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?base64??=", ""),
        ("=?BASE64?SGk=?=", "=?BASE64?SGk=?="),
        ("=?base64?SGk?=", None),
        ("=?base64?/w==?=", None),
        ("=?base64?=", "=?base64?="),
    ],
)
def test_a_value_that_no_header_can_have_goes_in_base64(value, text):
    """H-13; the encoding examples of 2026-07-28."""
    assert decoded(value) == text
