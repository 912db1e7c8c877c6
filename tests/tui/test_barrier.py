import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from mcpspy.tui.app import Barrier
from tests.hostile_text import NASTY, unsafe

BLACK = Color(0, 0, 0)
RED = Style(color="red")


def passed(*segments):
    return Barrier().apply(list(segments), BLACK)


@pytest.mark.parametrize("text", ["plain", "日本 │ ▄▄", "é…", "e\u0301", "שלום مرحبا", "😀 👍🏽", ""])
def test_a_safe_line_passes_unchanged(text):
    line = [Segment(text, RED), Segment(" ")]
    assert Barrier().apply(line, BLACK) is line


def test_hostile_text_is_escaped_and_the_width_stays():
    """A-14."""
    line = [Segment(f"a{NASTY}", RED), Segment(" " * 200)]
    found = passed(*line)
    assert not unsafe("".join(segment.text for segment in found))
    assert found[0].text.startswith("a\\u001b]52;c;QUJD\\u0007")
    assert found[0].style == RED
    assert Segment.get_line_length(found) == Segment.get_line_length(line)


def test_a_joiner_between_two_rows_is_no_escape():
    line = passed(Segment("\u0645\u06cc\u200c", RED), Segment("\u062e\u0648 a\u200c"), Segment(" " * 9))
    assert [segment.text for segment in line][:2] == ["\u0645\u06cc", "\u062e\u0648 a\\u200c"]


def test_ends_of_lines_and_tabs_are_escaped():
    assert passed(Segment("a\nb\tc"), Segment("     "))[0].text == "a\\nb\\tc"


def test_a_link_is_removed():
    """A-14: a terminal opens the link when its text is clicked."""
    assert passed(Segment("click", Style(link="file:///x", bold=True))) == [Segment("click", Style(bold=True))]
