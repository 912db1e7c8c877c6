"""What came of each request: `outcomes/`, in the form of `tests/cases.py`, and what such texts cannot show.

A line has the address, the method, the outcome, and why a failing outcome is normal; `!` stands for a failed request.
"""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from mcpspy.capture.records import End
from mcpspy.conversation import bounds
from mcpspy.conversation.outcomes import Outcome
from mcpspy.timeline import Row, final_rows, streamed_rows
from tests.cases import check
from tests.conversation.http import SSE, Exchange
from tests.rules.examples import records
from tests.rules.gate_sessions import TRANSPORTS, LegacySse, Stdio, Streamable, error, notification, request, result
from tests.transcript import OPENS

FILES = sorted((Path(__file__).parent / "outcomes").glob("*.txt"))
RESPONSES = ("result", "error")


def told(text, _=None):
    """Return the outcomes of a transcript; a capture over HTTP has an end record."""
    found = records(text)
    if found[0] not in OPENS:
        found.append(End(len(found) + 9, found[-1].t + 1_000_000))
    return outcomes(found)


def outcomes(found):
    """Return the outcomes of some records, which are the same while they are read."""
    rows = [row for row in final_rows(lambda: found, live=False) if row.outcome and row.kind not in RESPONSES]
    lines = {(row.n, row.part): line(row) for row in rows}
    assert len(lines) == len(rows)
    assert streamed(found) == {(row.n, row.part): (row.outcome, row.expected) for row in rows}
    return list(lines.values())


def streamed(found, *, live=False):
    """Return the latest outcome of each request, by its address, as a viewer sees it."""
    latest, ordinals = {}, {}
    for it in streamed_rows(found, live=live):
        if isinstance(it, Outcome):
            latest[it.n, it.part] = it.outcome, it.expected
        elif isinstance(it, Row) and it.outcome:
            if it.kind == "request":
                ordinals[it.exchange.ordinal] = it.n, it.part
            place = ordinals[it.exchange.ordinal] if it.exchange else (it.n, it.part)
            latest[place] = it.outcome, it.expected
    return latest


def line(row):
    """Return a row as a line of the files."""
    place = f"#{row.n}.{row.part}" if row.raw.startswith(b"[") else f"#{row.n}"
    subject = row.method or f"{row.http['method']} {row.http['target']}"
    return f"{place} {subject} {row.outcome}{f' ({row.expected})' if row.expected else ''}{' !' if row.failed else ''}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_request_has_this_outcome(path):
    check(path, told)


# Gates, WebSocket, and the ends of captures, which the texts cannot show.

CALL, DONE = request(3, "tools/call", name="a"), result(3, content=[])
FAILED = result(3, content=[], isError=True)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("asked", "answered", "wanted"),
    [
        ({}, {}, "ok"),
        ({"hold": 2, "how": "delayed"}, {}, "ok"),
        ({"hold": 99, "how": "expired"}, None, "held"),
        ({"sent": None}, None, "dropped"),
        ({"hold": 2, "how": "dropped", "sent": None}, None, "dropped"),
        ({}, {"hold": 5, "how": "delayed"}, "ok"),
        ({}, {"hold": 99, "how": "expired"}, "held"),
        ({}, {"sent": None}, "dropped"),
        ({}, {"sent": FAILED}, "tool-error !"),
        ({}, {"sent": error(3)}, "error !"),
        ({}, {"hold": 5, "how": "edited", "sent": error(3)}, "error !"),
    ],
)
def test_what_a_gate_has_or_did_counts_as_its_receiver_gets_it(transport, asked, answered, wanted):
    wire = TRANSPORTS[transport]("hold")
    wire.client(CALL, **asked)
    wire.wait(3)
    if answered is not None:
        wire.server(DONE, of=3, **answered)
        wire.wait(6)
    wire.end()
    (line,) = [it for it in outcomes(wire.records) if "tools/call" in it]
    assert line.partition("tools/call ")[2] == wanted


def test_the_time_for_which_a_gate_held_a_request_does_not_count():
    wire = Stdio("hold")
    wire.client(CALL, hold=50, how="delayed")
    wire.wait(70)
    wire.client(notification("notifications/cancelled", requestId=3))
    assert outcomes(wire.records) == ["#6 tools/call cancelled"]


def test_a_reload_answers_what_the_old_server_leaves_open():
    wire = Stdio()
    wire.client(CALL)
    wire.made("server", error(3), by="reload")
    wire.client(request(4, "tools/call", name="a"))
    wire.server(result(4, content=[]))
    wire.end()
    assert outcomes(wire.records) == ["#5 tools/call error !", "#7 tools/call ok"]


@pytest.mark.parametrize(
    ("first", "how", "wanted"),
    [
        (1, "eof", "broken !"),  # the server's channel
        (1, "reset", "broken !"),
        (1, "abort", "abandoned"),
        (0, "eof", "abandoned"),  # the client's channel
        (0, "abort", "broken !"),
    ],
)
def test_which_side_ended_a_websocket_decides_what_came_of_its_requests(first, how, wanted):
    http = Exchange()
    both = http.websocket()
    http.say(both[0], request(1, "ping"))
    http.say(both[1], result(1))
    http.say(both[0], request(2, "tools/list"))
    http.say(both[1], request(1, "roots/list"))
    http.close(both[first], how)
    http.close(both[1 - first], "eof")
    lines = {it.split()[1]: it.split(" ", 2)[2] for it in outcomes([*http.records, End(99, 10**9)])}
    assert lines == {"GET": "/ws ok", "ping": "ok", "tools/list": wanted, "roots/list": "abandoned"}


def test_a_call_whose_stream_broke_has_the_outcome_of_a_response_on_another_stream():
    http = Exchange()
    http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id="s")
    other = http.answer(http.ask(method="GET", mcp_session_id="s"), kind=SSE, end=False)
    stream = http.answer(http.ask(request(1, "tools/call", name="a"), mcp_session_id="s"), kind=SSE, end=False)
    http.event(stream, raw=b": begun\n")
    http.close(stream, "reset")
    (broken,) = [it for it in outcomes([*http.records, End(99, 10**9)]) if "tools/call" in it]
    http.event(other, result(1, content=[]))
    http.answer(http.ask(request(2, "tools/call", name="a"), mcp_session_id="s"), result(2, content=[]))
    answered = [it.split()[2:] for it in outcomes([*http.records, End(99, 10**9)]) if "tools/call" in it]
    assert broken.endswith("broken !")
    assert answered == [["ok"], ["ok"]]


def test_in_a_live_capture_nothing_is_final_yet():
    found = records("> 1 ping\n> 2 tools/list\n< 2 = {}")
    assert [row.outcome for row in final_rows(lambda: found, live=True)] == ["pending", "ok", "ok"]


def test_what_forgotten_sessions_left_open_is_in_doubt(monkeypatch):
    monkeypatch.setattr(bounds, "SESSIONS", 2)
    monkeypatch.setattr(bounds, "RESTING", 2)
    http = Exchange()
    for number in range(9):
        asked = http.ask(request(0, "initialize"), peer=f"10.0.0.{number}:1")
        http.answer(asked, result(0), mcp_session_id=f"s{number}")
        http.ask(request(1, "tools/list"), mcp_session_id=f"s{number}", peer=f"10.0.0.{number}:1")
    found = [row.outcome for row in final_rows(lambda: http.records, live=False) if row.method == "tools/list"]
    assert found == ["in-doubt"] * 9


# Random sessions.


def session(seed):
    """Return the records of a random session: requests of both sides, answers, cancellations, gates, and an end."""
    random = Random(seed)  # noqa: S311 (no secret)
    wire = random.choice((Stdio, Streamable, LegacySse))(random.choice((None, "hold")))
    open_, number, t = [], 0, 0
    for _ in range(random.randrange(12)):
        t += random.choice((0, 0, 1, 20, 70))
        wire.wait(t)
        acted = random.choice(({}, {}, {}, {"sent": None}, {"hold": t + 5, "how": "delayed"}))
        do = random.random()
        if do < 0.5 or not open_:
            number += 1
            method = random.choice(("ping", "tools/call", "tools/list", "initialize", "server/discover"))
            wire.client(request(number, method, name="a"), **acted)
            dropped = acted.get("sent", ...) is None and not isinstance(wire, Stdio)
            open_ += [] if dropped else [number]
            continue
        of = open_.pop(random.randrange(len(open_)))
        if do < 0.6:
            wire.client(notification("notifications/cancelled", requestId=of, reason=random.choice(("", "timed out"))))
        elif do < 0.65 and isinstance(wire, Streamable):
            wire.close("server", of)
        elif do < 0.75:
            wire.server(request(of + 100, random.choice(("roots/list", "elicitation/create"))), of=of)
            wire.client(random.choice((result(of + 100), error(of + 100, -1))))
            open_.append(of)
        else:
            wire.server(
                random.choice((result(of), result(of, isError=True), error(of), error(of, -32022))), of=of, **acted
            )
    if random.random() < 0.7:
        wire.end(random.choice((0, 1)), gone=random.random() < 0.5)
    return wire.records


@pytest.mark.parametrize("seeds", [range(at, at + 100) for at in range(0, 400, 100)])
def test_a_walk_over_sessions_finds_one_outcome_for_each_request_at_any_time(seeds):
    """`outcomes` compares what a viewer sees with what a reader of the whole file sees."""
    found = Counter()
    for seed in seeds:
        walk = session(seed)
        lines = outcomes(walk)
        rows = [row for row in final_rows(lambda walk=walk: walk, live=False) if row.kind == "request"]
        assert all(row.outcome not in (None, "pending") for row in rows), seed
        others = [row for row in final_rows(lambda walk=walk: walk, live=False) if row.outcome and not row.exchange]
        assert len(lines) == len(rows) + len(others), seed
        assert len({row.channel for row in others}) == len(others), seed
        found.update(line.split()[2] for line in lines)
        cut = walk[: len(walk) * (seed % 10) // 10]
        live = {(row.n, row.part): row.outcome for row in final_rows(lambda cut=cut: cut, live=True) if row.outcome}
        assert {place: it for place, (it, _) in streamed(cut, live=True).items()}.items() <= live.items(), seed
    assert len(found) > 8, found
