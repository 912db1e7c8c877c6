"""A replay ignores the acts of a gate, unless you ask for the session as it was forwarded."""

import json

import pytest

from mcpspy.replay.script import as_forwarded, load, read
from tests.each import each
from tests.rules.gate_sessions import TRANSPORTS, Stdio, error, notification, request, result, save

CALL, DONE = request(3, "tools/call", name="search"), result(3, content=[])
OTHER = request(3, "tools/call", name="other")


def methods(script):
    """Return what the client of a script sends, and whether the server answered it."""
    return [(turn.name or turn.method, turn.response is not None) for turn in script.turns]


def both(wire):
    """Return `methods` of a session as the client recorded it, and as it was forwarded to the server."""
    return methods(read(None, wire.records)), methods(read(None, as_forwarded(wire.records)))


@each("transport", TRANSPORTS)
def test_a_changed_request_is_replayed_as_it_came(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=OTHER)
    wire.server(DONE, of=3)
    assert both(wire) == ([("search", True)], [("other", True)])
    assert read(None, wire.records).turns[0].changed
    assert not read(None, as_forwarded(wire.records)).turns[0].changed


@each("transport", TRANSPORTS)
def test_a_dropped_request_is_replayed_without_an_answer(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=None)
    assert both(wire) == ([("search", False)], [])


@each("transport", TRANSPORTS)
def test_the_answer_of_a_gate_is_not_the_servers(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=None, answered=True)
    wire.made("server", error(3), of=3)
    script = read(None, wire.records)
    assert both(wire) == ([("search", False)], [])
    assert [(it.sender, it.n) for it in script.messages] == [("client", script.turns[0].cause.n)]


def test_a_request_that_a_gate_answers_with_a_status_is_replayed_without_an_answer():
    """The action `status` of a gate answers with a JSON-RPC error and an HTTP status that refuses the request."""
    wire = TRANSPORTS["http"]()
    wire.client(CALL, sent=None, answered=True)
    wire.made("server", error(3), of=3, code=503)
    wire.client(CALL | {"id": 4})
    wire.server(DONE | {"id": 4}, of=4)
    assert both(wire) == ([("search", False), ("search", True)], [("search", True)])


@each("transport", TRANSPORTS)
def test_a_repeated_request_is_replayed_once(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=CALL)
    wire.made("client", CALL)
    for _ in range(2):
        wire.server(DONE, of=3, open=True)
    assert both(wire) == ([("search", True)], [("search", True), ("search", True)])


@each("transport", TRANSPORTS)
def test_what_a_viewer_asked_is_not_replayed(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL)
    wire.server(DONE, of=3)
    wire.made("client", CALL | {"id": "mcpspy-1"}, by="viewer")
    wire.server(DONE | {"id": "mcpspy-1"}, of="mcpspy-1", sent=None, by="viewer")
    assert both(wire) == ([("search", True)], [("search", True)])


def test_held_requests_are_replayed_when_they_went():
    wire = Stdio()
    wire.client(CALL, hold=5, how="delayed")
    wire.client(request(4, "ping"))
    wire.client(request(6, "tools/list"), hold=9, how="dropped", sent=None)
    wire.wait(10)
    wire.server(DONE)
    wire.client(request(7, "resources/list"), hold=99, how="expired")
    came, went = both(wire)
    assert [name for name, _ in came] == ["search", "ping", "tools/list", "resources/list"]
    assert [name for name, _ in went] == ["ping", "search"]


def test_the_servers_frames_are_as_they_came_in_both():
    wire = Stdio()
    wire.client(CALL)
    wire.server(notification("notifications/message", level="info", data="a"), sent=None)
    wire.server(DONE, sent=result(3, content=[], isError=True))
    for records in (wire.records, as_forwarded(wire.records)):
        (turn,) = read(None, records).turns
        assert [json.loads(line.message.frame.raw).get("method") for line in turn.said] == [
            "notifications/message",
            None,
        ]
        assert turn.exchange.status == "ok"


def test_a_capture_is_loaded_as_it_was_forwarded(tmp_path):
    wire = Stdio()
    wire.client(CALL, sent=OTHER)
    wire.server(DONE)
    wire.client(request(4, "ping"), sent=None)
    path = save(wire, tmp_path / "a.jsonl")
    assert methods(load(path, pytest.fail)) == [("search", True), ("ping", False)]
    assert methods(load(path, pytest.fail, forwarded=True)) == [("other", True)]


def test_what_a_reload_told_the_next_server_is_not_the_clients():
    """The client's session continues without a second handshake, and a refused call has no answer."""
    wire = Stdio()
    wire.client(CALL)
    wire.made("server", error(3), by="reload")
    wire.made("client", request("mcpspy-reload-1", "initialize"), by="reload")
    wire.server(result("mcpspy-reload-1"), sent=None, by="reload")
    wire.made("client", notification("notifications/initialized"), by="reload")
    wire.made("server", notification("notifications/tools/list_changed"), by="reload")
    wire.client(OTHER | {"id": 4}, hold=1, how="delayed", by="reload")
    wire.wait(1)
    wire.server(DONE | {"id": 4}, of=4)
    wire.client(result(9), sent=result(1), by="reload")
    assert both(wire) == ([("search", False), ("other", True)],) * 2
    assert [it.id.token for it in read(None, as_forwarded(wire.records)).messages] == ["3", "4", "4", "9"]
