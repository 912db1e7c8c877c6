"""The gates of a session, as its capture records them."""

import pytest

from mcpspy.browse.gates import (
    GatesInCapture,
    HeldFrame,
    HeldTime,
    action_text,
    breakpoint_text,
    held_time,
    when_text,
)
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.records import End, Frame, Gates, Release
from mcpspy.filters import parse
from tests.tui.gates.relay import CALL, CLIENT, RESULT, SERVER, ScriptedRelay

SECOND = 10**9
STOP = {"name": "stop", "when": {"method": "tools/call"}, "action": {"hold": 60 * SECOND}}


def frame(n, by=None, **fields):
    return Frame(n, 1, n * SECOND, b"{}", by=by, **fields)


def noted(*records):
    seen = GatesInCapture()
    for record in records:
        seen.note(record)
    return seen


@pytest.fixture
def running(tmp_path):
    """Start sessions of clients. Each call returns the relay and the session that reads its capture."""
    opened = []

    def run(client="opencode", **fields):
        relay = ScriptedRelay(tmp_path / f"{len(opened)}.jsonl", client, **fields)
        session = OpenCapture(relay.path)
        opened.append(session)
        return relay, session

    yield run
    for session in opened:
        session.close()


def settle(session):
    for _ in range(3):
        while session.grow(1):
            pass


def test_frames_are_counted_by_the_gate_that_acted_on_them():
    seen = noted(
        frame(5), frame(6, "gate a", dropped=True), frame(7, "gate b", held=1), frame(8, "gate a", sent=b"x"),
        frame(9, "host"), frame(10, "gate a", sender="mcpspy"), frame(11, "viewer", sender="mcpspy"),
    )  # fmt: skip
    assert (dict(seen.acted), seen.latest) == ({"a": 2, "b": 1}, {"a": 8, "b": 7})


def test_the_gates_in_force_are_the_latest_of_the_file_and_of_viewers():
    mine = {"name": "mine", "when": {}, "action": {"drop": True}}
    assert noted().in_force == []
    assert noted(Gates(5, 0, (STOP,), "file")).in_force == [(STOP, "file")]
    apart = noted(Gates(5, 0, (STOP,), "file"), Gates(6, 1, (mine,), "viewer"))
    assert apart.in_force == [(STOP, "file"), (mine, "viewer")]
    both = noted(Gates(5, 0, (STOP,), "file"), Gates(6, 1, (mine, STOP), "viewer"))
    assert both.in_force == [(STOP, "file"), (mine, "viewer")]
    assert noted(Gates(5, 0, (STOP,), "viewer"), Gates(6, 1, (), "viewer")).in_force == []
    assert noted(Gates(5, 0, (STOP,), "file"), End(6, 1, 0)).in_force == []


def test_a_frame_is_held_until_it_is_released_or_all_is_over():
    held = (Gates(4, 0, (STOP,), "viewer"), frame(5, "gate stop", held=1), frame(6, "gate other", held=2))
    first, second = HeldFrame(1, 5, 5 * SECOND, "stop", 65 * SECOND), HeldFrame(2, 6, 6 * SECOND, "other")
    assert noted(*held).held == {5: first, 6: second}
    assert noted(*held, Release(7, 0, 1, "continued")).held == {6: second}
    assert noted(*held, Release(7, 0, 9, "continued")).held == {5: first, 6: second}
    assert noted(*held, End(7, 1, 0)).held == {}


@pytest.mark.parametrize(
    ("action", "limit"),
    [({"hold": 2 * SECOND}, 7), ({"delay": SECOND, "drop": True}, 6), ({"hold": SECOND, "delay": SECOND}, 7),
     ({"drop": True}, None), ({"hold": "60s"}, None), ("hold", None)],
)  # fmt: skip
def test_a_held_frame_goes_on_by_itself_when_its_gate_says(action, limit):
    seen = noted(Gates(4, 0, ({"name": "stop", "action": action},), "file"), frame(5, "gate stop", held=1))
    assert seen.held[5].limit == (limit and limit * SECOND)


def test_a_merge_counts_its_times_from_another_moment():
    assert HeldFrame(1, 5, 1, "a", 7, True, None).shifted(10) == HeldFrame(1, 5, 11, "a", 17, True, None)
    assert HeldFrame(1, 5, 1, "a", None, True, 8).shifted(10).gives_up == 18


def test_the_time_held_is_in_whole_seconds_and_never_negative():
    held = HeldFrame(1, 5, 10 * SECOND, "a", awaited=True, gives_up=20 * SECOND)
    assert held_time(held, 12_900_000_000) == HeldTime(2, True, 7)
    assert held_time(held, 9 * SECOND) == HeldTime(0, True, 11)
    assert held_time(held, 90 * SECOND) == HeldTime(80, True, 0)
    assert held_time(held._replace(gives_up=None), 11 * SECOND) == HeldTime(1, True, None)


@pytest.mark.parametrize(
    ("client", "gives_up"),
    [("opencode", 90), ("Cline (weather)", 90), ("claude-code", None), ("nobody", None), ("", None)],
)
def test_a_client_waits_as_long_as_is_known_of_it(running, client, gives_up):
    relay, session = running(client)
    relay.hold(1, "stop", at=30)
    settle(session)
    (held,) = session.held
    assert (held.awaited, held.gives_up) == (True, gives_up and gives_up * SECOND)


def test_for_a_held_response_the_client_waits_since_its_request(running):
    relay, session = running()
    relay.frame(CALL, at=20)
    relay.hold(1, "stop", RESULT, SERVER, at=30)
    settle(session)
    assert session.held[0].gives_up == 80 * SECOND


def test_the_time_to_begin_counts_from_the_start_of_the_server(running):
    relay, session = running()
    hello = b'{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"clientInfo":{"name":"mcporter"}}}'
    relay.hold(1, "stop", hello, at=12)
    settle(session)
    assert session.held[0].gives_up == 30 * SECOND


def test_a_request_that_names_its_client_itself_goes_by_that(running):
    relay, session = running("nobody")
    meta = b'{"io.modelcontextprotocol/clientInfo":{"name":"qwen-cli-mcp-client"}}'
    named = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","_meta":%s}}' % meta
    relay.hold(1, "stop", named, at=12)
    settle(session)
    assert session.held[0].gives_up == 612 * SECOND


@pytest.mark.parametrize(
    ("raw", "channel"),
    [
        (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}', SERVER),
        (b'{"jsonrpc":"2.0","id":9,"method":"roots/list"}', SERVER),
        (b"not JSON", CLIENT),
    ],
)
def test_for_what_is_no_request_of_the_client_it_does_not_wait(running, raw, channel):
    relay, session = running()
    relay.hold(1, "stop", raw, channel)
    settle(session)
    assert [(held.awaited, held.gives_up) for held in session.held] == [(False, None)]


def test_nothing_is_held_in_a_session_that_has_ended(running):
    relay, session = running()
    relay.hold(1, "stop")
    settle(session)
    place = len(session) - 1
    assert session.line(place).held == session.held[0]
    relay.end()
    settle(session)
    assert session.held == []
    assert session.line(place).held is None


def test_the_answer_to_a_request_of_a_viewer_is_found_by_its_id(running):
    relay, session = running()
    relay.frame(b'{"jsonrpc":"2.0","id":"mcpspy-1","method":"ping"}', by="viewer", **{"from": "mcpspy"})
    relay.frame(b'{"jsonrpc":"2.0","id":"mcpspy-1","result":{}}', SERVER, sent=None, by="viewer")
    settle(session)
    assert session.gates.answers == {"mcpspy-1": 11}


@pytest.mark.parametrize(
    ("method", "name", "sender", "text"),
    [
        ("tools/call", "get_forecast", "client", "method:tools/call name:get_forecast from:client"),
        ("ping", "", "server", "method:ping from:server"),
        ("ping", "", "mcpspy", "method:ping"),
        ("resources/read", "file:///a b", "client", 'method:resources/read name:"file:///a b" from:client'),
        ("tools/call", '*?"\\,()', "client", r'method:tools/call name:"*?\"\\,()" from:client'),
        ("tools/call", "-x", "client", "method:tools/call name:-x from:client"),
        ("a\u202e/b", "", "client", "method:a?/b from:client"),
    ],
)  # fmt: skip
def test_a_breakpoint_is_the_filter_for_frames_like_a_row(method, name, sender, text, running):
    assert breakpoint_text(method, name, sender) == text
    _, session = running()
    settle(session)
    rows = [session.known(n) for n in session.index.rows]
    (row,) = [row for row in rows if row and row.kind == "request" and row.method == "tools/call"]
    row.method, row.name, row.sender = method, name or None, sender
    wanted = parse(text, session.header.started)
    assert wanted(row)
    row.method = "other"
    assert not wanted(row)


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ({}, "every frame"),
        ({"method": "tools/call", "name": "search*"}, "method:tools/call name:search*"),
        ({"name": {"is": "a*"}, "from": ["client", "server"]}, 'name:"a*" from:client,server'),
        ({"size": [100, None], "not": {"kind": "error"}}, 'size:[100, null] not:{"kind": "error"}'),
    ],
)
def test_what_a_gate_names_can_be_read(when, text):
    assert when_text(when) == text


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ({"hold": 60 * SECOND}, "hold 60 s"),
        ({"delay": SECOND // 2, "drop": True}, "delay 0.5 s, drop"),
        ({"send": "x"}, "send x"),
        ({"edit": [{"op": "remove", "path": "/a"}]}, 'edit [{"op": "remove", "path": "/a"}]'),
    ],
)
def test_what_a_gate_does_can_be_read(action, text):
    assert action_text(action) == text
