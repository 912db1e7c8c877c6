"""The classification of words by their form: placeholders, plain words, random words, secrets."""

import pytest

from mcpspy.sharing.scrub.looks import is_distinctive, is_placeholder, is_word, looks_random, looks_secret


@pytest.mark.parametrize(
    "value",
    ["", "  ", "<token>", "${TOKEN}", "$TOKEN", "{{token}}", "%TOKEN%", "***", "xxxx", "your-api-key", "Your key here",
     "null", "none", "true", "undefined", "[redacted]", "«redacted:0a1b2c3d»", "«withheld: 12 bytes»", "REDACTED",
     "redacted-value-3", "redacted-github-token-1", "email-1@redacted.invalid", "session-1", "user-12", "…"],
)  # fmt: skip
def test_a_placeholder_is_no_secret(value):
    assert is_placeholder(value)


@pytest.mark.parametrize(
    "value",
    ["$ecretPass9", "$ecret", "$token", "${unclosed", "%real%", "%Pass9%", "your-S3cret", "your-pass!word9",
     "<Zk39dKw02Lq8Xm4P>", "{Zk39dKw02Lq8Xm4P}", "${Zk39dKw02Lq8Xm4P}"],
)  # fmt: skip
def test_a_password_in_the_form_of_a_placeholder_is_a_secret(value):
    """A-13."""
    assert not is_placeholder(value)


@pytest.mark.parametrize("value", ["$", "$HOME_2", "${env:TOKEN", "${input:api-key}", "$env:TOKEN", "your_token_here"])
def test_a_variable_is_no_secret(value):
    assert is_placeholder(value)


@pytest.mark.parametrize("value", ["a", "x1", "correct horse", "nonesuch", "yesterday", "redacted-value-3x"])
def test_anything_else_may_be_one(value):
    assert not is_placeholder(value)


@pytest.mark.parametrize("word", ["hunter2", "abc123def", "P4ssw0rd!", "4f9a8b7c6d5e", "x1y2z3"])
def test_letters_and_digits_look_like_a_secret(word):
    assert looks_secret(word)


@pytest.mark.parametrize(
    "word",
    ["abc1", "swordfish", "sha256", "base64", "oauth2", "1.2.3", "v1.2.3-beta.4", "2026-11-20", "12345678", "/a/b1/c",
     "https://a1.example", "page_size_10", "C:\\x1", "a/b1c2d3", "f(x1, y2)", "100000ms"],
)  # fmt: skip
def test_versions_dates_paths_and_names_of_algorithms_do_not(word):
    assert not looks_secret(word)


@pytest.mark.parametrize("word", ["Zk39dKw02Lq8Xm4Pt7Vb1", "4f9a8b7c6d5e4f3a", "735f9314-a28d-4d3f-8108-25ea90d48bbb"])
def test_keys_and_digests_look_random(word):
    assert looks_random(word)


@pytest.mark.parametrize(
    "word",
    ["claude-3-5-sonnet-20241022", "notifications-tools-list-changed", "aaaaaaaaaaaaaaaaaaaa", "12345678901234567890",
     "io.modelcontextprotocol", "internationalization", "getServerCapabilities", "abababababababababab"],
)  # fmt: skip
def test_words_put_together_do_not(word):
    assert not looks_random(word)


def test_a_long_value_is_found_anywhere_a_shorter_one_as_a_word_and_a_plain_one_only_whole():
    assert is_distinctive("correct-horse-99x")
    assert is_distinctive("correct horse battery staple")
    assert not is_distinctive("internationalization")
    assert is_word("swordfish")
    assert is_word("hunter2")
    assert not is_word("zebra")
    assert not is_word("password")
    assert not is_word("123456")
