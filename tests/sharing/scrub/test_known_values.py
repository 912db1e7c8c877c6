"""Known values: their labels, and the places where they are found."""

import json

from mcpspy.sharing.scrub import values
from mcpspy.sharing.scrub.values import EMAIL, HOME, SESSION, VALUE, KnownValues, is_personal
from tests.each import each


def replaced(known, text, **options):
    found = []
    return known.replaced(text, lambda *it: found.append(it), **options), len(found)


def test_equal_values_have_equal_labels_numbered_in_order():
    known = KnownValues()
    assert [known.label(VALUE, value) for value in ("abc", "def", "abc")] == [
        "redacted-value-1", "redacted-value-2", "redacted-value-1"
    ]  # fmt: skip
    assert known.label(EMAIL, "a@b.cc") == "email-1@redacted.invalid"
    assert known.label(SESSION, "abc") == "redacted-value-1", "it has a label already"


@each(
    "value, text, new",
    [
        ("correct horse battery", "the correct horse battery!", "the L!"),
        ("a+b/c=0123456789xyz", "?x=a%2Bb%2Fc%3D0123456789xyz", "?x=L"),
        ('quote"0123456789xyz', r"x quote\"0123456789xyz quote\\\"0123456789xyz", "x L L"),
        ("correct-horse-battery-1", "xcorrect-horse-battery-1y", "xLy"),
        ("hunter2", "hunter2, hunter23 xhunter2", "L, hunter23 xhunter2"),
        ("swordfish", "a swordfish; swordfishes", "a L; swordfishes"),
        ("zebra", "a zebra", "a zebra"),
        ("grün-und-0123456789", "x grün-und-0123456789 gr%C3%BCn-und-0123456789", "x L L"),
    ],
)
def test_a_value_is_found_in_a_text_as_far_as_it_is_distinctive(value, text, new):
    known = KnownValues()
    label = known.label(VALUE, value)
    assert replaced(known, text)[0] == new.replace("L", label)
    assert known.may_stand_in(text) or new == text


def test_a_user_name_is_found_as_a_word():
    known = KnownValues()
    assert known.label(HOME, "alice") == "user-1"
    assert replaced(known, "alice's, alice-x @alice malice alice_b alices") == (
        "user-1's, user-1-x @user-1 malice alice_b alices", 3
    )  # fmt: skip
    assert replaced(known, "alice", users=False) == ("alice", 0)


def test_with_many_values_each_is_found_as_with_few():
    known = KnownValues()
    values = [f"secret-value-{n:04}-abcdef" for n in range(500)] + ["hunter2"]
    labels = [known.label(VALUE, value) for value in values]
    for value, label in zip(values, labels, strict=True):
        line = f'{{\\"a\\":\\"x {value} y\\"}}'
        assert known.may_stand_in(line)
        assert replaced(known, line) == (line.replace(value, label), 1)
    assert not known.may_stand_in("nothing of it stands here, and it is not short")


def test_accounts_of_machines_are_nobody():
    assert [name for name in ("runner", "root", "user", "ubuntu", "1000", "user-1") if is_personal(name)] == []
    assert is_personal("alice")
    assert is_personal("j.doe")


@each("form", ["a%2fb%21c%20d12345678", "a%2Fb!c%20d12345678", "a%2Fb%21c+d12345678"])
def test_a_value_is_found_as_any_program_writes_it_in_a_url(form):
    known = KnownValues()
    label = known.label(VALUE, "a/b!c d12345678")
    assert known.replaced(f"?q={form}&x", lambda *_: None) == f"?q={label}&x"


@each("value", ["zebra", "47", "zwölf", "a"])
def test_a_value_that_only_counts_as_a_whole_string_is_seen_in_a_line(value):
    known = KnownValues()
    known.label(VALUE, value)
    for text in (value, json.dumps({"x": value}), json.dumps([json.dumps({"x": value})])):
        assert known.may_stand_in(json.dumps({"raw": text}))
    assert not known.may_stand_in(json.dumps({"raw": "nothing"}))


def test_a_plain_value_is_not_encoded(monkeypatch):
    """A-01: encoding took most of the time of a text with many secrets, and changes nothing in most."""
    monkeypatch.setattr(values, "quote", None)
    known = KnownValues()
    known.label(VALUE, "a-plain_value.2")
    assert known.replaced("is a-plain_value.2 there", lambda *_: None) == "is redacted-value-1 there"
