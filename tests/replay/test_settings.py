"""Settings of a replay, and lines in streams."""

import os
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import ConfigError, UsageError
from mcpspy.replay.settings import ReplaySettings, chosen, place, read, with_tolerances
from mcpspy.replay.tolerance import WAYS, Echo, PlacePattern, Rules, Tolerance
from mcpspy.transport.streams import chunks, lines, send
from tests.each import each


def test_settings_stand_beside_the_capture():
    assert place("captures/weather.jsonl") == "captures/weather.replay.toml"


def test_without_a_file_everything_is_compared(tmp_path):
    assert read(str(tmp_path / "none.toml")) == ReplaySettings(Rules(), read_only=False)


def written(tmp_path, text):
    path = tmp_path / "c.replay.toml"
    path.write_text(text)
    return str(path)


FILE = """
ignore = ["/result/a", "tools/call x"]
shape = true
strict = true
read_only = true

[is]
"tools/call now /result/content/0/text" = "date-time"

[matches]
'/params/arguments/nonce' = '^[a-z]+$'

[within]
"/result/cpu" = 0.5
"/result/load" = 1

[echo]
"tools/call book /result/nonce" = "/params/arguments/nonce"
"""
RULES = (
    ("ignore", "/result/a", ""),
    ("ignore", "tools/call x", ""),
    ("is", "tools/call now /result/content/0/text", "date-time"),
    ("matches", "/params/arguments/nonce", "^[a-z]+$"),
    ("within", "/result/cpu", 0.5),
    ("within", "/result/load", 1),
)
NOTHING = dict.fromkeys(WAYS, ())


def test_a_file_has_settings_and_tables(tmp_path):
    echo = Echo.parse("tools/call book /result/nonce", "/params/arguments/nonce")
    rules = Rules(tuple(Tolerance.parse(*it) for it in RULES), (echo,), shape=True, strict=True)
    assert read(written(tmp_path, FILE)) == ReplaySettings(rules, read_only=True)


@each(
    "text, hint",
    [
        ("ignored = []", "'ignored', which is not a setting; did you mean 'ignore'?"),
        ("[match]", "'match', which is not a setting; did you mean 'matches'?"),
        ("x = 1", "the settings are ignore, is, matches, within, echo, shape, strict, read_only"),
        ('shape = "yes"', "shape is true or false"),
        ("ignore = [1]", "ignore is an array of strings"),
        ('ignore = "/a"', "ignore is an array of strings"),
        ('is = "uuid"', "is is a table: a place = the form of its values"),
        ("shape = ", "cannot read"),
        (
            'ignore = ["result/a"]',
            "ignore: 'result/a' is not a method; a JSON Pointer begins with a slash",
        ),
        ('[is]\n"/a" = "datetime"', "[is] '/a': 'datetime' is not a form of values; did you mean 'date-time'?"),
        ('[is]\n"/a" = 5', "[is] '/a': '5' is not a form of values; the forms are date-time, date, uuid"),
        ('[is]\n"tools/call" = "uuid"', "[is] 'tools/call': 'tools/call' has no JSON Pointer; 'is' needs one"),
        ('[is]\n"/a~" = "uuid"', "'/a~' is not a JSON Pointer: write ~ in a name as ~0"),
        ("[matches]\n'/a' = '(a)\\1'", "'(a)\\\\1' is not a regular expression without look-around"),
        ("[matches]\n'/a' = 5", "'5' is not a regular expression"),
        ("[within]\n'/a' = '5'", "[within] '/a': '5' is not a distance; write a number, such as 0.5"),
        ("[within]\n'/a' = -1", "is not a distance"),
        ("[within]\n'/a' = true", "is not a distance"),
        ("[within]\n'/a' = nan", "is not a distance"),
        ("[echo]\n'/result/a' = '/result/b'", "[echo] '/result/a': '/result/b' is not a pointer into the request"),
        ("[echo]\n'/params/a' = '/params/b'", "'/params/a' is not in an answer; it begins with /result or /error"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, hint):
    with pytest.raises(ConfigError, match=re.escape(hint)) as caught:
        read(written(tmp_path, text))
    assert "c.replay.toml" in str(caught.value)


@each(
    "way, text, hint",
    [
        ("is", "/a", "--is: '/a' has no value; write '/result/structuredContent/at=date-time'"),
        ("is", "/a=uid", "'uid' is not a form of values; did you mean 'uuid'?"),
        ("matches", "/a=(?=a)", "'(?=a)' is not a regular expression"),
        ("within", "/a=x", "'x' is not a distance"),
        ("ignore", "result/x", "a JSON Pointer begins with a slash"),
    ],
)
def test_a_mistake_in_an_option_is_named(way, text, hint):
    with pytest.raises(UsageError, match=re.escape(hint)):
        chosen([], {**NOTHING, way: [text]})


def test_the_command_line_adds_and_takes_nothing_away(tmp_path):
    capture = str(tmp_path / "c.jsonl")
    written(tmp_path, 'ignore = ["/a"]\nshape = true\n')
    more = {"ignore": ["/b"], "is": ["resources/read db://x?y=1 /result/at=date"], "matches": ["/c=a=b /d"]}
    found = chosen([capture], NOTHING | more | {"within": ["/e=1.5"], "read_only": True})
    rules = (
        ("ignore", "/a"),
        ("ignore", "/b"),
        ("is", "resources/read db://x?y=1 /result/at", "date"),
        ("matches", "/c", "a=b /d"),
        ("within", "/e", 1.5),
    )
    assert found == ReplaySettings(Rules(tuple(Tolerance.parse(*it) for it in rules), shape=True), read_only=True)


@each("rule", RULES)
def test_a_rule_reads_as_it_is_written(rule):
    found = Tolerance.parse(*rule)
    assert Tolerance.option(found.by, str(found)) == found


def test_what_is_added_leaves_the_rest_of_the_file_alone():
    text = '# mine\nshape = true\nignore = [ "/a" ] # why\n'
    more = with_tolerances(text, [Tolerance.parse("ignore", "tools/call x /b")])
    assert more == "# mine\nshape = true\nignore = [\n    'tools/call x /b', \"/a\" ] # why\n"
    again = with_tolerances("[is] # mine\n'/a' = 'uuid'", [Tolerance.parse(*it) for it in RULES[1:4]])
    assert tomllib.loads(again) == {
        "ignore": ["tools/call x"],
        "is": {"tools/call now /result/content/0/text": "date-time", "/a": "uuid"},
        "matches": {"/params/arguments/nonce": "^[a-z]+$"},
    }
    with pytest.raises(ConfigError, match="write each table under its name"):
        with_tolerances("is = {}", [Tolerance.parse("is", "/a", "uuid")])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, unique=True))
def test_what_is_added_can_be_read_whatever_is_in_it(names):
    found = [Tolerance(PlacePattern("m", "*", (name,)), way, "x") for name in names for way in ("ignore", "is")]
    once = with_tolerances("", found)
    places = [str(it.place) for it in found if it.by == "is"]
    assert tomllib.loads(once) == {"ignore": places, "is": dict.fromkeys(places, "x")}
    assert tomllib.loads(with_tolerances(once, [Tolerance.parse("ignore", "/x")]))["ignore"] == ["/x", *places]


@each(
    "stream, whole",
    [
        ([], []),
        ([b"a\n"], [b"a"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"a\n\nb"], [b"a", b"", b"b"]),
        ([b"a\r\n"], [b"a\r"]),
        ([b"x" * 70_000, b"y" * 70_000 + b"\nz\n"], [b"x" * 70_000 + b"y" * 70_000, b"z"]),
        ([b"x" * 200_000], [b"x" * 200_000]),
    ],
)
def test_lines_come_out_whole_however_they_came_in(stream, whole):
    assert list(lines(stream)) == whole


def test_a_descriptor_is_read_to_its_end():
    source, sink = os.pipe()
    assert send(sink, b"one")
    assert send(sink, b"two")
    os.close(sink)
    assert b"".join(chunks(source)) == b"one\ntwo\n"
    os.close(source)
    assert list(chunks(source)) == [], "what breaks has ended"


def test_a_peer_that_has_gone_takes_no_more():
    source, sink = os.pipe()
    os.close(source)
    assert not send(sink, b"one")
    os.close(sink)
