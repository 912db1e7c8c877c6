"""What a word, a schema, a line of a key and a leftover look like."""

import json
import re
from urllib.parse import quote

from mcpspy.secrets.patterns import KINDS
from mcpspy.secrets.tokens import in_frame
from mcpspy.sharing.scrub import values
from mcpspy.sharing.scrub.messages import are_schemas, is_schema
from mcpspy.sharing.scrub.values import (
    LABEL,
    RULES,
    VALUE,
    Category,
    KnownValues,
    Leftovers,
    is_distinctive,
    is_member,
    is_placeholder,
    is_word,
    is_word_of,
    looks_random,
    looks_secret,
    may_have_leftovers,
    members,
    of_token,
)
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import Revision
from tests.each import each
from tests.secrets import examples
from tests.sharing.scrub.captures import OUT, capture, frame, frames, result


@each(
    "value",
    ["", "  ", "<token>", "${TOKEN}", "$TOKEN", "{{token}}", "%TOKEN%", "***", "xxxx", "your-api-key", "Your key here",
     "null", "none", "true", "undefined", "[redacted]", "«redacted:0a1b2c3d»", "«withheld: 12 bytes»", "REDACTED",
     "<redacted>", "redacted-value-3", "redacted-github-token-1", "email-1@redacted.invalid", "session-1", "user-12",
     "…"],
)  # fmt: skip
def test_a_placeholder_is_no_secret(value):
    assert is_placeholder(value)


@each(
    "value",
    ["$ecretPass9", "$ecret", "$token", "${unclosed", "%real%", "%Pass9%", "your-S3cret", "your-pass!word9",
     "<Zk39dKw02Lq8Xm4P>", "{Zk39dKw02Lq8Xm4P}", "${Zk39dKw02Lq8Xm4P}", "your mom goes to college",
     "your-mom-goes-to-college", "<keyboard cat>", "{keyboard cat}", "{{correct horse}}"],
)  # fmt: skip
def test_a_password_in_the_form_of_a_placeholder_is_a_secret(value):
    """A-13."""
    assert not is_placeholder(value)


@each("value", ["$", "$HOME_2", "${env:TOKEN", "${input:api-key}", "$env:TOKEN", "your_token_here"])
def test_a_variable_is_no_secret(value):
    assert is_placeholder(value)


@each("value", ["a", "x1", "correct horse", "nonesuch", "yesterday", "redacted-value-3x"])
def test_anything_else_may_be_one(value):
    assert not is_placeholder(value)


@each("word", ["hunter2", "abc123def", "P4ssw0rd!", "4f9a8b7c6d5e", "x1y2z3"])
def test_letters_and_digits_look_like_a_secret(word):
    assert looks_secret(word)


@each(
    "word",
    ["abc1", "swordfish", "sha256", "base64", "oauth2", "1.2.3", "v1.2.3-beta.4", "2026-11-20", "12345678", "/a/b1/c",
     "https://a1.example", "page_size_10", "C:\\x1", "a/b1c2d3", "f(x1, y2)", "100000ms"],
)  # fmt: skip
def test_versions_dates_paths_and_names_of_algorithms_do_not(word):
    assert not looks_secret(word)


@each("word", ["Zk39dKw02Lq8Xm4Pt7Vb1", "4f9a8b7c6d5e4f3a", "735f9314-a28d-4d3f-8108-25ea90d48bbb"])
def test_keys_and_digests_look_random(word):
    assert looks_random(word)


@each(
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


@each(
    "value",
    [
        {"type": "object", "properties": {"a": {}, "b": True, "c": {"$ref": "#/x"}}, "required": ["a"]},
        {"type": ["string", "null"], "title": "A", "minLength": 1, "x-order": "a"},
        {"anyOf": [{"type": "string"}, {"const": {"a": 1}}], "default": 1, "deprecated": True},
        {"type": "array", "items": {"type": "number", "minimum": "1"}},
    ],
)
def test_keywords_with_values_of_their_types_are_a_schema(value):
    assert is_schema(value)
    assert are_schemas({"a": value})


@each(
    "value",
    [
        None, [], {}, {"description": "a"}, {"type": "rich_text"}, {"type": "number", "number": 1},
        {"type": "object", "properties": {"a": {"value": "b"}}}, {"type": "string", "title": ["a"]},
        {"type": "array", "items": [{"a": "b"}]}, {"type": "object", "required": "a"}, {"type": {"a": "b"}},
        {"type": "object", "x-keys": {"a": "b"}},
    ],
)  # fmt: skip
def test_other_members_or_types_are_none(value):
    """A-13."""
    assert not is_schema(value)


@each(
    "member, word",
    [("role", "assistant"), ("type", "resource_link"), ("type", "object"), ("status", "working"), ("level", "debug"),
     ("jsonrpc", "2.0"), ("audience", "user"), ("resultType", "complete"), ("from", "client"), ("method", "POST")],
)  # fmt: skip
def test_a_word_of_the_specification_is_one(member, word):
    assert is_word_of(member, word)
    assert not is_word_of("text", word)
    assert not is_word_of(member, "zebra")


def test_every_method_and_revision_is_a_word():
    for revision in Revision:
        assert is_word_of("protocolVersion", revision.value)
        assert all(is_word_of("method", method) for method in methods(revision))


@each("member", ["text", "uri", "name", "description", "id", "progressToken", "pattern", "required", 5])
def test_a_member_with_any_value_has_no_words(member):
    """A-13."""
    assert not is_word_of(member, "zebra")


def test_members_are_those_of_the_specification_and_of_schemas():
    assert is_member("arguments")
    assert is_member("patternProperties")
    assert not is_member("zebra")
    assert len(members()) > 150


EACH = [one for one in vars(values).values() if isinstance(one, Category)] + [of_token(kind) for kind in KINDS]


@each("category", EACH, ids=lambda it: it.title)
def test_a_label_is_safe_in_json_urls_and_heads_and_is_known_again(category):
    label = f"{category.stem}12{category.ending}"
    assert re.fullmatch(r"[a-z0-9@.-]+", label)
    assert quote(label, safe="@") == label
    assert category.title == "frame that was not decoded" or LABEL.fullmatch(label)
    assert category.rule in ("", *RULES)


@each("kind", KINDS, ids=lambda it: it.name)
def test_a_label_in_the_place_of_a_token_is_no_token(kind):
    label = f"{of_token(kind).stem}12"
    text = examples.token(kind, kind.literals[0])
    text = text.replace(text.partition(kind.literals[0])[2], label) if kind.kept else label
    assert in_frame(text.encode()) is None


_KEY = ["MIIEowIBAAKCAQEAx1", "q83vEjRWeJCrze8SNFZ4kKvN", "Zk39dw=="]


@each("before, after", [("[srv] ", ""), ("'", "',"), ("\x1b[32m", "\x1b[0m"), ("(1) | ", "")])
def test_a_private_key_with_something_around_its_lines_in_a_text_is_taken_out(tmp_path, before, after):
    """A-17: up to its last line."""
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *_KEY, "-----END RSA PRIVATE KEY-----"]
    text = "\n".join(["the key (1)", *(f"{before}{line}{after}" for line in lines), "international/conversation"])
    (raw,) = frames(capture(tmp_path / "a.jsonl", frame(OUT, result(text))))
    new = json.loads(raw)["result"]["content"][0]["text"]
    assert not [part for part in _KEY if part in new]
    assert new.startswith("the key (1)\n")
    assert new.endswith("\ninternational/conversation")


WORD = "Zk39dKw02Lq8Xm4Pt7Vb1"


def test_words_that_look_random_are_counted_the_most_frequent_first():
    left = Leftovers()
    left.look(f"one {WORD}, two {WORD[::-1]}.", 5, "/a")
    left.look(f'{{"x":"{WORD}"}}', 6, "/b")
    assert [(it.n, it.where, it.text, it.count) for it in left.of(KnownValues())] == [
        (5, "/a", WORD, 2), (5, "/a", WORD[::-1], 1)
    ]  # fmt: skip


def test_what_became_known_later_is_not_left():
    left, known = Leftovers(), KnownValues()
    left.look(WORD, 5, "")
    known.label(VALUE, WORD)
    assert not left.of(known)


def test_labels_words_ids_and_binary_data_are_not_meant():
    left = Leftovers()
    for text in (
        "735f9314-a28d-4d3f-8108-25ea90d48bbb", "redacted-private-key-line-1-abc", "notifications-tools-list-changed",
        (WORD + "+") * 40, "x" * 30,
    ):  # fmt: skip
        left.look(text, 1, "")
    assert not left.of(KnownValues())


def test_a_line_with_a_long_word_is_looked_at():
    assert may_have_leftovers(b'{"a":"' + WORD.encode() + b'"}')
    assert not may_have_leftovers(b'{"a":"some short words", "b": 1234567890}')
