"""The open brackets at each row, and the side that the other one waits for, in transcripts."""

from contextlib import closing

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model import lanes as module
from mcpspy.tui.model.lanes import DEEPEST, Lane, Lanes
from tests.browse.test_timeline import grow, said
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import begin, finish, record
from tests.tui.model.test_cases import META


def opened(path):
    """Return the session and its lanes, with all rows processed."""
    session = grow(OpenCapture(str(path)))
    lanes = Lanes(session)
    assert not lanes.grow(10.0)
    assert len(lanes) == len(session)
    return session, lanes


def told(path):
    """Return for each row the awaited side before it, and the brackets after it: server's requests | client's."""
    session, lanes = opened(path)
    with closing(session):
        found = [lanes.at(place) for place in range(len(lanes))]
    return [f"{lane.waited} {lane.after >> DEEPEST:b}|{lane.after & 255:b}".strip() for lane in found]


def test_input_that_never_comes_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STALE", 5)
    text = f"""
    > {{"id":1,"method":"tools/call","params":{{"name":"ask",{META}}}}}
    < {{"id":1,"result":{{"resultType":"input_required"}}}}
    > {{"id":2,"method":"tools/call","params":{{"name":"other",{META}}}}}
    < {{"id":2,"result":{{"resultType":"complete","content":[]}}}}
    """
    waited = [line.split(" ")[0] for line in told(said(tmp_path, text + "! on\n" * 5))]
    assert waited[2] == waited[4] == "client"
    assert waited[-1] == "0|0"


def test_more_brackets_than_there_is_room_for_are_not_drawn(tmp_path):
    text = "".join(f'> {{"id":{n},"method":"ping"}}\n' for n in range(DEEPEST + 3))
    text += "".join(f'< {{"id":{n},"result":{{}}}}\n' for n in range(DEEPEST + 3))
    lines = told(said(tmp_path, text))
    assert lines[DEEPEST + 2].endswith(f"|{'1' * DEEPEST}")
    assert lines[-2] == "server 0|0"


def test_a_bracket_that_nobody_closes_gives_way(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STALE", 20)
    text = "".join(f'> {{"id":{n},"method":"hang"}}\n' for n in range(DEEPEST)) + "! on\n" * 30
    text += '> {"id":"a","method":"ping"}\n< {"id":"a","result":{}}\n'
    assert [line.split("|")[1] for line in told(said(tmp_path, text))][-3:-1] == ["1" * 8, "1" * 7 + "0"]


def test_what_is_gone_through_is_the_same_in_whatever_steps_a_session_is_read(tmp_path):
    path = max(CAPTURES.glob("*.jsonl"), key=lambda path: path.stat().st_size)
    session, whole = opened(path)
    stepwise = OpenCapture(str(path))
    lanes = Lanes(stepwise)
    with closing(session), closing(stepwise):
        more = True
        while more or lanes.grow(0) or len(lanes) < len(stepwise):
            more = stepwise.grow(0)
            lanes.grow(0)
        assert [lanes.at(place) for place in range(len(lanes))] == [whole.at(place) for place in range(len(whole))]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_each_answer_closes_what_its_request_has_opened(path):
    session, lanes = opened(path)
    with closing(session):
        for place in range(len(session)):
            line, lane, other = session.line(place), lanes.at(place), session.partner(place)
            drawn = line.kind == "request" and line.method != "subscriptions/listen" and line.status != "cancelled"
            if drawn and other is not None:
                opened_here = lane.after & ~lane.before
                assert opened_here.bit_count() <= 1
                assert all(lanes.at(between).after & opened_here for between in range(place, other))
                assert not lanes.at(other).after & opened_here


def settle(session):
    """Read a live session until no record waits for an earlier one."""
    for _ in range(3):
        session.grow(1.0)


def test_a_live_session_is_gone_through_as_it_grows(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, '> {"id":1,"method":"ping"}')
    session = OpenCapture(str(tmp_path / "a.jsonl"))
    lanes = Lanes(session)
    with closing(session):
        assert not lanes.grow(1.0)
        assert (len(lanes), lanes.at(0)) == (0, Lane())
        settle(session)
        lanes.grow(1.0)
        assert lanes.at(0) == Lane(0, 1, "")
        writer.frame(2, 5_000_000, b'{"id":1,"result":{}}', more=False, cut=False)
        settle(session)
        lanes.grow(1.0)
        assert lanes.at(1) == Lane(1, 0, "server")
        finish(writer)


def test_a_request_whose_client_has_hung_up_is_waited_for_no_longer_when_the_next_is_sent():
    session, lanes = opened(CAPTURES / "http-python2-2026-07-28.jsonl")
    with closing(session):
        hung = next(place for place in range(len(session)) if session.line(place).status == "cancelled")
        following = next(at for at in range(hung + 1, len(session)) if session.line(at).kind == "request")
        bracket = lanes.at(hung).after & ~lanes.at(hung).before
        assert bracket
        assert all(lanes.at(place).after & bracket for place in range(hung, following - 1))
        assert lanes.at(following) == Lane(0, bracket, "server"), "its bracket is free for the next"
