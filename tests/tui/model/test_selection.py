"""The selection of a filter: the matching rows, in the order of the session, however it grows."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.browse.timeline import OpenCapture
from mcpspy.filters import parse
from mcpspy.tui.model.selection import Hunt, Selection, failed_or_found, matching
from tests.browse.test_search import FILTERS, wanted
from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish, record

ALL = 60.0
"""Seconds for a step that may finish everything."""


@pytest.fixture
def opened():
    """Open captures, and close them at the end."""
    with ExitStack() as stack:

        def open_(path):
            session = OpenCapture(str(path))
            stack.callback(session.close)
            return session

        yield open_


def filter_of(session, text):
    return parse(text, session.header.started)


def chosen(session, text, kept=0):
    """Return the selection of a filter before any search."""
    selection = Selection(session)
    selection.choose(filter_of(session, text), kept)
    return selection


def shown(selection):
    """Return the line numbers of the shown rows."""
    return [selection.line(at) for at in range(len(selection))]


def in_order(session, lines):
    """Return these lines in the order of the session's rows."""
    return [n for n in session.index.rows if n in set(lines)]


def pings(first, last):
    return "".join(f'> {{"id":{n},"method":"ping"}}\n' for n in range(first, last))


@given(data=st.data())
def test_it_shows_what_the_filter_wants_in_the_order_of_the_session(data):
    path = data.draw(st.sampled_from(sorted(CAPTURES.glob("*.jsonl"))))
    text = data.draw(st.sampled_from(FILTERS[1:]))
    before = data.draw(st.integers(0, 40))
    session = OpenCapture(str(path))
    try:
        for _ in range(before):
            session.grow(0)
        kept = data.draw(st.sampled_from([0, *session.index.rows]))
        selection = chosen(session, text, kept)
        more = True
        while more:
            more = session.grow(0)
            more = selection.grow(0) or more
            assert selection.line(0) if len(selection) else True
            assert len(set(shown(selection))) == len(selection)
        assert shown(selection) == in_order(session, wanted(path, text))
        assert [selection.position(n) for n in shown(selection)] == list(range(len(selection)))
        assert [session.index.rows[selection.place(at)] for at in range(len(selection))] == shown(selection)
    finally:
        session.close()


def test_without_a_filter_it_shows_all_rows(tmp_path, opened):
    session = opened(capture(tmp_path / "a", pings(0, 5)))
    selection = Selection(session)
    assert len(selection) == 0
    assert not session.grow(ALL)
    assert shown(selection) == list(session.index.rows)
    assert selection.position(7) == selection.place(2) == 2
    assert selection.position(3) is None
    assert (selection.grow(ALL), selection.progress) == (False, 1)


def test_a_row_that_is_looked_at_is_there_at_once_and_the_others_come_around_it(tmp_path, opened):
    session = opened(capture(tmp_path / "a", pings(0, 3000)))
    session.grow(ALL)
    selection = chosen(session, "method:ping", 2505)
    assert shown(selection) == [2505]
    assert selection.progress == 0
    selection.grow(0)
    assert shown(selection) == [*range(5, 5 + 1024), 2505]
    assert selection.position(2505) == 1024
    while selection.grow(0):
        pass
    assert shown(selection) == list(range(5, 3005))
    assert selection.progress == 1


def test_a_row_that_is_looked_at_and_not_wanted_is_not_there(tmp_path, opened):
    session = opened(capture(tmp_path / "a", pings(0, 3) + '> {"method":"other"}'))
    session.grow(ALL)
    selection = chosen(session, "method:ping", 8)
    assert shown(selection) == []
    selection.grow(ALL)
    assert shown(selection) == [5, 6, 7]


def settle(session):
    """Read a live session until no record waits for an earlier one."""
    for _ in range(4):
        session.grow(ALL)


def test_a_row_that_is_looked_at_goes_when_it_is_no_longer_wanted(tmp_path, opened):
    writer = begin(tmp_path / "a")
    record(writer, pings(0, 100))
    session = opened(tmp_path / "a")
    settle(session)
    early = chosen(session, "status:pending", 95)
    late = chosen(session, "status:pending", 95)
    while late.grow(0):
        pass
    assert shown(late) == list(range(5, 105))
    writer.frame(2, 10**9, b'{"jsonrpc":"2.0","id":90,"result":{}}', False, False)
    settle(session)
    assert shown(early) == [95]
    for selection in (early, late):
        while selection.grow(0):
            pass
        assert shown(selection) == [n for n in range(5, 105) if n != 95]
    finish(writer)


def test_another_filter_begins_anew_and_none_shows_all(tmp_path, opened):
    session = opened(capture(tmp_path / "a", pings(0, 3) + '> {"method":"other"}'))
    session.grow(ALL)
    selection = chosen(session, "method:ping")
    selection.grow(ALL)
    selection.choose(filter_of(session, "other"))
    assert shown(selection) == []
    selection.grow(ALL)
    assert shown(selection) == [8]
    selection.choose(None)
    assert len(selection) == len(session) == 5


def test_rows_that_change_places_after_they_were_found_stand_right(tmp_path, opened):
    pairs = "".join(
        f'@{n}.002 < {{"id":{n},"result":{{"x":"needle"}}}}\n@{n}.001 > {{"id":{n},"method":"needle"}}\n'
        for n in range(1, 50)
    )
    session = opened(capture(tmp_path / "a", pairs))
    assert session.grow(0), "indexed, and not folded"
    selection = chosen(session, "needle")
    selection.grow(ALL)
    assert shown(selection) == list(range(5, 5 + 2 * 49)), "as they were written"
    session.grow(ALL)
    selection.grow(ALL)
    assert shown(selection) == [n for first in range(5, 5 + 2 * 49, 2) for n in (first + 1, first)]
    assert [selection.position(n) for n in shown(selection)] == list(range(2 * 49))


def test_rows_that_stream_in_are_filtered_too(tmp_path, opened):
    writer = begin(tmp_path / "a")
    record(writer, pings(0, 3))
    session = opened(tmp_path / "a")
    session.grow(ALL)
    selection = chosen(session, "kind:result")
    assert not selection.grow(ALL)
    writer.frame(2, 10**9, b'{"jsonrpc":"2.0","id":1,"result":{}}', False, False)
    settle(session)
    assert not selection.grow(ALL)
    assert shown(selection) == [8]
    finish(writer)


HUNTS = [
    (0, 1, 3, False), (4, 1, 6, False), (7, 1, 3, True), (8, 1, 3, True), (5, -1, 3, False), (2, -1, 6, True),
    (-1, -1, 6, True),
]  # fmt: skip
"""Where a hunt begins, its direction, the row that it finds, and whether it went round."""


def test_a_hunt_goes_to_the_next_row_that_is_wanted_or_round_to_the_first(tmp_path, opened):
    text = "".join(f'> {{"method":"{"b" if place in (3, 6) else "a"}"}}\n' for place in range(8))
    session = opened(capture(tmp_path / "a", text))
    session.grow(ALL)
    for at, step, found, went_round in HUNTS:
        hunt = Hunt(Selection(session), matching(session, filter_of(session, "method:b")), at, step)
        assert not hunt.grow(ALL)
        assert (hunt.found, hunt.round) == (found, went_round)
        hunt = Hunt(Selection(session), matching(session, filter_of(session, "method:c")), at, step)
        assert not hunt.grow(ALL)
        assert hunt.found is None, "it ends after one round"


def test_a_hunt_goes_through_what_is_shown_only(tmp_path, opened):
    session = opened(capture(tmp_path / "a", '> {"id":1,"method":"a"}\n< {"id":1,"result":{"text":"x"}}\n' * 3))
    session.grow(ALL)
    selection = chosen(session, "kind:result")
    selection.grow(ALL)
    hunt = Hunt(selection, matching(session, filter_of(session, "x")), 1, 1)
    hunt.grow(ALL)
    assert hunt.found == 1
    assert selection.line(1) == 8


def test_a_hunt_waits_for_the_fold(tmp_path, opened):
    session = opened(capture(tmp_path / "a", pings(0, 5)))
    assert session.grow(0), "indexed, and not folded"
    hunt = Hunt(Selection(session), matching(session, filter_of(session, "status:unanswered")), 0, 1)
    assert hunt.grow(0.01)
    session.grow(ALL)
    assert not hunt.grow(ALL)
    assert hunt.found == 0


def test_a_hunt_goes_on_after_a_row_that_takes_all_its_time(tmp_path, opened):
    session = opened(capture(tmp_path / "a", pings(0, 5)))
    session.grow(ALL)
    tested = []
    hunt = Hunt(Selection(session), lambda place: bool(tested.append(place)), 0, 1)
    assert [hunt.grow(0) for _ in range(6)] == [True] * 5 + [False]
    assert tested == [0, 1, 2, 3, 4, 5]


FAILURES = """
> 1 tools/call {"name":"a"}
< 1 = {"content":[],"isError":true}
> 2 tools/call {"name":"a"}
< 2 = {"content":[]}
> 3 tools/call {"name":"a"}
"""


def test_a_hunt_for_failures_finds_the_answer_of_each_failed_request_or_else_the_request(tmp_path, opened):
    session = opened(capture(tmp_path / "a", f"= 2025-11-25\n{FAILURES}"))
    session.grow(ALL)
    found, at = [], 0
    for _ in range(4):
        hunt = Hunt(Selection(session), failed_or_found(session), at, 1)
        hunt.grow(ALL)
        row = session.line(hunt.found)
        found.append((row.kind, str(row.id)))
        at = hunt.found + 1
    assert found == [("result", "1"), ("request", "3"), ("result", "1"), ("request", "3")]
