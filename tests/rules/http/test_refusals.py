"""Refusals: what is remembered until the end, and on which connection a session has ended."""

import pytest

from mcpspy.conversation.conversation import events_of
from mcpspy.conversation.model import HttpUnit, Message
from mcpspy.rules.http.posting import remembered
from tests.conversation.http import JSON, Exchange, request, result
from tests.rules.examples import judged

INFO = {"name": "x", "version": "1"}
SECOND = 1_000_000_000


def begun():
    """Return a session that has an answer, and is older than a minute."""
    http = Exchange()
    asked = http.ask(request(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=INFO))
    agreed = result(0, protocolVersion="2025-06-18", capabilities={"tools": {}}, serverInfo=INFO)
    http.answer(asked, agreed, mcp_session_id="s")
    http.answer(say(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}), status=202, kind=None)
    http.wait(90 * SECOND)
    return http


def say(http, message, **more):
    return http.ask(message, mcp_session_id="s", mcp_protocol_version="2025-06-18", **more)


@pytest.mark.parametrize(
    ("port", "seconds", "found"),
    [(5000, 90, ["http/session-over"]), (5001, 90, ["http/refused"]), (5001, 95, ["http/session-over"])],
)
def test_a_request_may_cross_the_end_of_its_session_on_another_connection(port, seconds, found):
    http = begun()
    http.answer(say(http, request(1, "tools/list")), status=404, kind=None)
    http.wait(seconds * SECOND)
    http.answer(say(http, request(2, "ping"), peer=f"127.0.0.1:{port}"), status=404, kind=None)
    assert sorted({it.rule for it in judged(http.records)}) == found


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_large_body_is_not_remembered(size):
    http = begun()
    http.answer(say(http, request(1, "tools/list")), {"error": "x" * size}, status=500, kind=JSON)
    assert [it.rule for it in judged(http.records)] == ["http/refused"]
    *_, unit = (event for event in events_of(http.records) if isinstance(event, HttpUnit))
    kept = remembered(unit)
    assert kept.n == unit.n
    assert (kept.frame is None) is (size > 1000)


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_large_message_is_not_remembered(size):
    http = begun()
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "x" * size}}
    http.answer(say(http, {"jsonrpc": "2.0", "method": "notifications/progress"}), error, status=500)
    *_, message = (event for event in events_of(http.records) if isinstance(event, Message))
    assert (remembered(message) is None) is (size > 1000)


def test_a_request_that_is_sent_before_the_answer_to_initialize_cannot_have_the_session_id():
    http = Exchange()
    first = http.ask(request(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=INFO))
    early = http.ask(request(1, "tools/list"))
    http.answer(first, result(0, protocolVersion="2025-06-18", capabilities={"tools": {}}, serverInfo=INFO))
    http.answer(early, {"error": "Missing session ID"}, status=400)
    assert "http/session-header-lost" not in {it.rule for it in judged(http.records)}
    late = http.ask(request(2, "tools/list"))
    http.answer(late, {"error": "Missing session ID"}, status=400)
    assert "http/session-header-lost" in {it.rule for it in judged(http.records)}
