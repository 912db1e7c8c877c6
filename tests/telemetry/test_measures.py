"""The measures of a capture."""

import os

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.telemetry import measures
from mcpspy.telemetry.captured import CapturedTelemetry
from mcpspy.telemetry.measures import Measure
from tests.telemetry.folded import STDIO
from tests.timelines import CAPTURES
from tests.transcript import records


def measured(text):
    folded = CapturedTelemetry(STDIO, str, lambda _: {})
    return [it for it in (*folded.feed(records(text)), *folded.end()) if isinstance(it, Measure)]


def test_an_exchange_lasts_equally_long_for_both_sides_and_no_id_is_told():
    found = measured(
        '@1 > {"id":7,"method":"tools/call","params":{"name":"a"}}\n@1.25 < {"id":7,"result":{"isError":true}}'
    )
    operations = [it for it in found if it.metric in measures.OPERATIONS]
    assert [it.metric for it in operations] == list(measures.OPERATIONS)
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
    sessions = [it for it in found if it.metric in measures.SESSIONS]
    assert [it.metric for it in sessions] == list(measures.SESSIONS)
    assert {round(it.value) for it in sessions} == {6}
    assert sessions[0].attributes == {"mcp.protocol.version": "2025-06-18", "network.transport": "pipe"}


def test_the_address_of_the_server_is_told_by_the_client_alone():
    capture = Capture(os.path.join(CAPTURES, "http-python1-2025-11-25.jsonl"))
    folded = CapturedTelemetry(capture.header, str)
    for it in folded.feed(capture.records()):
        if isinstance(it, Measure) and it.metric in measures.OPERATIONS:
            assert ("server.address" in it.attributes) == (it.metric == measures.OPERATIONS[0])
            assert it.attributes["network.transport"] == "tcp"


def test_there_are_no_sessions_in_2026_07_28():
    name = os.path.join(CAPTURES, "http-python2-2026-07-28.jsonl")
    capture = Capture(name)
    folded = CapturedTelemetry(capture.header, str, lambda _: {})
    found = [it.metric for it in (*folded.feed(capture.records()), *folded.end()) if isinstance(it, Measure)]
    assert not set(found) & set(measures.SESSIONS)
    assert found.count(measures.OPERATIONS[0]) == 47


def test_bytes_and_findings_are_counted():
    found = measured("> 1 ping\n< 2 = {}\n! warming up")
    sizes = {tuple(it.attributes.values()): it.value for it in found if it.metric == measures.BYTES}
    assert sizes == {("client", "messages"): 40, ("server", "messages"): 36, ("server", "stderr"): 10}
    rules = {it.attributes["mcpspy.rule"] for it in found if it.metric == measures.FINDINGS}
    assert "pairing/orphan-response" in rules


@pytest.mark.parametrize("limit", [1, 2])
def test_what_is_remembered_of_sessions_is_bounded(monkeypatch, limit):
    monkeypatch.setattr(measures, "AT_ONCE", limit)
    capture = Capture(os.path.join(CAPTURES, "sse-python1-2024-11-05.jsonl"))
    folded = CapturedTelemetry(capture.header, str, lambda _: {})
    found = [it.metric for it in (*folded.feed(capture.records()), *folded.end()) if isinstance(it, Measure)]
    assert found.count(measures.SESSIONS[0]) >= 1


def test_the_histograms_are_those_of_the_conventions():
    assert measures.OPERATIONS == ("mcp.client.operation.duration", "mcp.server.operation.duration")
    assert measures.SESSIONS == ("mcp.client.session.duration", "mcp.server.session.duration")
    assert measures.BUCKETS == (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
