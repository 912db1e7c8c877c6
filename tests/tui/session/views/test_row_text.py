"""The text of a row in the timeline, without a screen."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import product

import pytest
from rich.cells import cell_len

from mcpspy.browse.gates import HeldTime
from mcpspy.browse.timeline import Source, TimelineRow
from mcpspy.tui.views.row_text import Face, cells, heading, latency_bar, waiting_text
from mcpspy.wire.jsonrpc import Id
from tests.browse.test_findings import finding
from tests.each import each
from tests.test_text import unsafe

CALL = TimelineRow(17, 8_123_000, "request", "client", id=Id("number", "3"), method="tools/call", status="ok")
CALL.name = "get_all_coding_standards_of_everybody"


def face(line=CALL, *, since=None, waiting="", marked=False, tie=" ", held=None, **named):
    return Face(line, since, waiting, marked, tie, held, **named)


def text(*args, width=120, **named):
    """Return the text of the row."""
    return "".join(text for text, _ in cells(face(*args, **named), width))


NOON = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=1)))


def colours(line, width, part):
    """Return the colours of the texts that contain `part`."""
    return {colour for text, colour in cells(face(line), width) if part in text}


WIDTHS = (130, 100, 99, 80, 70, 69, 60, 59, 50, 40)


@each("kind, width", product(["request", "result", "error", "notification", "event", "batch", "invalid"], WIDTHS))
def test_a_row_is_as_wide_as_its_view_whatever_stands_in_it(kind, width):
    method = CALL.method if kind in ("request", "result", "error", "notification") else ""
    line = replace(CALL, kind=kind, method=method, size=2_000_000, text="" if method else "a text")
    line = replace(line, latency=12_000_000 if kind == "result" else None)
    merged = replace(line, source=Source(1, 4, "天気予報サーバー"))
    if method:
        assert cell_len(text(line, width=width)) == width
        assert cell_len(text(merged, width=width)) == max(width, cell_len(text(merged, width=1)))

    gated = text(replace(line, act="held 12.30 s, edited by a viewer (gate slow and flaky search\x1b[2J)"), width=width)
    assert ("held 12.30 s" if width >= 100 else "held") in gated
    assert "\x1b" not in gated
    assert cell_len(gated) <= width

    if kind not in ("result", "error", "event") and width != 40:
        turn = "turn 2 · after 14 min"
        begins = replace(line, turn=turn, source=Source(1, 4, "weather"), status="", text="")
        assert f"── {turn}"[: {50: 9, 59: 17, 60: 17}.get(width)] in text(begins, width=width)
        assert cell_len(text(begins, width=width)) <= width
        assert "tool" in text(begins, width=width) or not method
        assert width != 130 or f"── {turn} · dropped" in text(replace(begins, act="dropped"), width=width)


def test_text_in_wide_characters_leaves_what_a_gate_did_in_view():
    line = TimelineRow(5, 0, "stderr", "server", text="天気予報サーバー" * 20, act="held 2.0 s, continued")
    assert cell_len(text(line)) <= 120
    assert text(line).endswith("… held 2.0 s, continued")


@pytest.mark.parametrize(("width", "time"), [(100, " 0.008123 "), (99, " 0.008 "), (60, " 0.008 "), (59, None)])
def test_times_are_to_the_microsecond_where_there_is_room(width, time):
    assert (time or " 0.008") in text(width=width) if time else "0.008" not in text(width=width)
    if time:
        since = text(width=width, since=8_123_000)
        assert f" +{time.strip()} " in since
        assert " +98765.43210  → " in text(width=width, since=98_765_432_100_000) or width < 100
        assert text(width=width, since=98_765_432_100_000).index("→") == since.index("→")


def test_a_name_that_is_cut_says_so():
    result = replace(CALL, kind="result", latency=1)
    assert "tools/call get_all_coding…s_of_everybody ok " in text(result, width=76)
    assert "get_all_coding_standards_of_everybody" in text(width=76)  # a request shows nothing else
    assert "get_all_coding_standards_of_everybody" in text(width=120)


def test_a_long_name_leaves_room_for_the_preview_and_more_if_all_rows_have_it():
    line = replace(CALL, text='query="the weather of tomorrow in all cities of the north" days=3')
    assert '→ tools/call get_all_cod…of_everybody  query="the weather o…   id 3' in text(line, width=100)
    assert '→ tools/call get…body  query="the weather of tomorrow in al' in text(line, width=100, plain=True)
    assert '→ tools/call get_all_coding_standards_of_everybody  query="the weather' in text(line, width=200, plain=True)
    assert "get_all_coding_standards_of_eve" not in text(line, width=60)


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 40])
def test_a_failing_answer_shows_its_status_and_its_error_before_all_else(width):
    told = "Unknown city Olso; did you mean Oslo? The cities are at weather://cities"
    failed = replace(CALL, kind="result", status="tool-error", outcome="tool-error", text=told, latency=12_000_000)
    shown = text(failed, width=width)
    assert f"→ tool-error {told[: {40: 4, 60: 15}.get(width, 25)]}" in shown
    assert cell_len(shown) == width
    assert (told in shown) == (width == 200)
    assert ("tools/call get_all_coding_standards_of_everybody" in shown) == (width == 200)
    assert colours(failed, width, "Unk") == {"timeline--error"}
    assert "→ error -32602" in text(
        replace(failed, kind="error", status="error", outcome="error", text="-32602 no"), width=width
    )
    normal = text(replace(failed, outcome="error", expected="probe"), width=width)
    assert "→ tools/call" in normal, "a failure that is normal is a row like others"


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("width", [200, 130, 120, 119, 100, 99, 90, 80, 70, 69, 60])
def test_the_heading_stands_over_the_columns(width, merged):
    line = replace(CALL, kind="result", status="ok", latency=12_300_000, size=8_100, source=Source(1, 17, "weather"))
    line = line if merged else replace(line, source=None)
    for form, time, since, clock in (
        ("start", "0.008", None, None),
        ("above", "+0.000", 5_000, None),
        ("clock", "12:00:00.123", None, NOON),
    ):
        row, names = text(line, width=width, since=since, clock=clock), heading(width, form, NOON, merged=merged)
        ends = {word: names.index(word) + len(word) for word in names.split()}
        assert len(names) == width
        assert row[: ends["number"]].endswith("#17")
        assert time in row[: ends["+01:00" if clock else form]].split()[-1]
        assert row[: ends.get("latency") or ends["outcome"]].endswith("12.3 ms")
        assert row[: ends.get("status", width)].rstrip().endswith("ok" if "status" in ends else "12.3 ms")
        assert row[: ends.get("size", width)].endswith("8.1 kB" if "size" in ends else "12.3 ms")
        assert names.index("message") == row.index("tools/call")
        assert ("size" in ends, "session" in ends) == (width - 12 * merged >= 90, merged)


def test_a_moment_is_a_time_of_day_and_its_day_stands_where_it_begins():
    assert " 12:00:00.123  → tools/call" in text(width=60, clock=NOON)
    shown = text(width=120, clock=NOON, day="2026-11-20")
    assert "── 2026-11-20 " in shown
    assert cell_len(shown) == 120
    begins = replace(CALL, turn="turn 2 · after 14 min", source=Source(1, 4, "weather"), text="")
    assert "── 2026-11-20 · turn 2 · after 14 min" in text(begins, width=140, clock=NOON, day="2026-11-20")


def test_what_a_message_says_stands_beside_its_method():
    """R-14."""
    line = TimelineRow(5, 0, "notification", "server", method="notifications/progress", text="2/3\x1b[2J: reading")
    for width in (120, 80, 60):
        assert "notifications/progress  2/" in text(line, width=width)
        assert "\x1b" not in text(line, width=width)


ASKS = replace(CALL, name="search", text='query="Oslo \x1b" days=3 units="metric and imperial"')
FOUND = replace(ASKS, kind="result", text="3 °C in 東京都と大阪府 and 5 °C elsewhere", latency=12_000_000, size=200)


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 40])
@pytest.mark.parametrize("line", [ASKS, FOUND], ids=["request", "result"])
def test_a_preview_stands_behind_the_name_in_the_free_width(line, width):
    """R-14: the columns at the right keep their place."""
    shown = text(line, width=width)
    assert cell_len(shown) == width
    assert "tools/call sear" in shown
    assert not unsafe(shown)
    without = text(replace(line, text=""), width=width)
    if line is FOUND and width >= 60:
        assert shown[-13:] == without[-13:]
    assert ("  3 °C" in shown or '  query="' in shown) == (width >= 80 or line is ASKS)


def test_a_preview_that_is_cut_says_so_and_a_request_may_use_what_it_leaves_empty():
    assert 'search  query="Oslo \\e" days=3 units="metric a…' in text(ASKS, width=100)
    assert "search  3 °C in 東京都と大阪 … ok" in text(FOUND, width=100)
    assert "id 3" in text(ASKS, width=200)
    assert "id 3" not in text(ASKS, width=80)


def test_a_preview_has_colours():
    assert colours(ASKS, 200, "query=") == {"timeline--dim"}
    assert colours(ASKS, 200, "Oslo") == {"timeline--string"}
    assert colours(FOUND, 200, "3 °C") == {""}
    assert colours(replace(FOUND, status="tool-error", outcome="tool-error"), 200, "3 °C") == {"timeline--error"}
    assert colours(replace(FOUND, kind="error"), 200, "3 °C") == {"timeline--error"}


def test_an_error_that_answers_no_request_is_no_success():
    line = TimelineRow(5, 0, "error", "server")
    for width in (120, 80, 50):
        assert colours(line, width, "error") == {"timeline--error"}
        assert "(no request" in text(line, width=width)


def test_of_a_request_stands_what_its_response_will_not_say():
    assert all(status in text(replace(CALL, status=status)) for status in ("pending", "unanswered", "cancelled"))
    assert not any(status in text(replace(CALL, status=status)) for status in ("ok", "error"))
    assert [text(replace(CALL, status=status)).count(status) for status in ("held", "dropped")] == [1, 1]


@pytest.mark.parametrize(
    ("kind", "status", "outcome", "expected", "shown", "colour"),
    [
        ("request", "error", "refused", None, "refused", "error"),
        ("request", "cancelled", "timed-out", None, "timed-out", "error"),
        ("request", "unanswered", "server-exit", None, "server-exit", "error"),
        ("request", "pending", "in-doubt", None, "in-doubt", "pending"),
        ("request", "error", "refused", "repeated", "refused", "dim"),
        ("result", "tool-error", "tool-error", None, "tool-error", "error"),
        ("error", "error", "error", "probe", "error", "dim"),
        ("error", None, None, None, "error", "error"),
        ("http", None, "refused", None, "GET /mcp", "error"),
        ("http", None, "refused", "optional", "GET /mcp", "dim"),
    ],
)
def test_a_row_shows_what_came_of_its_request_and_a_failure_is_red(kind, status, outcome, expected, shown, colour):
    line = replace(CALL, kind=kind, status=status, outcome=outcome, expected=expected)
    if kind == "http":
        line.method, line.name, line.text = None, None, "GET /mcp"
    assert colours(line, 120, shown) == {f"timeline--{colour}"}


def test_a_slow_answer_stands_out_and_so_does_one_that_is_waited_for():
    slow = replace(CALL, kind="result", latency=1_500_000_000)
    assert colours(slow, 120, "1.50 s") == {"timeline--warning"}
    assert colours(replace(slow, latency=15_000_000), 120, "15.0 ms") == {"timeline--pending"}
    assert "2.5 s" in text(replace(CALL, status="pending"), waiting="2.5 s")


def test_marks_ties_and_findings_are_characters_too():
    assert text(replace(CALL, findings=(finding(),)), marked=True, tie="┌").startswith("✗*    #17 ")
    assert " ┌→ tools/call" in text(tie="┌")


@pytest.mark.parametrize("hostile", ["\x1b[2J[/]", "\u202egnp", "a\nb", "\ud800", "[red]"])
def test_what_a_peer_says_is_safe_to_show(hostile):
    for line in (
        replace(CALL, method=hostile, name=hostile, id=Id("other", hostile)),
        TimelineRow(5, 0, "stderr", "server", text=hostile),
        replace(CALL, source=Source(0, 1, hostile)),
    ):
        assert not unsafe(text(line))


BARS = {0: 0, 100_000: 0, 316_228: 1, 1_000_000: 2, 10**9: 8, 10**10: 10, 10**15: 10}
WAITING = {0: "0.0 s", 99.94: "99.9 s", 100: "2 min", 5990: "100 min", 36_000: "10 h"}


def test_latencies_are_bars_and_waiting_is_told_as_precisely_as_anybody_wants_to_know():
    assert {latency: len(latency_bar(latency)) for latency in BARS} == BARS, "two columns for each decade"
    assert set("".join(map(latency_bar, BARS))) == {"▄"}
    assert {seconds: waiting_text(seconds) for seconds in WAITING} == WAITING


@pytest.mark.parametrize(
    ("kind", "width", "shown"),
    [
        ("request", 99, "held 12.30 s, edited by a viewer (gate slow)     98 B"),
        ("result", 99, "held 12.30 s, edited by a view… ok               98 B"),
        ("request", 80, "held 12.30 s, edited by a viewer …"),
    ],
)
def test_what_a_gate_did_has_the_room_that_nothing_else_needs(kind, width, shown):
    line = replace(CALL, kind=kind, name="add", act="held 12.30 s, edited by a viewer (gate slow)", size=98)
    assert text(line, width=width).endswith(f"→ tools/call add    id 3 {shown}")


@pytest.mark.parametrize(
    ("width", "held", "expected"),
    [
        (100, HeldTime(12, True, 48), " held 12 s · client gives up in 48 s"),
        (70, HeldTime(12, True, 48), " held 12 s · client gives up in 48 s"),
        (100, HeldTime(12, True, 0), " held 12 s · client has given up"),
        (100, HeldTime(12, True, None), " held 12 s · client time-out unknown"),
        (69, HeldTime(12, True, 48), " held 12 s · 48 s left"),
        (69, HeldTime(12, True, None), " held 12 s"),
        (40, HeldTime(12, True, 48), " held 12 s"),
        (100, HeldTime(12, False, None), " held 12 s"),
    ],
)
@pytest.mark.parametrize("kind", ["request", "notification", "invalid", "event"])
def test_a_held_row_says_how_long_and_what_is_left(width, held, expected, kind):
    line = replace(CALL, kind=kind, status="", text="what it says", method="" if kind == "event" else CALL.method)
    found = text(line, width=width, held=held)
    assert found.endswith(expected)
    assert cell_len(found) == width
    assert "timeline--held" in {colour for _, colour in cells(face(line, held=held), width)}
