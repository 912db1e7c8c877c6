"""POST requests and their responses: cases that the rule examples do not cover."""

import random

import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.rules import RULES
from mcpspy.spec.revisions import Revision
from tests import NIGHTLY
from tests.conversation.http import JSON, SSE, Exchange, request, result
from tests.rules.examples import judged, records
from tests.transcript import OPENS


def test_a_session_that_began_before_the_capture_has_agreed_on_nothing_that_is_known():
    http = Exchange()
    http.ask(request(5, "tools/list"), mcp_session_id="old", mcp_protocol_version="2025-06-18")
    http.ask(request(6, "tools/list"), mcp_session_id="old")
    http.ask(method="GET", mcp_session_id="old", last_event_id="3")
    assert [it.rule for it in judged(http.records) if it.severity != "info"] == []


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
        for finding in judged(found, as_revision=chance.choice((None, *Revision))):
            assert finding.message
