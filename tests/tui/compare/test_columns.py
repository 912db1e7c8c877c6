"""A comparison in two columns, or with one side below the other."""

import pytest
from rich.cells import cell_len

from mcpspy.tui.compare import CLASSES, compared_rows, wrapped
from mcpspy.tui.model.comparison import ComparisonOutline, compared
from tests.test_text import unsafe
from tests.tui.views import HOSTILE

ONE = {"a": 1, "b": 2, "text": "warm and dry", "only": [1, 2], "at": "2026-01-01T10:00:00Z", "same": {"x": 1}}
OTHER = {"a": 1, "b": 2, "text": "warm and wet", "at": "2026-01-01T10:00:05Z", "same": {"x": 1}, "more": "m"}


def drawn(one, other, width):
    found = compared_rows(ComparisonOutline(compared(one, other)).lines(), width)
    return ["".join(text for text, _ in row.cells).rstrip() for row in found]


def test_wide_screens_have_two_columns():
    assert [" ".join(line.split()) for line in drawn(ONE, OTHER, 120)] == [
        "▸ 2 equal: a, b │ ▸ 2 equal: a, b",
        'text: "warm and dry" ≠ text: "warm and wet"',
        "▸ only: [1,2] <",
        'at: "2026-01-01T10:00:00Z" ≈ at: "2026-01-01T10:00:05Z"',
        "▸ same: {…} 1 member │ ▸ same: {…} 1 member",
        '> more: "m"',
    ]
    assert {line.index(sign) for line, sign in zip(drawn(ONE, OTHER, 120), "│≠<≈│>", strict=True)} == {59}


def test_narrow_screens_have_one_below_the_other():
    assert drawn(ONE, OTHER, 60) == [
        "  ▸ 2 equal: a, b",
        '-   text: "warm and dry"',
        '+   text: "warm and wet"',
        "- ▸ only: [1,2]",
        '≈-  at: "2026-01-01T10:00:00Z"',
        '≈+  at: "2026-01-01T10:00:05Z"',
        "  ▸ same: {…} 1 member",
        '+   more: "m"',
    ]


def test_what_differs_within_a_text_stands_out():
    found = compared_rows(ComparisonOutline(compared(ONE, OTHER)).lines(), 60)
    assert [cell for cell in found[1].cells if cell[1].endswith("-part")] == [("dry", "compare--left-part")]
    assert [cell for cell in found[2].cells if cell[1].endswith("-part")] == [("wet", "compare--right-part")]
    assert {style for row in found for _, style in row.cells if style} <= CLASSES


@pytest.mark.parametrize("width", [10, 60, 100, 121])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_row_is_wider_than_the_screen_or_unsafe(text, width):
    made = drawn({text: text, "a": [text], "b": text}, {text: f"{text}!", "b": f"{text}\n1\n{text}"}, width)
    made += drawn({"b": f"{text}\n{text}"}, {"b": f"{text}\n{text}?"}, width)
    assert all(cell_len(line) <= max(width, 22) for line in made)
    assert not unsafe("".join(made))


def test_long_texts_begin_shortly_before_they_part():
    made = drawn({"a": "x" * 9000 + "1" + "y" * 9000}, {"a": "x" * 9000 + "2" + "y" * 9000}, 80)
    assert made[0].startswith("-   a: …xxxxx")
    assert "x1y" in "".join(made).replace("\n", "")


def test_rows_break_at_blanks():
    cells = [("one two ", "a"), ("three four", "b")]
    assert [[text for text, _ in row] for row in wrapped(cells, 20, 2)] == [["one two ", "three four"]]
    assert [[text for text, _ in row] for row in wrapped([*cells, (" five", "c")], 20, 2)] == [
        ["one two ", "three four", " "],
        ["  ", "five"],
    ]
    assert wrapped([], 20, 2) == [[]]
