"""HTTP sessions and streams: cases that the rule examples do not cover."""

from mcpspy.capture.records import Gap
from tests.conversation.http import SSE, Exchange, request, result
from tests.rules.examples import judged, records, told

INFO = {"name": "x", "version": "1"}


def begun(name="s", peer="127.0.0.1:5000"):
    """Begin a session and leave it open. Its first event has an id and no data, as in 2025-11-25."""
    http = Exchange()
    asked = request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO)
    agreed = result(0, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=INFO)
    stream = http.answer(http.ask(asked, peer=peer), kind=SSE, end=False, mcp_session_id=name)
    http.event(stream, raw=b"id: p\ndata: \n")
    http.event(stream, agreed)
    http.close(stream)
    http.answer(say(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, name), status=202, kind=None)
    return http


def say(http, message, name="s", **more):
    return http.ask(message, mcp_session_id=name, mcp_protocol_version="2025-11-25", **more)


def rules(http, *groups):
    return [it.rule for it in judged(http.records) if it.rule.startswith(groups or "http/")]


def test_a_request_without_its_session_is_known_by_its_connection():
    http = begun()
    http.ask(request(1, "tools/list"), mcp_protocol_version="2025-11-25", peer="127.0.0.1:5000")
    http.ask(request(2, "tools/list"), mcp_protocol_version="2025-11-25", peer="127.0.0.1:5000")
    assert rules(http) == ["http/session-missing"]


def test_over_another_connection_it_is_known_by_being_refused():
    http = begun()
    http.answer(http.ask(request(1, "tools/list"), mcp_protocol_version="2025-11-25", peer="127.0.0.1:5001"),
                result(1, tools=[]))  # fmt: skip
    assert rules(http) == []
    asked = http.ask(request(2, "tools/list"), mcp_protocol_version="2025-11-25", peer="127.0.0.1:5001")
    http.answer(asked, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}, status=400)
    (found,) = judged(http.records)
    assert (found.rule, found.blame) == ("http/session-missing", "client")
    assert found.frame == next(record.n for record in http.records if record.ch == asked) + 1


def test_the_next_handshake_and_what_needs_none_are_no_request_without_a_session():
    http = begun()
    http.ask(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO))
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": INFO,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    probe = request(1, "server/discover", _meta=meta)
    http.answer(http.ask(probe, mcp_protocol_version="2026-07-28", mcp_method="server/discover"), status=400, kind=None)
    assert rules(http) == []


def test_after_a_gap_an_event_id_may_be_one_that_was_lost():
    found = records("= 2025-06-18 http\n>> GET [last-event-id: 99]")
    place = len(found) - 2
    gap = Gap(found[place].n, found[place].t, 1, "no space left on device")
    assert judged([*found[:place], gap, *found[place:]]) == []
    assert told("= 2025-06-18 http\n>> GET [last-event-id: 99]", "http/")
