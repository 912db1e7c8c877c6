"""The parts of a sequence diagram. Each has exactly the given width, whatever its content is."""

import pytest
from rich.cells import cell_len

from mcpspy.tui.views.sequence import arrow, brackets, pause_bar, pause_text
from tests.each import each


def test_an_arrow_carries_its_label_at_its_beginning():
    assert "".join(arrow("ping", 18, to_right=True, dashed=False)) == "── ping ─────────▶"
    assert "".join(arrow("ping", 18, to_right=False, dashed=False)) == "◀───────── ping ──"
    assert "".join(arrow("ping", 18, to_right=True, dashed=True)) == "╌╌ ping ╌╌╌╌╌╌╌╌╌▶"
    assert "".join(arrow("ping", 18, to_right=False, dashed=True)) == "◀╌╌╌╌╌╌╌╌╌ ping ╌╌"


@each("columns", range(20))
@pytest.mark.parametrize("label", ["", "a label that is too long", "日本語日本語日本語日本語", "日"])
@pytest.mark.parametrize("to_right", [True, False])
def test_an_arrow_is_as_wide_as_it_is_told_to_be(columns, label, to_right):
    assert cell_len("".join(arrow(label, columns, to_right=to_right, dashed=False))) == columns


@pytest.mark.parametrize(
    ("before", "after", "right", "left"),
    [
        (0b0, 0b0, "     ", "     "),
        (0b0, 0b1, "─╮   ", "   ╭─"),
        (0b1, 0b1, " │   ", "   │ "),
        (0b1, 0b0, "─╯   ", "   ╰─"),
        (0b1, 0b11, "─┼╮  ", "  ╭┼─"),
        (0b11, 0b1, "─┼╯  ", "  ╰┼─"),
        (0b11, 0b10, "─╯│  ", "  │╰─"),
        (0b10, 0b11, "─╮│  ", "  │╭─"),
        (0b100, 0b0, "───╯ ", " ╰───"),
        (0b10000, 0b0, "─────", "─────"),
    ],
)
def test_brackets_begin_go_on_and_end_on_either_side(before, after, right, left):
    assert brackets(before, after, 5, mirrored=False) == right
    assert brackets(before, after, 5, mirrored=True) == left


@pytest.mark.parametrize(
    ("milliseconds", "text", "dashes"),
    [(0.5, "", 0), (1, "1.0 ms", 0), (10, "10.0 ms", 1), (99, "99.0 ms", 1), (100, "100.0 ms", 2), (1000, "1.00 s", 3)],
)
def test_a_pause_is_told_and_shown(milliseconds, text, dashes):
    assert pause_text(round(milliseconds * 1e6), 9) == f"{text:>9}"
    assert pause_bar(round(milliseconds * 1e6)) == f"{'━' * dashes:<5}"


def test_a_pause_of_days_takes_no_more_room():
    assert pause_bar(10**15) == "━" * 5
    assert len(pause_text(10**15, 9)) == 9
