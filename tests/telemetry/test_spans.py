"""Each exchange is one span; related spans form one trace; their attributes are those of the conventions."""

import os
from collections import Counter
from dataclasses import replace

from mcpspy.capture.reader import Capture
from mcpspy.recording.copy import record_line
from mcpspy.telemetry.captured import CapturedTelemetry
from mcpspy.telemetry.spans import (
    SpanEvent,
    TraceContext,
    bounded,
    content_attributes,
    nanoseconds,
    parse_traceparent,
    server_attributes,
    span_id,
    trace_id,
)
from mcpspy.timeline import final_rows
from tests.each import each
from tests.telemetry.folded import STDIO, spans, spans_of
from tests.timelines import CAPTURES

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@each("version", ["00", "01", "fe"])
def test_a_valid_traceparent_is_a_context(version):
    found = parse_traceparent(f"{version}-{TRACE}-{SPAN}-01")
    assert found == TraceContext(bytes.fromhex(TRACE), bytes.fromhex(SPAN))


@each(
    "value",
    [
        None,
        1,
        "",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-",
        f"00-{TRACE}-{SPAN}-01-x",
        f"01-{TRACE}-{SPAN}-01x",
        f"01-{TRACE}-{SPAN}-01-\n",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_any_other_value_is_none(value):
    assert parse_traceparent(value) is None


def test_a_later_version_may_have_more_fields():
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-01-what-comes") == parse_traceparent(f"00-{TRACE}-{SPAN}-01")


def test_a_secret_is_not_cut_in_two():
    text = "x" * 5 + "secret" + "y" * 100
    assert bounded(text, lambda it: it.replace("secret", "…"), 8) == "xxxxx…yy"


@each("t, found", [(5, 12), (-8, 0), (10**30, (1 << 63) - 1)])
def test_times_fit_into_their_field(t, found):
    assert nanoseconds(7, t) == found


def test_ids_are_those_of_the_capture_and_the_line():
    """T-03."""
    assert span_id("a", 5, 0) == span_id("a", 5, 0)
    places = [("a", 5, 0), ("a", 5, 1), ("a", 6, 0), ("b", 5, 0)]
    assert len({span_id(*place) for place in places}) == len({trace_id(*place) for place in places}) == len(places)
    assert (len(span_id("a", 1, 0)), len(trace_id("a", 1, 0))) == (8, 16)


URL = "http://127.0.0.1:9000/mcp"
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@each("name", sorted(name for name in os.listdir(CAPTURES) if name.endswith(".jsonl")))
def test_there_is_one_span_for_each_request_and_failures_are_those_of_the_rows(name):
    path = os.path.join(CAPTURES, name)
    found = {span.attributes["mcpspy.frame"]: span for span in spans_of(path)}
    rows = {row.n: row for row in final_rows(lambda: Capture(path).records(), live=False) if row.kind == "request"}
    assert found.keys() == rows.keys()
    assert len({span.context.span for span in found.values()}) == len(found)
    failed = {n for n, row in rows.items() if row.status in ("error", "tool-error", "cancelled", "unanswered")}
    assert {n for n, span in found.items() if span.error is not None} == failed
    outcomes = {n: span.attributes["mcpspy.outcome"] for n, span in found.items()}
    assert outcomes == {n: row.outcome for n, row in rows.items()}
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


def over_http(path, meta="", context=CONTEXT):
    """Return the span of a request over HTTP that was refused, with trace context in its head."""
    fields = [["content-type", "application/json"], ["traceparent", context], ["tracestate", "a=1"]]
    head = {"method": "POST", "target": "/mcp", "version": "HTTP/1.1", "headers": fields}
    refusal = {"status": 503, "reason": "no", "headers": []}
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}'
    records = [
        {"mcpspy": 1, "id": "1", "started": STDIO.started, "tool": "t", "transport": "http", "name": "w", "url": URL},
        {"kind": "open", "ch": 1, "t": 0, "from": "client", "role": "request", "framing": "body", "head": head},
        {"kind": "frame", "ch": 1, "t": 1, "raw": body},
        {"kind": "open", "ch": 2, "t": 2, "from": "server", "role": "response", "framing": "body", "answers": 1}
        | {"head": refusal},
        {"kind": "close", "ch": 2, "t": 3, "how": "eof"},
    ]
    path.write_bytes(b"".join(map(record_line, records)))
    (span,) = spans_of(str(path))
    return span


def test_a_refusal_by_http_is_a_failure(tmp_path):
    span = over_http(tmp_path / "http.jsonl")
    assert (span.attributes["error.type"], span.end) == ("_OTHER", 2)


def test_the_parent_is_the_context_in_the_http_head_if_the_message_has_none(tmp_path):
    span = over_http(tmp_path / "http.jsonl")
    assert (span.parent, span.link) == (parse_traceparent(CONTEXT, "a=1"), None)
    assert span.context.trace == span.parent.trace
    invalid = over_http(tmp_path / "invalid.jsonl", '"traceparent":"00-0-0-01"')
    assert invalid.parent == span.parent


def test_the_context_in_the_message_comes_before_that_in_the_http_head(tmp_path):
    other = f"00-{TRACE}-{'7' * 16}-01"
    span = over_http(tmp_path / "http.jsonl", f'"traceparent":"{CONTEXT}"', other)
    assert (span.parent, span.link) == (parse_traceparent(CONTEXT), parse_traceparent(other, "a=1"))
    same = over_http(tmp_path / "same.jsonl", f'"traceparent":"{CONTEXT}"')
    assert (same.parent, same.link) == (parse_traceparent(CONTEXT), None)


def test_a_context_in_the_http_head_that_is_not_valid_begins_a_trace(tmp_path):
    span = over_http(tmp_path / "http.jsonl", context="00-0-0-01")
    assert (span.parent, span.link) == (None, None)


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


def attributes(text):
    (span,) = spans(text)
    return span.attributes


def test_of_a_tool_call():
    found = attributes(
        '> {"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":{}}}\n< 1 = {}'
    )
    assert found == {
        "mcp.method.name": "tools/call",
        "jsonrpc.request.id": "x",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "a",
        "network.transport": "pipe",
        "error.type": "unanswered",
        "mcpspy.frame": 1,
        "mcpspy.outcome": "in-doubt",
    }


def test_of_a_prompt_and_of_a_resource():
    prompt = attributes('> {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}\n< 1 = {}')
    assert prompt["gen_ai.prompt.name"] == "p"
    (span,) = spans('> {"id":1,"method":"prompts/get","params":{"name":"p"}}\n< 1 = {}')
    assert span.name == "prompts/get p"
    assert "gen_ai.operation.name" not in prompt
    (resource,) = spans('> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a"}}\n< 1 = {}')
    assert resource.attributes["mcp.resource.uri"] == "file:///a"
    assert resource.name == "resources/read"


def test_of_an_error():
    (span,) = spans('> 1 ping\n< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}')
    assert span.attributes["error.type"] == span.attributes["rpc.response.status_code"] == "-32601"
    assert span.error == "no such method"


def test_of_an_error_of_a_tool():
    (span,) = spans('> {"id":1,"method":"tools/call","params":{"name":"a"}}\n< {"id":1,"result":{"isError":true}}')
    assert span.attributes["error.type"] == "tool_error"
    assert "rpc.response.status_code" not in span.attributes


def test_of_another_version_of_json_rpc_and_of_a_null_id():
    found = attributes('> {"jsonrpc":"1.0","id":null,"method":"ping"}')
    assert found["jsonrpc.protocol.version"] == "1.0"
    assert "jsonrpc.request.id" not in found


@each("name, session", [("http-python1-2025-11-25.jsonl", True), ("http-python2-2026-07-28.jsonl", False)])
def test_sessions_have_ids_until_2026_07_28(name, session):
    found = [span.attributes for span in spans_of(os.path.join(CAPTURES, name))]
    revision = name[-16:-6]
    assert {it.get("mcp.protocol.version") for it in found} == {revision}
    assert any("mcp.session.id" in it for it in found) == session
    assert {(it["network.transport"], it["network.protocol.name"], it["network.protocol.version"]) for it in found} == {
        ("tcp", "http", "1.1")
    }
    assert all(it["server.address"] == "127.0.0.1" and it["server.port"] for it in found)


@each(
    "url, found",
    [
        ("https://mcp.example.com/mcp", {"server.address": "mcp.example.com", "server.port": 443}),
        ("http://[::1]:8000/", {"server.address": "::1", "server.port": 8000}),
        ("http://h:99999/", {}),
        ("not a url", {}),
        (None, {}),
    ],
)
def test_the_server_is_the_one_behind_the_proxy(url, found):
    assert server_attributes(replace(STDIO, url=url), str) == found


def test_content_comes_only_where_it_was_asked_for():
    text = """
        > {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"city":"Oslo"}}}
        < {"id":1,"result":{"content":[]}}
    """
    assert "gen_ai.tool.call.arguments" not in attributes(text)
    (span,) = spans(text, content=content_attributes)
    assert span.attributes["gen_ai.tool.call.arguments"] == {"city": "Oslo"}
    assert span.attributes["gen_ai.tool.call.result"] == {"content": []}
    (prompt,) = spans(
        '> {"id":1,"method":"prompts/get","params":{"name":"p","arguments":{"a":"b"}}}\n< 1 = {}',
        content=content_attributes,
    )
    assert prompt.attributes["gen_ai.prompt.variable.a"] == "b"


def test_the_arguments_of_a_prompt_have_a_limit():
    many = ",".join(f'"{"n" * 200}{n}":1' for n in range(1000))
    (span,) = spans(
        f'> {{"id":1,"method":"prompts/get","params":{{"name":"p","arguments":{{{many}}}}}}}\n< 1 = {{}}',
        content=content_attributes,
    )
    assert len(span.attributes) < 80
    assert max(map(len, span.attributes)) < 200


def told(name, size):
    """Return the telemetry of a capture that is read in portions of `size` records."""
    capture = Capture(os.path.join(CAPTURES, name))
    folded, records = CapturedTelemetry(capture.header, str, lambda _: {}), list(capture.records())
    portions = [records[at : at + size] for at in range(0, len(records), size)]
    return [*(it for portion in portions for it in folded.feed(portion)), *folded.end()]


@each("name", ["features-python1-2025-11-25.jsonl", "http-python2-2026-07-28.jsonl"])
def test_the_same_comes_out_in_any_portions(name):
    """T-03: reading again from the beginning gives the same spans."""
    whole = told(name, 10**6)
    assert {type(it).__name__ for it in whole} == {"ExchangeSpan", "LogEntry", "Measure"}
    assert told(name, 1) == told(name, 7) == whole
