"""What rows show of messages beside their methods; what a screen makes of it is tested with its rows."""

import pytest

from mcpspy.conversation.content import content, has_content
from mcpspy.timeline import final_rows
from tests.transcript import records

LOG, PROGRESS = "notifications/message", "notifications/progress"


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        (LOG, {"level": "info", "data": "disk almost full"}, "log info: disk almost full"),
        (LOG, {"level": "error", "logger": "db", "data": "lost"}, "log error: [db] lost"),
        (LOG, {"level": "info", "data": {"at": [1, 2.5], "ü": None}}, 'log info: {"at":[1,2.5],"ü":null}'),
        (LOG, {"level": "info", "data": 2**70}, f"log info: {2**70}"),
        (LOG, {"level": "info", "data": ""}, "log info: "),
        (LOG, {"level": 5, "data": False}, "log 5: false"),
        (LOG, {"data": "x"}, "log: x"),
        (PROGRESS, {"progressToken": 1, "progress": 2, "total": 3}, "2/3"),
        (PROGRESS, {"progressToken": 1, "progress": 2, "total": 3, "message": "reading"}, "2/3: reading"),
        (PROGRESS, {"progressToken": 1, "progress": 0.5}, "0.5"),
        (PROGRESS, {"progressToken": 1, "progress": 7, "message": "row 7"}, "7: row 7"),
        (PROGRESS, {"progressToken": 1, "progress": 2.0, "total": 3.0}, "2/3"),
        (PROGRESS, {"progressToken": 1}, None),
        (PROGRESS, [], None),
        ("notifications/initialized", {}, None),
    ],
)
def test_a_notification_shows_what_it_says(method, params, words):
    """R-14."""
    assert content("notification", method, {"method": method, "params": params}) == words


@pytest.mark.parametrize(
    ("kind", "method", "value", "words"),
    [
        ("request", "initialize", {"params": {"clientInfo": {"name": "cursor", "version": "1.0"}}}, "cursor 1.0"),
        ("result", "initialize", {"result": {"serverInfo": {"name": "weather", "version": "2"}}}, "weather 2"),
        ("result", "initialize", {"result": {"serverInfo": {"name": "weather"}}}, "weather"),
        ("result", "initialize", {"result": {}}, None),
        ("result", "initialize", {"result": 5}, None),
        ("result", "initialize", None, None),
        ("error", "initialize", {"error": {}}, None),
        ("request", "tools/call", {"params": {"clientInfo": {"name": "cursor"}}}, None),
    ],
)
def test_an_introduction_shows_who_it_is(kind, method, value, words):
    """R-14."""
    assert content(kind, method, value) == words
    assert words is None or has_content(kind, method)


def test_a_session_of_2026_07_28_shows_who_is_who():
    """R-14: there `_meta` tells it."""
    who = {"name": "a", "version": "1"}
    request = {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": who}}}
    result = {"result": {"_meta": {"io.modelcontextprotocol/serverInfo": who}}}
    assert content("request", "server/discover", request) == "a 1"
    assert content("result", "server/discover", result) == "a 1"


def deep(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "data",
    ["x" * 5_000_000, [1] * 1_000_000, {"a": ["b" * 1_000_000] * 9}, deep(5000)],
    ids="text array object deep".split(),
)
def test_no_more_is_written_than_a_row_can_hold(data):
    """R-14: a log message may have megabytes, and its row is drawn again and again."""
    assert len(content("notification", LOG, {"params": {"level": "info", "data": data}})) < 700


def test_rows_have_it_once_the_exchange_is_known():
    """R-14."""
    text = """
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"}}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}
        < {"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"s","version":"2"}}}
    """
    assert [row.content for row in final_rows(lambda: records(text), live=False)] == ["c 1", "log info: hello", "s 2"]
