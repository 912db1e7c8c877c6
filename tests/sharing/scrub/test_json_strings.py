"""Strings in JSON texts are replaced, and nothing else changes."""

import json

from mcpspy.sharing.scrub.messages import changed, is_json
from tests.each import each
from tests.limits import proportionate


class Marked:
    """Replaces a given text, and keeps the pointer and text of each string."""

    def __init__(self, old="old", new="new"):
        self.old = old
        self.new = new
        self.asked = []

    def enter(self, levels, level):
        pass

    def string(self, text, levels):
        self.asked.append((levels.pointer, text))
        return text.replace(self.old, self.new)

    def key(self, text, _):
        return text.replace(self.old, self.new)

    def number(self, digits, levels):
        self.asked.append((levels.pointer, digits))
        return digits


@each(
    "text, new",
    [
        ('{"a": "old",  "a":1.50e0}', '{"a": "new",  "a":1.50e0}'),
        ('{"old":1}', '{"new":1}'),
        (r'["\u006fld", "\u00e9 old", "é old", "\/"]', r'["new", "\u00e9 new", "é new", "\/"]'),
        (r'["\ud83d\ude00 old \ud800"]', r'["\ud83d\ude00 new \ud800"]'),
        ('[NaN, -Infinity, 1e999, -0, 1234567890123, "old"]', '[NaN, -Infinity, 1e999, -0, 1234567890123, "new"]'),
        ('\t[{}, [], {"a":{"b":["old"]}} ]\r\n', '\t[{}, [], {"a":{"b":["new"]}} ]\r\n'),
        ('["old\tline\x01"]', '["new\\tline\\u0001"]'),
    ],
)  # fmt: skip
def test_a_string_is_replaced_in_its_place(text, new):
    assert changed(text, Marked()) == new
    assert is_json(text)


@each(
    "text",
    ["", "old", '"old"', "1", "[", '["old"', '["old]', "[}", "{]", "[] []", "[1] x", '{"a":1', "[nul]", "[1", "]", ",",
     '["\\x"]', "[01a]", '"a":1', "{a:1}"],
)  # fmt: skip
def test_what_is_not_an_object_or_array_is_no_json(text):
    assert changed(text, Marked()) is None
    assert not is_json(text)


def test_where_a_string_stands_is_told_as_a_pointer():
    marked = Marked()
    changed('{"a":[1,{"b/c":"x"}],"old":"y","":{"~":"z"}}', marked)
    assert marked.asked == [("/a/0", "1"), ("/a/1/b~1c", "x"), ("/new", "y"), ("//~0", "z")]


def test_bytes_that_are_no_utf8_stay_beside_an_escaped_surrogate():
    raw = b'["old \xff \\ud800 \\udcff"]'
    text = changed(raw.decode("utf-8", "surrogateescape"), Marked())
    assert json.loads(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))[0].startswith("new")
    assert b"\xff" in text.encode("utf-8", "surrogateescape")


@each("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '["' + "a" * 8_000_000 + '"]',
             '["' + "\\n" * 2_000_000 + '"]', '"' * 1_000_000, '{"a":' * 100_000]
)  # fmt: skip
def test_a_hostile_text_takes_linear_time(text):
    with proportionate(3):
        changed(text, Marked())
        is_json(text)
