"""POST requests and their responses: cases that the rule examples do not cover."""

import random

import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.rules import RULES, Finding
from mcpspy.rules.judge import Judge
from mcpspy.spec.revisions import Revision
from tests import NIGHTLY
from tests.conversation.http import JSON, SSE, Exchange, request, result
from tests.rules.examples import findings, records, told
from tests.transcript import OPENS

POST = '= 2025-06-18 http\n>> {headers} 2 tools/list\n<< 200 2 = {{"tools":[]}}'


def judged(found, as_revision=None):
    judge = Judge(as_revision)
    events = [event for record in found for event in judge.feed(record)]
    return [event for event in [*events, *judge.end()] if isinstance(event, Finding)]


def of(text, rule):
    return [(it.severity, it.blame, it.message) for it in findings(text) if it.rule == rule]


# Requests


@pytest.mark.parametrize(
    ("headers", "told_of"),
    [
        ("[accept:]", ("error", "application/json and text/event-stream")),
        ("[accept: text/html]", ("error", "application/json and text/event-stream")),
        ("[accept: */*]", ("warning", "application/json and text/event-stream")),
        ("[accept: application/json, text/*]", ("warning", "text/event-stream")),
        ("[accept: Text/Event-Stream, APPLICATION/JSON]", None),
    ],
)
def test_both_types_are_listed_by_their_names(headers, told_of):
    found = of(POST.format(headers=headers), "http/accept")
    expected = told_of and (told_of[0], "client", f"the request's Accept does not list {told_of[1]}")
    assert found == ([expected] if expected else [])


def test_a_get_needs_the_type_of_streams_alone_and_is_known_by_its_session():
    assert told("= 2025-06-18 http\n>> GET [accept: application/json]", "http/accept")
    assert told("= 2025-06-18 http\n>> GET [accept: text/event-stream]", "http/") == []
    assert told(">> GET [accept: text/html]", "http/") == []


def test_what_is_wrong_with_every_request_is_told_once():
    text = "= 2025-06-18 http\n" + ">> [accept:] [content-type:] [mcp-protocol-version:] 2 tools/list\n" * 3
    assert [it.partition(" ")[2] for it in told(text, "http/")] == [
        "http/accept",
        "http/request-type",
        "http/version-header",
    ]


def test_the_revision_that_was_agreed_on_is_stated_by_messages_and_by_heads_alone():
    assert of("= 2025-06-18 http\n>> GET [mcp-protocol-version:]", "http/version-header")
    assert of("= 2025-06-18 http\n>> DELETE [mcp-protocol-version: 2025-03-26]", "http/version-header") == [
        ("warning", "client", "MCP-Protocol-Version is 2025-03-26; expected 2025-06-18, as in the answer to initialize")
    ]
    assert of("= 2025-03-26 http\n>> 2 tools/list", "http/version-header") == []


def test_a_session_that_began_before_the_capture_has_agreed_on_nothing_that_is_known():
    http = Exchange()
    http.ask(request(5, "tools/list"), mcp_session_id="old", mcp_protocol_version="2025-06-18")
    http.ask(request(6, "tools/list"), mcp_session_id="old")
    http.ask(method="GET", mcp_session_id="old", last_event_id="3")
    assert [it.rule for it in judged(http.records) if it.severity != "info"] == []


# Responses


@pytest.mark.parametrize(
    ("answer", "told_of"),
    [
        ("202", "tools/list is answered with status 202 without a Content-Type; expected JSON or events"),
        (
            "200 [content-type: text/html] | <html>",
            "tools/list is answered with status 200 as text/html; expected JSON or events",
        ),
        ("401", None),
        ("503 [content-type: text/html] | <html>", None),
        ("307", None),
    ],
)
def test_only_success_promises_an_answer(answer, told_of):
    found = of(f"= 2025-06-18 http\n>> 2 tools/list\n<< {answer}", "http/answer-type")
    assert [message for *_, message in found] == ([told_of] if told_of else [])


def test_a_request_that_was_cancelled_may_be_answered_by_nothing():
    text = """
        = 2025-06-18 http
        >> 2 tools/list
        >> notifications/cancelled {"requestId":2}
        << 202
        << 204
    """
    assert told(text, "http/") == []


def test_a_get_is_answered_by_a_stream_or_refused():
    assert of("= 2025-06-18 http\n>> GET\n<< 200 | {}", "http/answer-type")
    assert told("= 2025-06-18 http\n>> GET\n<< 405", "http/") == []


@pytest.mark.parametrize(
    ("answer", "told_of"),
    [
        ("200 | null", "notifications/roots/list_changed is answered with status 200; expected 202"),
        ("204", "notifications/roots/list_changed is answered with status 204; expected 202"),
        (
            "202 [content-type: text/plain] | Accepted",
            "notifications/roots/list_changed is answered with a body; expected status 202 alone",
        ),
        ("202 3 = {}", "notifications/roots/list_changed is answered with a body; expected status 202 alone"),
        ("400 | no", None),
    ],
)
def test_a_notification_is_accepted_by_a_status_alone(answer, told_of):
    found = of(f"= 2025-06-18 http\n>> notifications/roots/list_changed\n<< {answer}", "http/notification-status")
    assert found == ([("error", "server", told_of)] if told_of else [])


def test_a_response_of_the_clients_is_accepted_likewise():
    text = """
        = 2025-06-18 http
        >> GET
        << 200 events
        <- 7 roots/list
        >> 7 = {"roots":[]}
        << 200
    """
    (found,) = of(text, "http/notification-status")
    assert found[2] == "the client's response is answered with status 200; expected 202"


def test_what_the_relay_answers_itself_is_nobodys_fault():
    http = Exchange()
    http.answer(http.ask(request(1, "initialize", protocolVersion="2025-06-18")), None, kind="text/plain")
    whole = judged(http.records)
    (answer,) = (place for place, it in enumerate(http.records) if isinstance(it, Open) and it.role == "response")
    opened = http.records[answer]
    http.records[answer] = Open(opened.n, opened.ch, opened.t, "mcpspy", "response", "body", opened.answers,
                                head=opened.head)  # fmt: skip
    assert "http/answer-type" in {it.rule for it in whole}
    assert "http/answer-type" not in {it.rule for it in judged(http.records)}


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_an_error_that_has_a_status_is_told_when_it_comes_with_another(code):
    text = '>> 1 prompts/list {{META}}\n<< {} 1 ! {{"code":{},"message":"no"}}'
    assert of(text.format(200, code), "http/error-status")
    assert of(text.format(400, code), "http/error-status") == []


def test_that_there_is_no_such_tool_is_no_unknown_method():
    text = '>> 1 tools/call {META "name":"a"}\n<< 200 1 ! {"code":-32601,"message":"no such tool"}'
    assert of(text, "http/error-status") == []
    assert of('>> 1 tools/list {META}\n<< 200 1 ! {"code":-32603,"message":"no"}', "http/error-status") == []


def test_a_server_that_does_not_know_discovery_need_not_know_the_statuses_of_2026():
    """R-07: the server speaks an earlier revision, and the client probes it. 5 of 13 real clients probe over HTTP."""
    text = """
        >> 1 server/discover {META}
        << 200 1 ! {"code":-32601,"message":"Method not found"}
        >> 2 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 2 = {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """
    assert of(text, "http/error-status") == []
    unsupported = text.replace("-32601", "-32022")
    assert of(unsupported, "http/error-status")


def test_a_server_of_2026_that_asks_over_http_is_told_of():
    """The server can read the revision from the request that it answers."""
    text = ">> [mcp-protocol-version:] 1 tools/list {META}\n<< 200 events\n<- 7 roots/list"
    found = [(it.rule, it.blame) for it in findings(text) if it.rule.startswith("lifecycle/")]
    assert found == [("lifecycle/wrong-direction", "server")]


# Bodies


@pytest.mark.parametrize(
    ("lines", "told_of"),
    [
        ("<< 200 | nonsense", "the body is not JSON (error at character 0)"),
        ("<< 200 events\n<- | {nonsense", "the event is not JSON (error at character 1)"),
    ],
)
def test_what_is_not_json_is_named_by_what_it_is(lines, told_of):
    found = [it for it in findings(f"= 2025-06-18 http\n>> 2 tools/list\n{lines}") if it.severity != "info"]
    assert [(it.rule, it.message) for it in found] == [("http/not-json", told_of)]


def test_the_rules_about_lines_are_not_about_bodies():
    http = Exchange()
    asked = http.ask(b'{\n  "jsonrpc": "2.0", "id": 1,\n  "method": "ping"\n}\r', mcp_session_id="a")
    http.answer(asked, b'\n{"jsonrpc":"2.0","id":1,\n"result":{}}\r\n')
    assert [it.rule for it in judged(http.records) if it.rule.startswith("framing/")] == []


def test_a_body_that_broke_off_is_no_fault_of_its_json():
    http = Exchange()
    http.answer(http.ask(request(1, "ping"), mcp_session_id="a"), b'{"jsonrpc":"2.0",')
    place = max(place for place, record in enumerate(http.records) if isinstance(record, Frame))
    frame = http.records[place]
    assert "http/not-json" in {it.rule for it in judged(http.records)}
    http.records[place] = Frame(frame.n, frame.ch, frame.t, frame.raw, cut=True)
    assert {it.rule for it in judged(http.records)} == {"lifecycle/server-exit"}


@pytest.mark.parametrize(
    ("why", "severity"),
    [
        ("the compressed body ends too early", "error"),
        ("the content coding 'x' is not known", "info"),
        ("the package for the content coding 'zstd' is not installed", "info"),
    ],
)
def test_a_coding_that_we_lack_is_only_mentioned(why, severity):
    text = f'= 2025-06-18 http\n>> 2 tools/list\n<< 200 [content-encoding: x] 2 = {{"tools":[]}}\n<x {why}'
    assert of(text, "framing/undecodable") == [(severity, "server", why)]


# Other transports


def test_legacy_sse_has_other_ways_whatever_revision_is_spoken_over_it():
    """H-08: the traffic of SDK clients over HTTP+SSE, with an endpoint that names no session."""
    http = Exchange()
    stream = http.answer(http.ask(method="GET", target="/sse"), kind=SSE, end=False)
    http.event(stream, raw=b"event: endpoint\ndata: /messages/7\n")
    info = {"name": "x", "version": "1"}
    asked = request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    http.answer(http.ask(asked, target="/messages/7", accept="*/*"), b"Accepted", status=202, kind="text/plain")
    http.event(stream, result(0, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=info))
    told_of = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    http.answer(http.ask(told_of, target="/messages/7", accept="*/*"), b"Accepted", status=202, kind="text/plain")
    http.answer(http.ask(request(1, "tools/list"), target="/messages/7", accept=None), b"", status=200, kind=None)
    http.event(stream, result(1, tools=[]))
    assert [it.rule for it in judged(http.records)] == []


def test_a_websocket_has_no_heads_to_be_judged():
    http = Exchange()
    client, server = http.websocket()
    http.say(client, request(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={}))
    http.say(server, b"nonsense")
    found = [it for it in judged(http.records) if it.rule.startswith("http/")]
    assert [(it.rule, it.message) for it in found] == [
        ("http/not-json", "the message is not JSON (error at character 0)")
    ]


# Damaged heads


VALUES = (
    "",
    "=?base64??=",
    "=?base64?!?=",
    "«redacted:00000000»",
    "\udcff",
    "é",
    "1e999",
    "a" * 9000,
    JSON,
    SSE,
    None,
    5,
)
NAMES = ("accept", "content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id",
         "www-authenticate", "host", "Mcp-Param-Region")  # fmt: skip


def mangled(opened, chance):
    head = dict(opened.head)
    if chance.random() < 0.2:
        head[chance.choice(("method", "target", "status", "headers"))] = chance.choice((None, 5, "x", [], [["a"]], 404))
    else:
        head["headers"] = [*head["headers"], [chance.choice(NAMES), chance.choice(VALUES)]]
        chance.shuffle(head["headers"])
    return Open(opened.n, opened.ch, opened.t, opened.sender, opened.role, opened.framing, opened.answers, opened.peer,
                head)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_heads_of_any_kind_raise_nothing(seed):
    chance = random.Random(seed)  # noqa: S311 (seeded, so that a failure can be reproduced)
    texts = [text for rule in RULES.values() for text in (rule.fails, rule.passes) if ">>" in text]
    sessions = [records(text) for text in texts]
    for _ in range(500 if NIGHTLY else 200):
        found = list(chance.choice(sessions))
        heads = [place for place, record in enumerate(found) if isinstance(record, Open) and record.head]
        for place in chance.sample(heads, min(2, len(heads))):
            found[place] = mangled(found[place], chance)
        assert found[:1] != list(OPENS)
        for finding in judged(found, chance.choice((None, *Revision))):
            assert finding.message
