import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import ConfigError, UsageError
from mcpspy.replay.compare.sessions import Ignored, Rules
from mcpspy.replay.settings import ReplaySettings, place, read, with_ignored, with_options


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


@pytest.mark.parametrize(
    ("text", "hint"),
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
