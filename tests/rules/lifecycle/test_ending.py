"""The end of a session: a server that ends by itself is blamed for requests in flight, a client that leaves is not."""

from dataclasses import replace

import pytest

from tests.conversation.http import SSE, Exchange, request, result
from tests.rules.examples import findings, judged


def test_of_many_requests_in_flight_some_are_named_and_none_is_unanswered_as_well():
    """R-07."""
    text = "= 2025-06-18" + "".join(f"\n> {number} ping" for number in range(2, 5000))
    (found,) = findings(f"{text}\n. exit 1")
    assert found.message.endswith("while ping and 4997 more waited for an answer")
    assert len(found.related) == 100


def broken(how, sender="server", status=200, then=None):
    """Return the findings about an HTTP request whose response stream ends as `how`."""
    http = Exchange()
    asked = http.ask(request(1, "tools/list"), mcp_session_id="s")
    channel = http.answer(asked, status=status, kind=SSE, end=False)
    http.records[-1] = replace(http.records[-1], sender=sender)
    if then:
        http.event(channel, then)
    http.close(channel, how)
    return [it for it in judged(http.records) if it.rule in ("lifecycle/server-exit", "pairing/unanswered")]


def test_over_http_a_server_that_breaks_off_its_answer_is_the_same_error():
    """R-09, the same rule on both transports."""
    (found,) = broken("reset")
    assert (found.rule, found.severity, found.message) == (
        "lifecycle/server-exit", "error", "the server broke off its answer to tools/list",
    )  # fmt: skip


def test_each_transport_has_its_own_page_of_the_specification():
    """R-09."""
    (over_http,), (over_stdio,) = broken("reset"), findings("> 1 tools/list {META}\n. exit 1")
    assert [it.spec.rpartition("/specification/")[2] for it in (over_http, over_stdio)] == [
        "2025-03-26/basic/transports#sending-messages-to-the-server",
        "2026-07-28/basic/transports/stdio#unexpected-termination",
    ]


@pytest.mark.parametrize("status", [502, 504])
def test_a_server_that_cannot_be_reached_is_the_same_error(status):
    """R-09: the relay answers in place of the server."""
    (found,) = broken("eof", sender="mcpspy", status=status)
    assert (found.rule, found.blame) == ("lifecycle/server-exit", "server")
    assert found.message == "the server was unreachable for tools/list"


def test_a_stream_that_breaks_after_the_answer_or_is_left_by_its_client_is_no_fault():
    """R-09."""
    assert broken("reset", then=result(1, tools=[])) == []
    assert broken("abort") == []  # C-03
    assert broken("eof", status=502) == []


def test_an_error_that_the_relay_gave_in_the_servers_place_is_that_error():
    """R-09: `proxy` answers 502 with a JSON-RPC error."""
    http = Exchange()
    asked = http.ask(request(1, "tools/list"), mcp_session_id="s")
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "mcpspy: cannot be reached"}}
    http.answer(asked, error, status=502)
    http.records[-3] = replace(http.records[-3], sender="mcpspy")
    (found,) = judged(http.records)
    assert (found.rule, found.severity, found.blame) == ("lifecycle/server-exit", "error", "server")
    assert found.message == "the server did not answer tools/list: mcpspy: cannot be reached"


def legacy(how, t=0):
    """Return records of an HTTP+SSE request; its session's stream ends as `how`, `t` nanoseconds after the start."""
    http = Exchange()
    stream = http.answer(http.ask(method="GET", target="/sse"), kind=SSE, end=False)
    http.event(stream, raw=b"event: endpoint\ndata: /messages?session_id=s\n")
    http.answer(http.ask(request(1, "tools/list"), target="/messages?session_id=s"), status=202, kind=None)
    http.wait(t)
    http.close(stream, how)
    return http.records


def socket(how, t=0):
    """Return records of a WebSocket request; the server's direction ends as `how`, `t` nanoseconds after the start."""
    http = Exchange()
    ours, theirs = http.websocket()
    http.say(ours, request(1, "tools/list"))
    http.wait(t)
    http.close(theirs, how)
    return http.records


@pytest.mark.parametrize("channel", [legacy, socket])
def test_the_one_stream_of_a_session_breaks_off_or_is_left(channel):
    """R-09: HTTP+SSE and WebSocket."""
    for how, t, expected in [
        ("reset", 0, ("lifecycle/server-exit", "error")),
        ("abort", 62 * 10**9, ("pairing/unanswered", "warning")),
        ("abort", 0, None),  # C-03
    ]:
        found = [(it.rule, it.severity) for it in judged(channel(how, t)) if it.blame == "server"]
        assert found == ([expected] if expected else []), how
