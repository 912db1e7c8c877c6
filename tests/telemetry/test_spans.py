"""Each exchange is one span, and related spans form one trace."""

import os
from collections import Counter

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.recording.copy import record_line
from mcpspy.telemetry.span import SpanEvent, parse_traceparent
from mcpspy.timeline import final_rows
from tests.telemetry.folded import STDIO, spans, spans_of
from tests.timelines import CAPTURES

URL = "http://127.0.0.1:9000/mcp"
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("name", sorted(name for name in os.listdir(CAPTURES) if name.endswith(".jsonl")))
def test_there_is_one_span_for_each_request_and_failures_are_those_of_the_rows(name):
    path = os.path.join(CAPTURES, name)
    found = {span.attributes["mcpspy.frame"]: span for span in spans_of(path)}
    rows = {row.n: row for row in final_rows(lambda: Capture(path).records(), live=False) if row.kind == "request"}
    assert found.keys() == rows.keys()
    assert len({span.context.span for span in found.values()}) == len(found)
    failed = {n for n, row in rows.items() if row.status in ("error", "tool-error", "cancelled", "unanswered")}
    assert {n for n, span in found.items() if span.error is not None} == failed
    assert Counter(row.method for row in rows.values()) == Counter(
        span.attributes["mcp.method.name"] for span in found.values()
    )


def test_a_span_lasts_from_the_request_to_its_response():
    (span,) = spans('@1 > {"id":1,"method":"ping"}\n@1.5 < {"id":1,"result":{}}')
    assert (span.name, span.start, span.end, span.error) == ("ping", 1_000_000_000, 1_500_000_000, None)
    assert span.parent is None


def test_the_parent_is_the_context_in_the_request():
    """T-01."""
    (span,) = spans(
        f'> {{"id":1,"method":"ping","params":{{"_meta":{{"traceparent":"{CONTEXT}"}}}}}}\n< {{"id":1,"result":{{}}}}'
    )
    assert span.parent == parse_traceparent(CONTEXT)
    assert span.context.trace == span.parent.trace


def test_a_context_that_is_not_valid_begins_a_trace():
    (span,) = spans('> {"id":1,"method":"ping","params":{"_meta":{"traceparent":"00-0-0-01"}}}\n< {"id":1,"result":{}}')
    assert span.parent is None


def test_what_a_server_asks_during_a_call_is_its_child():
    asked, call = spans("""
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        < {"id":1,"method":"sampling/createMessage","params":{}}
        > {"id":1,"result":{}}
        < {"id":1,"result":{}}
    """)
    assert (asked.name, call.name) == ("sampling/createMessage", "tools/call a")
    assert asked.parent == call.context
    assert asked.context.trace == call.context.trace


def test_what_a_server_asks_during_two_calls_belongs_to_neither():
    asked, *_ = spans("""
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"a"}}
        < {"id":1,"method":"roots/list"}
        > {"id":1,"result":{"roots":[]}}
    """)
    assert (asked.name, asked.parent) == ("roots/list", None)


def test_a_round_is_a_child_of_the_one_before():
    path = os.path.join(CAPTURES, "features-python2-2026-07-28.jsonl")
    found = {span.attributes["mcpspy.frame"]: span for span in spans_of(path)}
    rounds = [
        row
        for row in final_rows(lambda: Capture(path).records(), live=False)
        if row.exchange and row.kind == "request" and row.exchange.continues
    ]
    requests = {
        row.response: row.n for row in final_rows(lambda: Capture(path).records(), live=False) if row.kind == "request"
    }
    assert rounds
    for row in rounds:
        assert found[row.n].parent == found[requests[row.exchange.continues]].context


def test_progress_is_an_event_of_its_span():
    (span,) = spans("""
        > {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"p"}}}
        @2 < {"method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":4,"message":"half"}}
        < {"method":"notifications/progress","params":{"progressToken":"other","progress":1}}
        < {"id":1,"result":{}}
    """)
    told = {"mcpspy.progress": 1, "mcpspy.progress.total": 4, "mcpspy.progress.message": "half"}
    assert span.events == [SpanEvent("progress", 2_000_000_000, told)]


def test_a_cancelled_request_is_one_span_though_it_is_answered_later():
    (span,) = spans("""
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        @3 > {"method":"notifications/cancelled","params":{"requestId":1}}
        @4 < {"id":1,"result":{}}
    """)
    assert (span.attributes["error.type"], span.end) == ("cancelled", 3_000_000_000)


def test_what_is_never_answered_comes_out_at_the_end():
    (span,) = spans('> {"id":1,"method":"tools/call","params":{"name":"a"}}\n@9 ! still here')
    assert (span.attributes["error.type"], span.end, span.error) == ("unanswered", 9_000_000_000, "")


def test_an_http_context_is_a_link_and_a_refusal_a_failure(tmp_path):
    fields = [["content-type", "application/json"], ["traceparent", CONTEXT]]
    head = {"method": "POST", "target": "/mcp", "version": "HTTP/1.1", "headers": fields}
    refusal = {"status": 503, "reason": "no", "headers": []}
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    records = [
        {"mcpspy": 1, "id": "1", "started": STDIO.started, "tool": "t", "transport": "http", "name": "w", "url": URL},
        {"kind": "open", "ch": 1, "t": 0, "from": "client", "role": "request", "framing": "body", "head": head},
        {"kind": "frame", "ch": 1, "t": 1, "raw": body},
        {"kind": "open", "ch": 2, "t": 2, "from": "server", "role": "response", "framing": "body", "answers": 1}
        | {"head": refusal},
        {"kind": "close", "ch": 2, "t": 3, "how": "eof"},
    ]
    path = tmp_path / "http.jsonl"
    path.write_bytes(b"".join(map(record_line, records)))
    (span,) = spans_of(str(path))
    assert span.link == parse_traceparent(CONTEXT)
    assert (span.parent, span.attributes["error.type"], span.end) == (None, "_OTHER", 2)


def test_a_tracestate_goes_with_its_parent():
    text = (
        '> {"id":1,"method":"ping","params":{"_meta":{"traceparent":"%s","tracestate":"%s"}}}\n< {"id":1,"result":{}}'
    )
    (span,) = spans(text % (CONTEXT, "a=1,b=2"))
    assert (span.parent.state, span.context.state) == ("a=1,b=2", "a=1,b=2")
    (span,) = spans(text % (CONTEXT, "a=\\u0000" + "x" * 600))
    assert (span.parent.span, span.context.state) == (parse_traceparent(CONTEXT).span, "")


def test_what_a_peer_chooses_has_a_limit_and_no_secret():
    long = "x" * 5000
    (span,) = spans(
        f'> {{"id":"{long}","method":"tools/call","params":{{"name":"{long}"}}}}\n'
        f'< {{"id":"{long}","error":{{"code":"{long}","message":"hunter2 {long}"}}}}',
        redact=lambda text: text.replace("hunter2", "…"),
    )
    assert (len(span.name), len(span.error)) == (1024, 1024)
    assert span.error.startswith("… x")
    assert max(len(it) for it in span.attributes.values() if isinstance(it, str)) == 1024


def test_a_number_of_any_size_can_be_a_code_or_an_id():
    huge = "1" + "0" * 400
    (span,) = spans(f'> {{"id":{huge},"method":"ping"}}\n< {{"id":{huge},"error":{{"code":{huge},"message":7}}}}')
    assert span.attributes["jsonrpc.request.id"] == span.attributes["error.type"] == huge
    assert span.error == ""
