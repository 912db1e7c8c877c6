"""The text of a call's row, without a screen."""

from dataclasses import replace
from itertools import product

from rich.cells import cell_len

from mcpspy.browse.timeline import Source, TimelineRow
from mcpspy.tui.model.calls import Call
from mcpspy.tui.views.calls import (
    Axis,
    CallFace,
    CallLayout,
    call_cells,
    heading,
    progress_text,
    size_bar,
    waterfall,
)
from tests.browse.test_findings import finding
from tests.each import each
from tests.test_text import unsafe
from tests.tui.views import HOSTILE

SECOND = 10**9
REQUEST = TimelineRow(7, SECOND, "request", "client", method="tools/call", name="forecast", status="ok", size=90)
REQUEST.latency, REQUEST.text = SECOND, 'city="Oslo"'
RESPONSE = replace(REQUEST, n=9, t=2 * SECOND, kind="result", sender="server", size=120_000, text="rain")
AXIS = Axis(0, 4 * SECOND, 3 * SECOND)


def face(request=REQUEST, response=RESPONSE, *, live=False, asked=0, continues=False, progress=None, axis=AXIS):
    return CallFace(Call(request, response, asked, continues, progress), axis, live)


def text(*args, width=120, **named):
    """Return the text of the row, with runs of blanks joined."""
    return " ".join("".join(text for text, _ in call_cells(face(*args, **named), width)).split())


def test_a_row_has_the_request_the_result_and_how_it_went():
    assert text() == '#7 → forecast city="Oslo" rain ok 1.00 s 120.0 kB ▄▄▄▄▄'
    ping = replace(REQUEST, method="ping", name="", text="", sender="server", findings=(finding(severity="warning"),))
    assert text(ping, replace(RESPONSE, text="")) == "! #7 ← ping ok ok 1.00 s 120.0 kB ▄▄▄▄▄"
    assert text(width=72) == '→ forecast city="Oslo" rain 1.00 s ▄▄▄▄'


def test_a_latency_that_does_not_fit_says_so():
    assert " 10000000… " in text(replace(REQUEST, latency=10**17))


UNANSWERED = [
    ("pending", {"live": True}, "waiting 2.0 s ▄▄▄▄▄▄▄▄▄▄"),
    ("pending", {"live": True, "progress": (2.0, 4.0)}, "2/4 ████░░░░ 2.0 s ▄▄▄▄▄▄▄▄▄▄"),
    ("pending", {"live": True, "progress": (2.5, None)}, "2.5 2.0 s ▄▄▄▄▄▄▄▄▄▄"),
    ("unanswered", {}, "unanswered unanswered ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌"),
    ("cancelled", {}, "cancelled cancelled x"),
]


def test_a_call_without_an_answer_says_what_is_known_and_one_that_waited_for_a_person_says_so():
    for status, named, shown in UNANSWERED:
        request = replace(REQUEST, status=status, latency=None)
        assert text(request, None, **named) == f'#7 → forecast city="Oslo" {shown}'
    assert "user took 12.00 s" in text(asked=12 * SECOND)
    assert "user took 12.00 s before" in text(asked=12 * SECOND, continues=True)
    assert "user took 10.0 ms" in text(asked=SECOND // 100, width=220)
    assert "rain ok" in text(asked=SECOND // 100), "a short time only where there is room"


def test_an_error_is_red_all_over():
    bad = replace(REQUEST, status="tool-error", outcome="tool-error")
    cells = call_cells(face(bad, replace(RESPONSE, status="tool-error")), 120)
    assert {look for part, look in cells if any(word in part for word in ("rain", "tool-error", "▄"))} == {
        "view--error"
    }


@each("merged, width", product([False, True], [40, 60, 69, 70, 80, 109, 110, 149, 150, 200, 400]))
def test_rows_and_their_heading_are_as_wide_as_the_view(merged, width):
    request = replace(REQUEST, source=Source(1, 4, "天気予報サーバー")) if merged else REQUEST
    for name in HOSTILE:
        hostile = replace(request, name=name, text=name * 9)
        row = "".join(part for part, _ in call_cells(face(hostile, replace(RESPONSE, text=name), asked=SECOND), width))
        assert cell_len(row) == width
        assert not unsafe(row)
    assert len(heading(width, AXIS, merged=merged)) == width


@each("width", [0, 1, 5, 12, 39])
def test_what_has_no_room_is_left_out(width):
    row = "".join(part for part, _ in call_cells(face(), width))
    assert cell_len(row) <= max(width, 4)
    assert sum(CallLayout.of(width, merged=False)) == max(width - 4, 0)


def test_bars_begin_and_end_where_their_call_did():
    assert waterfall(face(), 8) == "  ▄▄    "
    assert waterfall(face(axis=Axis(SECOND, 2 * SECOND, 0)), 4) == "▄▄▄▄"
    assert waterfall(face(response=replace(RESPONSE, t=SECOND + 1)), 8) == "  ▄     "
    assert waterfall(face(response=replace(RESPONSE, t=0)), 8) == "  ▄     ", "a clock that goes back"
    assert waterfall(face(axis=Axis(0, 0, 0)), 3) == "  ▄"


def test_sizes_and_progress_are_bars():
    assert [size_bar(size) for size in (0, 100, 101, 10_000, 10**9, 10**12)] == ["", "", "▄", "▄▄", "▄" * 6, "▄" * 6]
    told = [progress_text(*it) for it in ((0.0, 2.0), (9.0, 2.0), (-1.0, 2.0), (3.0, 0.0))]
    assert told == ["0/2 ░░░░░░░░", "9/2 ████████", "-1/2 ░░░░░░░░", "3"]


def test_the_heading_tells_the_time_of_the_bars():
    assert heading(120, AXIS, merged=False).split()[-4:] == ["0.000", "s", "+4.00", "s"]
    assert heading(80, AXIS._replace(start=2 * 10**15, end=3 * 10**15), merged=False).endswith(" +1000000.00 s")
    assert "session" in heading(120, None, merged=True)
