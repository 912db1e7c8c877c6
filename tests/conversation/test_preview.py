"""The preview of a message in its row; `tests/timelines/` has the previews of all golden captures."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.conversation.preview import LONGEST, introduction, preview, preview_of_large
from mcpspy.timeline import Row, final_rows
from tests.cases import pairs
from tests.each import each
from tests.limits import proportionate
from tests.transcript import records

PREVIEWS = Path(__file__).parent / "previews"
LOG, PROGRESS = "notifications/message", "notifications/progress"
TEXT = {"type": "text", "text": "3 °C\n  and rain"}
PICTURE = {"type": "image", "data": "A" * 16000, "mimeType": "image/png"}
ASK = {"method": "elicitation/create", "params": {"message": "Which city?"}}


def of_params(method, params, kind="request"):
    return preview(kind, method, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def of_result(result, method="tools/call"):
    return preview("result", method, {"jsonrpc": "2.0", "id": 1, "result": result})


@each("text, words", pairs(PREVIEWS / "notifications.txt"))
def test_a_notification_shows_what_it_tells(text, words):
    """R-14."""
    method, _, params = text.partition(" ")
    assert (of_params(method, json.loads(params), "notification") or "-") == words


@each("text, words", pairs(PREVIEWS / "requests.txt"))
def test_a_request_shows_what_it_asks_for(text, words):
    """R-14."""
    method, _, params = text.partition(" ")
    assert (of_params(method, json.loads(params), "request") or "-") == words


@each("text, words", pairs(PREVIEWS / "results.txt"))
def test_a_result_shows_what_came_back(text, words):
    """R-14."""
    assert (of_result(json.loads(text)) or "-") == words


def test_pictures_show_their_size_and_an_empty_log_message_its_level():
    """R-14."""
    assert of_result({"content": [PICTURE, TEXT, TEXT], "isError": True}) == "3 °C and rain (+2 blocks)"
    assert of_result({"content": [PICTURE]}) == "image/png 12.0 kB"
    assert of_params(LOG, {"level": "info", "data": ""}, "notification") == "info: "


@each("text, words", pairs(PREVIEWS / "errors.txt"))
def test_an_error_shows_code_message_and_data(text, words):
    """R-14."""
    assert (preview("error", "tools/call", {"id": 1, "error": json.loads(text)}) or "-") == words


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
