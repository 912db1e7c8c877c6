"""HTTP sessions and streams: cases that the rule examples do not cover."""

from mcpspy.capture.records import Gap
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from tests.conversation.http import SSE, Exchange, request, result
from tests.rules.examples import judged, records, told

INFO = {"name": "x", "version": "1"}


def begun(name="s", peer="127.0.0.1:5000"):
    """Begin a session and leave it open."""
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


# Sessions


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


def test_a_request_that_crosses_the_end_of_its_session_is_no_finding():
    http = begun()
    http.answer(say(http, request(1, "tools/list")), status=404, kind=None)
    http.answer(say(http, request(2, "tools/list")), status=404, kind=None)
    assert rules(http) == []
    http.wait(5_000_000_000)
    say(http, request(3, "tools/list"))
    assert rules(http) == ["http/session-over"]


def test_a_session_that_goes_on_has_not_ended():
    """The 404 has another reason."""
    http = begun()
    http.answer(say(http, request(1, "tools/list")), status=404, kind=None)
    http.answer(say(http, request(2, "tools/list")), result(2, tools=[]))
    http.wait(5_000_000_000)
    say(http, request(3, "tools/list"))
    assert rules(http) == []


def test_an_unknown_method_does_not_end_a_session():
    http = begun()
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
    http.answer(say(http, request(1, "tools/list")), error, status=404)
    http.wait(5_000_000_000)
    say(http, request(2, "tools/list"))
    assert rules(http) == []


def test_a_client_that_begins_anew_does_what_it_must():
    http = begun()
    http.answer(say(http, request(1, "tools/list")), status=404, kind=None)
    http.wait(5_000_000_000)
    asked = request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO)
    agreed = result(0, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=INFO)
    http.answer(http.ask(asked), agreed, mcp_session_id="t")
    http.answer(say(http, request(1, "tools/list"), "t"), result(1, tools=[]))
    assert rules(http) == []


# Streams


def test_the_session_id_is_known_though_its_stream_begins_with_a_priming_event():
    """2025-11-25: an event with an id and no data comes first."""
    http = begun()
    http.ask(request(1, "tools/list"), mcp_protocol_version="2025-11-25")
    assert rules(http) == ["http/session-missing"]


def resumed(second, last="1", after=b""):
    """Return a call whose response is sent before its stream breaks, and again after the client resumes the stream."""
    http = begun()
    stream = http.answer(say(http, request(1, "tools/list")), kind=SSE, end=False)
    http.event(stream, raw=b"id: 1\ndata: \n")
    http.event(stream, raw=b'id: 2\ndata: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n')
    http.close(stream, "abort")
    asked = http.ask(method="GET", mcp_session_id="s", mcp_protocol_version="2025-11-25", last_event_id=last)
    stream = http.answer(asked, kind=SSE, end=False)
    http.event(stream, raw=second)
    return http


def test_an_answer_that_is_sent_again_is_no_second_answer():
    """H-12."""
    http = resumed(b'id: 2\ndata: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n')
    assert judged(http.records) == []


def test_an_answer_that_is_sent_again_under_another_id_is_not_told_of_either():
    http = resumed(b'id: 3\ndata: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n')
    assert judged(http.records) == []


def test_a_second_answer_where_nothing_is_resumed_is_one():
    http = begun()
    stream = http.answer(say(http, request(1, "tools/list")), kind=SSE, end=False)
    http.event(stream, result(1, tools=[]))
    http.event(stream, result(1, tools=[]))
    assert rules(http, "pairing/") == ["pairing/duplicate-response"]


def test_the_answer_may_come_first_on_the_stream_that_resumes():
    http = begun()
    stream = http.answer(say(http, request(1, "tools/list")), kind=SSE, end=False)
    http.event(stream, raw=b"id: 1\ndata: \n")
    http.close(stream)
    asked = http.ask(method="GET", mcp_session_id="s", mcp_protocol_version="2025-11-25", last_event_id="1")
    http.event(http.answer(asked, kind=SSE, end=False), result(1, tools=[]))
    assert judged(http.records) == []


def test_two_sessions_may_use_the_same_event_ids():
    http = begun("s")
    other = request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO)
    agreed = result(0, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=INFO)
    stream = http.answer(http.ask(other), kind=SSE, end=False, mcp_session_id="t")
    http.event(stream, raw=b"id: p\ndata: \n")
    http.event(stream, agreed)
    assert rules(http) == []


def test_after_a_gap_an_event_id_may_be_one_that_was_lost():
    found = records("= 2025-06-18 http\n>> GET [last-event-id: 99]")
    place = len(found) - 2
    judge = Judge()
    gap = Gap(found[place].n, found[place].t, 1, "no space left on device")
    events = [event for record in [*found[:place], gap, *found[place:]] for event in judge.feed(record)]
    assert not [it for it in events if isinstance(it, Finding)]
    assert told("= 2025-06-18 http\n>> GET [last-event-id: 99]", "http/")
