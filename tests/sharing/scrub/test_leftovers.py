"""Words that still look random after a scrub."""

from mcpspy.sharing.scrub.categories import VALUE
from mcpspy.sharing.scrub.known_values import KnownValues
from mcpspy.sharing.scrub.leftovers import Leftovers, may_have_leftovers

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
