"""Lines are ruled out together by their bytes; for the undecided lines, the text of the frame is available."""

import pytest

from mcpspy.capture.scan import TEXT_FRAME
from mcpspy.filters.blocks import LineBlock
from mcpspy.filters.terms import trace
from tests.each import each

FRAME = '{"kind":"frame","ch":1,"t":5,"raw":"%s"}'
LINES = [
    FRAME % "a needle",
    FRAME % "NEEDLE and more",
    FRAME % "hay, x-2026-11",
    FRAME % "n\\\\u0065edle",
    FRAME % "\\u006eeedle",
    FRAME % 'say \\"hay\\"',
    '{"kind":"frame","ch":1,"t":5,"b64":"/w=="}',
    '{"kind":"frame","ch":1,"t":5,"raw":"hay","by":"needle"}',
    '{"kind":"frame","ch":01,"t":5,"raw":"hay"}',
    '{"kind":"gap","t":5,"lost":1,"why":"hay"}',
    "torn",
]
ALL = range(10, 10 + len(LINES))


def offset(line):
    """Return where the text of a frame begins in its line, 0 if the line has none."""
    head = TEXT_FRAME.match(line)
    return head.end() - 1 if head else 0


def block(apart=(), **options):
    """Return a block of LINES; the first has number 10 and begins at byte 1000. Those `apart` have no text."""
    starts = [1000]
    for line in LINES:
        starts.append(starts[-1] + len(line) + 1)
    texts = [0 if n in apart else offset(line.encode()) for n, line in zip(ALL, LINES, strict=True)]
    return LineBlock(10, "".join(line + "\n" for line in LINES).encode(), starts, texts, **options)


def left_open(traces, rows=ALL, **options):
    """Return the rows that are not ruled out."""
    told = block(**options).rule_out(traces, rows)
    assert set(told) <= {False, None}
    return [n for n, said in zip(rows, told, strict=True) if said is None]


HIDING = [13, 14, 16, 18, 19, 20]
"""The lines whose bytes may hide any text."""


@each(
    "traces, expected",
    [
        ([trace("needle")], [10, 11, 17]),
        ([trace("no such")], []),
        ([trace("needle/more")], [11]),
        ([trace("more"), trace("say")], [11, 15]),
        ([trace("X-2026-11")], [12]),
        ([trace("2026-11/hay")], [12]),
        ([trace("2026-12")], []),
        ([trace('"')], list(ALL)),
    ],
)
def test_a_line_is_left_open_where_a_trace_stands_or_may_hide(traces, expected):
    assert left_open(traces) == sorted({*expected, *HIDING})


def test_rows_come_in_any_order_and_what_is_apart_or_elsewhere_is_open():
    assert left_open([trace("hay")], [21, 12, 10, 9]) == [21, 12, 9]
    assert left_open([trace("more")], [10, 11, 12], apart=[12]) == [11, 12]
    assert block().stop == 21


def test_the_text_of_a_row_is_its_frame_where_that_is_all_it_has():
    texts = ["a needle", "NEEDLE and more", "hay, x-2026-11", "n\\u0065edle", "needle", 'say "hay"']
    assert block(exact=True).texts(ALL) == [*texts, None, None, None, None, None]
    assert block(exact=True, apart=[11]).texts([0, 9, 10, 11, 21]) == [None, None, "a needle", None, None]
    assert block().texts(ALL) == [None] * len(LINES)


def test_an_unfinished_line_inside_a_block_tells_no_text():
    """A relay may go on after a line that was cut."""
    cut, next_ = (FRAME % "needle" + "}").encode(), (FRAME % "hay").encode() + b"\n"
    starts = [0, len(cut), len(cut + next_)]
    assert LineBlock(5, cut + next_, starts, [offset(cut), offset(next_)], exact=True).texts([5, 6]) == [None, "hay"]


@pytest.mark.parametrize("now", ['"raw":12345678', '"b64":"needle"'])
def test_a_line_that_was_changed_after_its_offset_was_noted_tells_no_text(now):
    before = (FRAME % "needle").encode() + b"\n"
    line = before.replace(b'"raw":"needle"', now.encode())
    assert LineBlock(5, line, [0, len(line)], [offset(before)], exact=True).texts([5]) == [None]


@pytest.mark.parametrize("end", ["", "x"])
def test_an_unfinished_line_tells_no_text(end):
    line = (FRAME % "needle" + end).encode()
    assert LineBlock(5, line, [0, len(line)], [offset(line)], exact=True).texts([5]) == [None]
