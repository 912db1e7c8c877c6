"""Several captures as one: every row of each appears once, in the order of time, and never moves."""

import os
import time
from array import array
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.writer import create
from mcpspy.filters import parse
from mcpspy.tui.model import merged as module
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.selection import Selection
from tests import NIGHTLY
from tests.limits import LIMIT
from tests.memory import objects_in
from tests.test_text import unsafe
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import WALL, finish, record
from tests.tui.screen import message, on_screen, opened, play, resize, strips, timeline, until


def begin(path, seconds):
    """Start a live capture, this many seconds after the first."""
    header = {"tool": "mcpspy 0.1.0", "transport": "stdio", "name": path.stem, "argv": ["server"]}
    wall = WALL + round(seconds * 1e9)
    return create(header, output=str(path), folder=None, environ={}, wall=wall, say=pytest.fail)


def capture(path, seconds, text):
    """Write a finished capture of a transcript. The first line is #5."""
    writer = begin(path, seconds)
    record(writer, text)
    finish(writer, 20_000_000_000)
    return path


@pytest.fixture
def merge():
    """Open captures as one session, and close it at the end."""
    with ExitStack() as stack:
        yield lambda *paths: stack.enter_context(closing(Merged([OpenCapture(str(path)) for path in paths])))


def grown(found, seconds=1.0):
    """Read everything that the captures hold, until there is nothing left."""
    deadline = time.monotonic() + LIMIT
    while found.grow(seconds):
        assert time.monotonic() < deadline
    return found


def told(found):
    """Return each row's capture and number, its time in seconds, and its method or kind."""
    lines = map(found.line, range(len(found)))
    return [f"{line.source[0]}#{line.source[1]} {line.t / 1e9:.3f} {line.method or line.kind}" for line in lines]


@pytest.fixture
def two(tmp_path):
    """A session, and one that starts a second and a half later."""
    first = capture(tmp_path / "a.jsonl", 0, """
        @1 > {"jsonrpc":"2.0","id":1,"method":"ping"}
        @2 < {"jsonrpc":"2.0","id":1,"result":{}}
        @3 ! warming up
    """)  # fmt: skip
    second = capture(tmp_path / "b.jsonl", 1.5, """
        @0.1 > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        @1 < {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}
    """)  # fmt: skip
    return first, second


def test_rows_stand_by_the_clock_and_tell_whose_they_are(two, merge):
    found = grown(merge(*two))
    assert told(found) == [
        "0#5 1.000 ping",
        "1#5 1.600 tools/list",
        "0#6 2.000 ping",
        "1#6 2.500 tools/list",
        "0#7 3.000 stderr",
        "0#8 20.000 end",
        "1#7 21.500 end",
    ]
    assert found.complete
    assert not found.grow(1)
    assert [found.line(place).n for place in range(len(found))] == list(found.index.rows) == [1, 2, 3, 4, 5, 6, 7]
    assert [found.index.row_of(n) for n in (0, 1, 7, 8)] == [None, 0, 6, None]
    assert [found.partner(place) for place in range(len(found))] == [2, 3, 0, 1, None, None, None]
    other = grown(merge(*reversed(two)))
    assert [line[1:] for line in told(found)] == [line[1:] for line in told(other)], "in whatever order they are given"


def test_a_row_leads_to_its_session_and_its_place_there(two, merge):
    found = grown(merge(*two))
    session, place = found.of(3)
    assert (session.path, session.line(place).n) == (str(two[1]), 6)
    assert replace(found.line(3), n=0, t=0, source=None) == replace(session.line(place), n=0, t=0)
    assert session.of(place) == (session, place)
    (row,) = found.messages(3)
    assert (row.n, row.t, row.kind, row.status) == (6, 2_500_000_000, "error", "error")
    assert b'"message' in found.index.line(4)
    assert found.index.record(4).raw == row.raw
    assert found.known(4).t == row.t


def test_it_sums_up_its_sessions(two, merge):
    found = grown(merge(*two))
    assert (found.counts.frames, found.counts.exchanges, found.counts.errors) == (5, 2, 1)
    each = [session.found for session in found.sessions]
    assert found.found == {severity: sum(counts[severity] for counts in each) for severity in each[0]}
    assert sum(found.found.values()) > 0
    assert (found.header.name, found.header.transport) == ("a + b", "stdio")
    assert (found.state, found.index.state, found.progress) == ("ended", "ended", 1)


def test_all_golden_captures_in_one_have_every_row_once_in_order(merge):
    found = grown(merge(*sorted(CAPTURES.glob("*.jsonl"))))
    assert len(found) == sum(map(len, found.sessions)) > 500
    places = [found.index.of(place) for place in range(len(found))]
    for which, session in enumerate(found.sessions):
        assert [place for other, place in places if other == which] == list(range(len(session)))
        for place, there in enumerate(there for other, there in places if other == which):
            assert place == there
    assert found.complete
    for place in range(len(found)):
        session, there = found.of(place)
        partner = found.partner(place)
        assert (partner is None) == (session.partner(there) is None)
        assert partner is None or found.of(partner) == (session, session.partner(there))


def test_rows_come_out_the_same_however_little_is_read_at_a_time(merge, monkeypatch):
    paths = GOLDEN
    expected = told(grown(merge(*paths)))
    monkeypatch.setattr(module, "SLICE", 0)
    assert told(grown(merge(*paths), 0.0001)) == expected


def test_no_row_ever_moves_while_sessions_are_read(merge, monkeypatch):
    monkeypatch.setattr(module, "SLICE", 0)
    found = merge(*GOLDEN)
    before = []
    while found.grow(0.001):
        now = [found.index.of(place) for place in range(len(found))]
        assert now[: len(before)] == before
        before = now
    assert before


def test_a_session_that_is_live_is_merged_as_it_grows(tmp_path, two, merge, monkeypatch):
    monkeypatch.setattr(module, "GRACE", 0.01)
    live = begin(tmp_path / "live.jsonl", 0)
    found = merge(*two, tmp_path / "live.jsonl")
    found.grow(LIMIT)  # reads the finished sessions to their end, so that no row of them is revised later

    def until(count):
        deadline = time.monotonic() + LIMIT
        while len(found) < count:
            assert time.monotonic() < deadline, told(found)
            found.grow(0.01)

    until(7)
    assert (found.state, found.complete) == ("live", False)
    record(live, '@30 > {"jsonrpc":"2.0","id":1,"method":"ping"}')
    until(8)
    assert told(found)[-1] == "2#5 30.000 ping"
    assert found.line(7).status == "pending"
    live.frame(2, 31_000_000_000, b'{"jsonrpc":"2.0","id":1,"result":{}}', more=False, cut=False)
    until(9)
    assert found.line(7).status == "ok"
    assert found.partner(7) == 8
    assert list(found.revised) == [8]
    finish(live, 32_000_000_000)
    grown(found)
    assert (found.state, found.complete, len(found)) == ("ended", True, 10)


def test_a_row_waits_for_an_earlier_one_that_another_relay_writes_late(tmp_path, merge, monkeypatch):
    monkeypatch.setattr(module, "GRACE", 1000)
    quick, slow = begin(tmp_path / "a.jsonl", 0), begin(tmp_path / "b.jsonl", 0)
    found = merge(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    record(quick, '@2 > {"jsonrpc":"2.0","id":1,"method":"ping"}')
    found.grow(1)
    assert told(found) == []
    record(slow, '@1 > {"jsonrpc":"2.0","id":1,"method":"ping"}')
    finish(slow, 1_500_000_000)
    finish(quick, 2_500_000_000)
    grown(found)
    assert told(found) == ["1#5 1.000 ping", "1#6 1.500 end", "0#5 2.000 ping", "0#6 2.500 end"]


def test_a_request_has_no_partner_before_that_is_in_its_place(tmp_path, merge, monkeypatch):
    monkeypatch.setattr(module, "GRACE", 1000)
    busy, quiet = begin(tmp_path / "a.jsonl", 0), begin(tmp_path / "b.jsonl", 0)
    found = merge(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    record(
        busy,
        """
        @1 > {"jsonrpc":"2.0","id":1,"method":"ping"}
        @3 < {"jsonrpc":"2.0","id":1,"result":{}}
    """,
    )
    record(quiet, "@2 ! waiting")
    for _ in range(7):  # records that wait for their order need some reads
        found.grow(1)
    assert told(found) == ["0#5 1.000 ping"]
    assert found.partner(0) is None
    finish(busy, 4_000_000_000)
    finish(quiet, 4_000_000_000)
    grown(found)
    assert found.partner(0) == 2


def test_a_response_that_was_recorded_before_its_request_comes_after_it(tmp_path, two, merge):
    path = capture(tmp_path / "c.jsonl", 0, """
        @5 < {"jsonrpc":"2.0","id":1,"result":{}}
        @4 > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """)  # fmt: skip
    found = grown(merge(*two, path))
    assert [line for line in told(found) if line[0] == "2"] == ["2#6 4.000 ping", "2#5 5.000 ping", "2#7 20.000 end"]


def test_the_first_row_after_a_pause_tells_which_turn_begins(tmp_path, merge):
    one = capture(tmp_path / "one.jsonl", 0, "@1 > 1 tools/list\n@2 < 1 = {}\n@500 ! late\n@1000 > 2 tools/list")
    two = capture(tmp_path / "two.jsonl", 5, "@0 > 1 tools/list\n@299 < 1 ping\n@1995 > 2 tools/list")
    found = grown(merge(one, two))
    turns = {line.source[:2]: line.turn for line in map(found.line, range(len(found))) if line.turn}
    assert turns == {(0, 8): "turn 2 · after 16 min", (1, 7): "turn 3 · after 16 min"}
    assert not any(line.turn for line in map(found.sessions[0].line, range(len(found.sessions[0]))))


def test_a_turn_that_begins_while_it_is_looked_at_is_told(tmp_path, merge, monkeypatch):
    monkeypatch.setattr(module, "GRACE", 0)
    one, two = (begin(tmp_path / f"{name}.jsonl", 0) for name in ("one", "two"))
    record(one, "@1 > 1 tools/list")
    found = merge(one.path, two.path)
    record(two, "@400 > 1 tools/list")
    deadline = time.monotonic() + LIMIT
    while len(found) < 2 or not found.line(1).turn:
        found.grow(0.01)
        assert time.monotonic() < deadline
    assert found.line(1).turn == "turn 2 · after 6 min"
    finish(one)
    finish(two)


def test_what_is_filtered_is_found_in_all_of_them(two, merge):
    found = grown(merge(*two))
    for expression, places in (
        ("method:ping", [0, 2]), ("status:error", [1, 3]), ("kind:stderr", [4]),
        ("warming", [4]), ("time:>2.2s -kind:end", [3, 4]),
    ):  # fmt: skip
        selection = Selection(found)
        selection.choose(parse(expression, found.header.started))
        while selection.grow(1):
            pass
        assert [selection.place(at) for at in range(len(selection))] == places, expression


def test_a_session_whose_file_is_deleted_is_read_to_its_end(two, merge):
    found = merge(*two)
    os.unlink(two[0])
    grown(found)
    assert (len(found), found.state) == (7, "deleted")


def test_a_row_takes_no_more_than_ten_bytes_beyond_those_of_its_session(two, merge):
    found = grown(merge(*two))
    theirs = {id(it) for session in found.sessions for it in objects_in(session, array)} | {id(found.revised)}
    own = [len(it) * it.itemsize for it in objects_in(found, array) if id(it) not in theirs]
    assert len(found) < sum(own) <= 6 * len(found) + 4 * sum(each.index.lines + 1 for each in found.sessions)
    assert found.complete, "nothing waits"


# On the screen.


@pytest.mark.parametrize("keys", "245" if NIGHTLY else ["245"])
def test_all_golden_captures_are_merged_on_the_screen_and_each_row_and_view_leads_to_its_own_session(keys):
    """Each capture is tested with one of the views, nightly with all of them."""

    async def scenario(pilot):
        await pilot.press(*["space"] * len(list(CAPTURES.glob("*.jsonl"))), "m")
        rows = await opened(pilot)
        screen, merged = pilot.app.screen, rows.session
        assert rows.count() == sum(map(len, merged.sessions)) > 500
        for place in range(0, rows.count(), 1 if NIGHTLY else 13):
            session, there = merged.of(place)
            rows.move_to(place)
            assert f"#{session.line(there).n} " in message(pilot).splitlines()[0]
            assert not unsafe("".join(text for text, _ in rows.cells(place, 120)))
        for size in ((40, 10), (80, 24), (120, 30)):
            await resize(pilot, *size)
            await pilot.press("g", "pagedown", "G", "p", "enter", "escape", "t", "e", "L", "slash", *"ping", "escape")
            assert {strip.cell_length for strip in strips(pilot.app)} <= {size[0]}
        assert pilot.app.focused is rows
        for which, session in enumerate(merged.sessions):
            place = next(at for at in range(rows.count()) if merged.index.of(at)[0] == which)
            rows.move_to(place)
            await pilot.press(keys[which % len(keys)])
            await until(pilot, lambda: pilot.app.screen is not screen)
            assert pilot.app.screen.session.path == session.path
            await pilot.press("down", "G", "enter")
            while pilot.app.screen is not screen:
                await pilot.press("escape")
            assert (pilot.app.focused, rows.place()) == (rows, place)

    play(scenario, CAPTURES)


GOTO = [
    ("g", "6", "a#6", ""),
    ("gj", "6", "b#6", ""),
    ("G", "#5", "b#5", ""),
    ("g", "goto 3", "a#5", "#3 is not a row of a; #5 is next to it"),
    ("gj", "99", "b#7", "#99 is not a row of b; #7 is next to it"),
    ("g/kind:end\r", "7", "a#7", "the filter is removed, because it hid #7"),
]


def test_goto_takes_the_number_that_stands_in_the_row_of_the_session_that_is_selected(tmp_path, two):
    async def scenario(pilot):
        await pilot.press("G", *["space", "k", "k"] * 2, "m")
        rows = await opened(pilot)
        for keys, command, shown, said in GOTO:
            await pilot.press(*("enter" if key == "\r" else key for key in keys))
            await until(pilot, lambda keys=keys: rows.count() == (2 if "/" in keys else 7))
            await pilot.press("colon", *("space" if key == " " else key for key in command), "enter")
            await until(pilot, lambda: rows.count() == 7)
            source = rows.session.line(rows.place()).source
            assert f"{source.name}#{source.n}" == shown
            await until(pilot, on_screen(pilot, said))

    play(scenario, tmp_path)


def test_goto_says_so_where_a_row_is_not_in_its_place_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GRACE", 1000)
    busy, quiet = begin(tmp_path / "a.jsonl", 0), begin(tmp_path / "b.jsonl", 0)
    record(busy, '@1 > {"jsonrpc":"2.0","id":1,"method":"ping"}\n@3 < {"jsonrpc":"2.0","id":1,"result":{}}')
    record(quiet, "@2 ! waiting")

    async def scenario(pilot):
        await pilot.press("space", "space", "m")
        rows = timeline(pilot)
        await until(pilot, lambda: rows.count() == 1)
        await pilot.press("colon", "6", "enter")
        await until(pilot, on_screen(pilot, "#6 is not in the timeline yet"))

    play(scenario, tmp_path)
    for writer in (busy, quiet):
        finish(writer)
