"""The preview of a message in its row; `tests/timelines/` has the previews of all golden captures."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.conversation.brief import LONGEST
from mcpspy.conversation.preview import introduction, preview, preview_of_large
from mcpspy.timeline import Row, final_rows
from tests.limits import proportionate
from tests.transcript import records

LOG, PROGRESS = "notifications/message", "notifications/progress"
TEXT = {"type": "text", "text": "3 °C\n  and rain"}
PICTURE = {"type": "image", "data": "A" * 16000, "mimeType": "image/png"}
ASK = {"method": "elicitation/create", "params": {"message": "Which city?"}}


def of_params(method, params, kind="request"):
    return preview(kind, method, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def of_result(result, method="tools/call"):
    return preview("result", method, {"jsonrpc": "2.0", "id": 1, "result": result})


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        (LOG, {"level": "info", "data": "disk almost full"}, "info: disk almost full"),
        (LOG, {"level": "error", "logger": "db", "data": "lost"}, "error [db]: lost"),
        (LOG, {"level": "info", "data": {"at": [1, 2.5], "ü": None}}, "info: at=[1,2.5] ü=null"),
        (LOG, {"level": "info", "data": 2**70}, f"info: {2**70}"),
        (LOG, {"level": "info", "data": ""}, "info: "),
        (LOG, {"level": 5, "data": False}, "5: false"),
        (LOG, {"data": "x"}, "x"),
        (PROGRESS, {"progressToken": 1, "progress": 2, "total": 3}, "2/3"),
        (PROGRESS, {"progressToken": 1, "progress": 2, "total": 3, "message": "reading"}, "2/3 reading"),
        (PROGRESS, {"progressToken": 1, "progress": 0.5}, "0.5"),
        (PROGRESS, {"progressToken": 1, "progress": 2.0, "total": 3.0}, "2/3"),
        (PROGRESS, {"progressToken": 1}, ""),
        (PROGRESS, [], "[]"),
        ("notifications/initialized", {}, ""),
        ("notifications/tools/list_changed", {}, ""),
        ("notifications/cancelled", {"requestId": 17, "reason": "too slow"}, "id 17 too slow"),
        ("notifications/cancelled", {"requestId": "a"}, 'id "a"'),
        ("notifications/resources/updated", {"uri": "a://b"}, ""),
        ("notifications/tasks/status", {"taskId": "t", "status": "failed", "statusMessage": ""}, "task failed:  (t)"),
        ("notifications/subscriptions/acknowledged", {"notifications": {"a": True}}, "a=true"),
        ("vendor/thing", {"a": "b", "_meta": {"x": 1}}, 'a="b"'),
    ],
)  # fmt: skip
def test_a_notification_shows_what_it_tells(method, params, words):
    """R-14."""
    assert of_params(method, params, "notification") == words


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("tools/call", {"name": "f", "arguments": {"city": "Oslo", "days": 3}}, 'city="Oslo" days=3'),
        ("tools/call", {"name": "f", "arguments": {"a b": {"c": [1, None]}}}, '"a b"={"c":[1,null]}'),
        ("tools/call", {"name": "f"}, ""),
        ("tools/call", {"name": "f", "arguments": [1]}, "[1]"),
        ("tools/call", {"name": "f", "arguments": {"a": 1}, "task": {"ttl": 5}}, "a=1 (as a task)"),
        ("tools/call", {"inputResponses": {"k": {"action": "accept", "content": {"c": 1}}}}, "(answers accept c=1)"),
        ("prompts/get", {"name": "p", "arguments": {"tone": "dry"}}, 'tone="dry"'),
        ("resources/read", {"uri": "a://b"}, ""),
        ("resources/list", {"cursor": "page 2"}, 'cursor="page 2"'),
        ("tools/list", {}, ""),
        ("tools/list", None, ""),
        ("ping", {}, ""),
        ("completion/complete", {"ref": {"name": "p"}, "argument": {"name": "tone", "value": "d"}}, 'tone="d"'),
        ("logging/setLevel", {"level": "debug"}, "debug"),
        ("sampling/createMessage", {"messages": [{"role": "user", "content": TEXT}] * 3},
         "user: 3 °C and rain (+2 messages)"),
        ("elicitation/create", {"message": "Who?", "requestedSchema": {"properties": {"name": {}}}}, "Who? (name)"),
        ("elicitation/create", {"message": "Who?", "requestedSchema": {"properties": dict.fromkeys("abcde")}},
         "Who? (a, b, c, d, …)"),
        ("elicitation/create", {"message": "Sure?", "requestedSchema": {"properties": {}}}, "Sure?"),
        ("elicitation/create", {"mode": "url", "message": "Log in", "url": "https://x.example"}, "Log in https://x.example"),
        ("roots/list", {}, ""),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a"]}}, 'resourceSubscriptions=["a"]'),
        ("tasks/get", {"taskId": "t1"}, 'taskId="t1"'),
        ("vendor/search", {"q": "x", "deep": {"a": 1}}, 'q="x" deep={"a":1}'),
        ("initialize", {"clientInfo": {"name": "cursor", "version": "1.0"}, "protocolVersion": "2024-11-05"},
         "cursor 1.0, 2024-11-05"),
        ("initialize", {}, ""),
    ],
)  # fmt: skip
def test_a_request_shows_what_it_asks_for(method, params, words):
    """R-14."""
    assert of_params(method, params) == words


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"content": [TEXT]}, "3 °C and rain"),
        ({"content": [PICTURE, TEXT, TEXT], "isError": True}, "3 °C and rain (+2 blocks)"),
        ({"content": [PICTURE]}, "image/png 12.0 kB"),
        ({"content": [{"type": "text", "text": ""}] * 3}, "(+2 blocks)"),
        ({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}] * 2}, "audio/wav 3 B (+1 block)"),
        ({"content": [{"type": "resource_link", "uri": "a://b", "name": "b"}]}, "a://b"),
        ({"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "hi"}}]}, "a://b hi"),
        ({"content": [{"type": "text", "text": '{"t": 3}'}], "structuredContent": {"t": 3, "u": "C"}}, 't=3 u="C"'),
        ({"content": [TEXT], "structuredContent": {"t": 3}}, "3 °C and rain"),
        ({"content": [], "structuredContent": {"t": 3}}, "t=3"),
        ({"contents": [{"uri": "a://b", "text": "one\ntwo"}, {"uri": "a://c", "text": ""}]}, "one two (+1 part)"),
        ({"contents": [{"uri": "a://b", "blob": "AAAA"}]}, "blob 3 B"),
        ({"messages": [{"role": "user", "content": TEXT}]}, "user: 3 °C and rain"),
        ({"tools": [{"name": "search"}, {"name": "fetch"}]}, "2 tools: search, fetch"),
        ({"tools": [{"name": "search"}], "nextCursor": "2"}, "1 tool (more follow): search"),
        ({"tools": []}, "no tools"),
        ({"resourceTemplates": [{"uriTemplate": "a://{x}"}, 5]}, "2 templates: a://{x}, 5"),
        ({"roots": [{"uri": "file:///p"}]}, "1 root: file:///p"),
        ({"completion": {"values": ["a", "b"], "total": 10, "hasMore": True}}, "2 values of 10 (more follow): a, b"),
        ({"completion": {"values": []}}, "no values"),
        ({"role": "assistant", "content": TEXT, "model": "m-1"}, "m-1: 3 °C and rain"),
        ({"action": "accept", "content": {"city": "Oslo"}}, 'accept city="Oslo"'),
        ({"action": "decline"}, "decline"),
        ({"task": {"taskId": "t1", "status": "working"}}, "task working (t1)"),
        ({"resultType": "input_required", "inputRequests": {"k": ASK}}, "asks elicitation/create: Which city?"),
        ({"inputRequests": {"k": ASK, "l": 1}}, "asks elicitation/create: Which city? (+1 more)"),
        ({"serverInfo": {"name": "weather", "version": "2"}, "protocolVersion": "2025-06-18"}, "weather 2, 2025-06-18"),
        ({"supportedVersions": ["2026-07-28", "x"]}, "2026-07-28, x"),
        ({"resultType": "complete", "_meta": {}}, ""),
        ({}, ""),
        ({"ok": True}, "ok=true"),
        ("a text", "a text"),
        ([1, 2], "[1,2]"),
        (None, "null"),
    ],
)  # fmt: skip
def test_a_result_shows_what_came_back(result, words):
    """R-14."""
    assert of_result(result) == words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"code": -32602, "message": "Unknown tool: foo"}, "-32602 Unknown tool: foo"),
        ({"code": -32602, "message": "no", "data": {"at": "/x"}}, '-32602 no at="/x"'),
        ({"code": "x", "message": ["a"]}, '"x" ["a"]'),
        ({}, ""),
        ("broken", '"broken"'),
        (None, "null"),
    ],
)
def test_an_error_shows_code_message_and_data(error, words):
    """R-14."""
    assert preview("error", "tools/call", {"id": 1, "error": error}) == words


def test_a_session_of_2026_07_28_shows_who_is_who():
    """R-14: in this revision, `_meta` names the sides."""
    who = {"name": "a", "version": "1"}
    request = {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": who}}}
    result = {"_meta": {"io.modelcontextprotocol/serverInfo": who}, "supportedVersions": ["2026-07-28"]}
    assert preview("request", "server/discover", request) == introduction(request) == "a 1"
    assert of_result(result, "server/discover") == "a 1, 2026-07-28"
    assert introduction({"result": result}) == "a 1"
    assert introduction(None) == introduction({"params": 5}) == ""


def deep(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


HUGE = {
    "text": "x" * 5_000_000,
    "array": [1] * 1_000_000,
    "object": {"a": ["b" * 1_000_000] * 9},
    "names": {"n" * 1_000_000: 1},
    "deep": deep(5000),
    "digits": 10**4000,
}


@pytest.mark.parametrize("value", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("method", ["tools/call", LOG, "vendor/x", "sampling/createMessage"])
def test_no_more_is_read_than_a_row_can_hold(value, method):
    """R-14: a message may have several megabytes, and its row is drawn many times."""
    shapes = [{"arguments": {"a": value}}, {"level": value, "data": value}, {"x": value}, {"messages": [value]}]
    results = [{"content": [{"type": "text", "text": value}]}, {"structuredContent": {"a": value}}, {"tools": [value]}]
    with proportionate(0.02 * 24):
        for _ in range(3):
            assert all(len(of_params(method, params)) <= LONGEST for params in [*shapes, value])
            assert all(len(of_result(result)) <= LONGEST for result in [*results, value])


def test_questions_in_questions_have_an_end():
    """Each input request is nested in the answer to another one."""
    value = {}
    for _ in range(2000):
        value = {"inputRequests": {"k": {"method": "tools/call", "params": {"inputResponses": {"k": value}}}}}
    assert of_result(value).startswith("asks tools/call: inputResponses=")
    assert len(of_params("tools/call", {"inputResponses": {"k": value}})) <= LONGEST


ANY = st.characters(exclude_categories=())
NAMES = st.sampled_from(
    """params result error arguments name uri content structuredContent contents messages tools resources roots tasks
    completion values total task taskId status model action inputRequests inputResponses method data level logger
    progress total message requestId reason notifications serverInfo clientInfo version protocolVersion _meta text
    type blob mimeType resource input code""".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(ANY, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(ANY, max_size=4), inner, max_size=4),
    max_leaves=20,
)
METHODS = st.sampled_from(
    """tools/call prompts/get resources/read completion/complete logging/setLevel sampling/createMessage
    elicitation/create subscriptions/listen initialize server/discover x notifications/message notifications/progress
    notifications/cancelled notifications/tasks/status""".split()
)


@given(st.sampled_from(["request", "notification", "result", "error"]), METHODS | st.none(), JSON, JSON)
def test_whatever_a_peer_sends_has_a_preview(kind, method, inner, value):
    """R-14."""
    member = {"result": "result", "error": "error"}.get(kind, "params")
    for message in (value, {member: inner}, {member: value if isinstance(value, dict) else {"content": value}}):
        assert len(preview(kind, method, message)) <= LONGEST
        introduction(message)


@given(JSON)
def test_lone_surrogates_and_floats_of_no_value_come_through(value):
    text = of_result({"structuredContent": {"\ud800": value, "n": float("nan")}})
    assert isinstance(text, str)


def test_a_message_that_is_not_decoded_shows_how_it_begins():
    """R-14."""
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"a": "x" * 100_000}}}).encode()
    assert preview_of_large(raw[:4096]).startswith('{"a": "xxx')
    call = {
        "jsonrpc": "2.0",
        "method": "tools/call",
        "params": {"name": "f", "arguments": {"path": "a", "b": "x" * 9999}},
    }
    assert preview_of_large(json.dumps(call).encode()).startswith('{"path": "a", "b": "xxx')
    assert len(preview_of_large(raw)) == LONGEST
    assert preview_of_large(b"\xff" * 10) == "\ufffd" * 10
    row = Row(1, 0, "result", "server", method="tools/call", size=sys.maxsize, raw=raw[:4096])
    assert row.preview == preview_of_large(raw)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("cut", range(3990, 4000))
def test_a_large_text_is_shown_as_such(ascii_only, cut):
    """R-14: the text of a result; it may be cut inside a character or an escape."""
    value = {"result": {"content": [{"type": "text", "text": 'one "ů"\n' * 10_000}], "isError": False}}
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert preview_of_large(raw[:cut]) == preview("result", "tools/call", value)
    assert preview_of_large(raw[: cut - 3900])  # any shorter beginning


def test_rows_have_it_once_the_exchange_is_known():
    """R-14."""
    text = """
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"}}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}
        < {"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"s","version":"2"}}}
        < | no message
    """
    rows = final_rows(lambda: records(text), live=False)
    assert [row.preview for row in rows] == ["c 1", "info: hello", "s 2", ""]
