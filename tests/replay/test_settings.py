"""Settings of a replay, and lines in streams."""

import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import ConfigError, UsageError
from mcpspy.replay.sessions import Ignored, Rules
from mcpspy.replay.settings import ReplaySettings, place, read, with_ignored, with_options
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


def test_a_file_says_what_the_command_line_would(tmp_path):
    text = 'ignore = ["/result/a", "tools/call x"]\nshape = true\nstrict = true\nread_only = true\n'
    patterns = (Ignored.parse("/result/a"), Ignored.parse("tools/call x"))
    assert read(written(tmp_path, text)) == ReplaySettings(Rules(patterns, shape=True, strict=True), read_only=True)


@each(
    "text, hint",
    [
        ("ignored = []", "'ignored', which is not a setting; did you mean 'ignore'?"),
        ("x = 1", "the settings are ignore, shape, strict, read_only"),
        ('shape = "yes"', "shape is true or false"),
        ("ignore = [1]", "ignore is an array of strings"),
        ('ignore = "/a"', "ignore is an array of strings"),
        ("shape = ", "cannot read"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, hint):
    with pytest.raises(ConfigError, match=hint):
        read(written(tmp_path, text))


def test_a_pattern_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="'/result/a'"):
        read(written(tmp_path, 'ignore = ["result/a"]'))


def test_the_command_line_adds_and_takes_nothing_away():
    first = with_options(ReplaySettings(), ["/a"], shape=True)
    both = with_options(first, ["/b"], read_only=True)
    assert both == ReplaySettings(Rules((Ignored.parse("/a"), Ignored.parse("/b")), shape=True), read_only=True)


def test_what_is_added_leaves_the_rest_of_the_file_alone():
    text = '# mine\nshape = true\nignore = [ "/a" ] # why\n'
    more = with_ignored(text, ["tools/call x /b"])
    assert more == "# mine\nshape = true\nignore = [\n    'tools/call x /b', \"/a\" ] # why\n"
    assert tomllib.loads(with_ignored("[table]\nx = 1\n", ["/b"])) == {"ignore": ["/b"], "table": {"x": 1}}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_what_is_added_can_be_read_whatever_is_in_it(patterns):
    once = with_ignored("", patterns)
    assert tomllib.loads(once)["ignore"] == patterns
    assert tomllib.loads(with_ignored(once, ["/x"]))["ignore"] == ["/x", *patterns]


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
