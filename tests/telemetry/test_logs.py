"""Logs, measures, and the resource that they belong to."""

import os
from dataclasses import replace
from functools import partial

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.secrets.body import redacted_content
from mcpspy.secrets.redactor import Redactor
from mcpspy.telemetry import captured
from mcpspy.telemetry.captured import CapturedTelemetry, LogEntry, Measure
from mcpspy.telemetry.spans import ExchangeSpan, resource_attributes, server_attributes, start_of
from tests.each import each
from tests.telemetry.folded import STDIO
from tests.timelines import CAPTURES
from tests.transcript import records


def logs(text):
    """Return the log entries and the spans of a transcript."""
    folded = CapturedTelemetry(STDIO, lambda text: text.replace("hunter2", "…"), lambda _: {})
    found = [*folded.feed(records(text)), *folded.end()]
    return [it for it in found if isinstance(it, LogEntry)], [it for it in found if isinstance(it, ExchangeSpan)]


def test_a_line_of_stderr_is_logged_without_its_secrets():
    ((entry,), _) = logs("@1 ! login with hunter2")
    assert entry == LogEntry(1_000_000_000, "login with …", "mcpspy.stderr", attributes={"mcpspy.frame": 1})


@each(
    "params, body, severity, level",
    [
        ('{"level":"warning","logger":"db","data":"slow"}', "slow", 13, "warning"),
        ('{"level":"info","data":{"a":[1,"é"]}}', '{"a": [1, "é"]}', 9, "info"),
        ('{"level":7,"data":{"a":[1,2]}}', '{"a": [1, 2]}', 0, None),
        ('{"level":"loud","data":null}', None, 0, None),
        ("[]", None, 0, None),
        ("{}", None, 0, None),
    ],
)
def test_a_log_message_of_any_shape_is_logged_with_the_severity_of_its_level(params, body, severity, level):
    entries, _ = logs(f'< {{"method":"notifications/message","params":{params}}}')
    entry = next(it for it in entries if it.event == "mcp.log")
    assert (entry.severity, entry.level) == (severity, level)
    assert body in (entry.body, None)
    assert entry.attributes.get("mcp.logger") == ("db" if level == "warning" else None)


def test_a_finding_belongs_to_the_span_of_its_message():
    entries, spans = logs("= 2025-06-18\n@1 > 1 ping\n@2 < 1 = []")
    entry = next(it for it in entries if it.attributes["mcpspy.frame"] == 5)
    assert (entry.t, entry.event, entry.severity) == (2_000_000_000, "mcpspy.finding", 17)
    assert entry.attributes["mcpspy.blame"] == "server"
    assert entry.context == next(span.context for span in spans if span.name == "ping")


def test_a_finding_that_is_made_at_the_end_has_the_span_of_its_request():
    entries, (span,) = logs("@1 > 1 ping\n@30 ! nothing")
    entry = next(it for it in entries if it.attributes.get("mcpspy.rule") == "pairing/unanswered")
    assert (entry.t, entry.context) == (1_000_000_000, span.context)


def test_a_finding_quotes_content_only_where_that_was_asked_for():
    text = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}
        > 3 tools/call {"name":"a","arguments":{"n":"c0ntent"}}
    """
    bodies = []
    for contents in (None, lambda _: {}):
        folded = CapturedTelemetry(STDIO, str, contents)
        entries = [*folded.feed(records(text)), *folded.end()]
        bodies.append([it.body for it in entries if getattr(it, "event", "") == "mcpspy.finding"])
    assert len(bodies[0]) == len(bodies[1])
    assert "c0ntent" not in str(bodies[0])
    assert "c0ntent" in str(bodies[1])


def test_a_text_has_a_limit():
    ((entry,), _) = logs("! " + "x" * 100_000)
    assert len(entry.body) == 8192


def measured(text):
    folded = CapturedTelemetry(STDIO, str, lambda _: {})
    return [it for it in (*folded.feed(records(text)), *folded.end()) if isinstance(it, Measure)]


def test_an_exchange_lasts_equally_long_for_both_sides_and_no_id_is_told():
    found = measured(
        '@1 > {"id":7,"method":"tools/call","params":{"name":"a"}}\n@1.25 < {"id":7,"result":{"isError":true}}'
    )
    operations = [it for it in found if it.metric in captured.OPERATIONS]
    assert [it.metric for it in operations] == list(captured.OPERATIONS)
    for it in operations:
        assert it.value == 0.25
        assert it.attributes == {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "a",
            "network.transport": "pipe",
            "error.type": "tool_error",
        }


def test_a_session_lasts_from_its_first_message_to_its_last():
    found = measured("= 2025-06-18\n@5 > 2 ping\n@6 < 2 = {}\n@9 ! after that")
    sessions = [it for it in found if it.metric in captured.SESSIONS]
    assert [it.metric for it in sessions] == list(captured.SESSIONS)
    assert {round(it.value) for it in sessions} == {6}
    assert sessions[0].attributes == {"mcp.protocol.version": "2025-06-18", "network.transport": "pipe"}


def test_the_address_of_the_server_is_told_by_the_client_alone():
    capture = Capture(os.path.join(CAPTURES, "http-python1-2025-11-25.jsonl"))
    folded = CapturedTelemetry(capture.header, str)
    for it in folded.feed(capture.records()):
        if isinstance(it, Measure) and it.metric in captured.OPERATIONS:
            assert ("server.address" in it.attributes) == (it.metric == captured.OPERATIONS[0])
            assert it.attributes["network.transport"] == "tcp"


def test_there_are_no_sessions_in_2026_07_28():
    name = os.path.join(CAPTURES, "http-python2-2026-07-28.jsonl")
    capture = Capture(name)
    folded = CapturedTelemetry(capture.header, str, lambda _: {})
    found = [it.metric for it in (*folded.feed(capture.records()), *folded.end()) if isinstance(it, Measure)]
    assert not set(found) & set(captured.SESSIONS)
    assert found.count(captured.OPERATIONS[0]) == 47


def test_bytes_and_findings_are_counted():
    found = measured("> 1 ping\n< 2 = {}\n! warming up")
    sizes = {tuple(it.attributes.values()): it.value for it in found if it.metric == captured.BYTES}
    assert sizes == {("client", "messages"): 40, ("server", "messages"): 36, ("server", "stderr"): 10}
    rules = {it.attributes["mcpspy.rule"] for it in found if it.metric == captured.FINDINGS}
    assert "pairing/orphan-response" in rules


@pytest.mark.parametrize("limit", [1, 2])
def test_what_is_remembered_of_sessions_is_bounded(monkeypatch, limit):
    monkeypatch.setattr(captured, "AT_ONCE", limit)
    capture = Capture(os.path.join(CAPTURES, "sse-python1-2024-11-05.jsonl"))
    folded = CapturedTelemetry(capture.header, str, lambda _: {})
    found = [it.metric for it in (*folded.feed(capture.records()), *folded.end()) if isinstance(it, Measure)]
    assert found.count(captured.SESSIONS[0]) >= 1


def test_the_histograms_are_those_of_the_conventions():
    assert captured.OPERATIONS == ("mcp.client.operation.duration", "mcp.server.operation.duration")
    assert captured.SESSIONS == ("mcp.client.session.duration", "mcp.server.session.duration")
    assert captured.BUCKETS == (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)


def test_the_resource_names_server_and_capture_and_the_client_once_it_is_known():
    known = resource_attributes(STDIO, "", str)
    assert (known["mcpspy.server"], known["service.instance.id"]) == ("weather", STDIO.id)
    assert "mcpspy.client" not in known
    assert resource_attributes(STDIO, "cursor 2", str)["mcpspy.client"] == "cursor 2"


def test_no_secret_of_the_header_leaves_in_the_telemetry():
    """A-13, also one that somebody wrote into a capture by hand."""
    token = "gh" + "p_" + "a1B2" * 9
    header = replace(STDIO, id=token, name=f"weather {token}", url=f"https://{token}.example/mcp")
    folded = CapturedTelemetry(header, partial(redacted_content, mark=Redactor().mark))
    left = {**folded.resource(), **server_attributes(header, partial(redacted_content, mark=Redactor().mark))}
    assert token.lower() not in str(left).lower()
    assert str(left["mcpspy.server"]).startswith("weather ")


def test_a_capture_began_at_its_start_to_the_microsecond():
    assert start_of(replace(STDIO, started="2026-11-20T19:15:00.123456Z")) == 1_795_202_100_123_456_000
