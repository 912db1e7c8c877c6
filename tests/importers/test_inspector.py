import json

from tests.importers.files import PING, PONG, START, brought, imported, told

LATER = "2026-03-17T10:00:02.000Z"
REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "Zürich"}}


def message(**fields):
    return {"id": "a1", "timestamp": START, "direction": "request", "origin": "client", "message": REQUEST} | fields


def fetch(**fields):
    request = {"id": "f1", "timestamp": START, "method": "POST", "url": "http://localhost:3000/mcp"}
    headers = {
        "requestHeaders": {"authorization": "Bearer s3cr3t"},
        "responseHeaders": {"content-type": "application/json"},
    }
    answer = {"responseStatus": 200, "responseStatusText": "OK", "responseBody": PONG.decode(), "duration": 12}
    return request | headers | answer | {"requestBody": PING.decode(), "category": "transport"} | fields


def test_a_history_is_what_was_said_in_order(tmp_path):
    entries = [
        message(response=ANSWER, duration=3000),
        message(timestamp=LATER, direction="notification", origin="server", message=NOTE),
        message(timestamp=LATER, direction="response", message=ANSWER, origin=None),
    ]
    account, [capture] = brought(tmp_path, json.dumps(entries, indent=2).encode(), "inspector-history-alpha.json")
    assert told(capture) == [
        f"0 client stdin {PING.decode()}",
        '2000 server stdout {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"Zürich"}}',
        f"2000 server stdout {PONG.decode()}",
        f"3000 server stdout {PONG.decode()}",
    ]
    assert (account.read, account.lost) == (3, 0)
    assert capture.header.name == "inspector-history-alpha"
    assert imported(capture)["missing"] == ["heads", "stderr"]


def test_numbers_stay_what_they_were(tmp_path):
    """F-05."""
    raw = json.dumps([message(message=REQUEST | {"id": 2**70, "params": {"x": 1.0}})]).encode()
    _, [capture] = brought(tmp_path, raw)
    assert told(capture) == [f'0 client stdin {{"jsonrpc":"2.0","id":{2**70},"method":"ping","params":{{"x":1.0}}}}']


def test_a_network_log_is_exchanges_without_their_secrets(tmp_path):
    page = fetch(url="http://localhost:3000/", requestBody=None, responseBody="<html>")
    account, [capture] = brought(tmp_path, json.dumps([fetch(), page]).encode())
    assert told(capture) == [
        "0 client request: POST /mcp",
        f"0 client request {PING.decode()}",
        "12 server response: 200",
        f"12 server response {PONG.decode()}",
    ]
    assert account.read == 2
    with open(capture.path, encoding="utf-8") as file:
        assert "s3cr3t" not in file.read()


def test_a_stream_has_no_body_in_a_network_log(tmp_path):
    entry = fetch(responseHeaders={"content-type": "text/event-stream"})
    del entry["responseBody"]
    _, [capture] = brought(tmp_path, json.dumps([entry]).encode())
    assert told(capture)[-1] == "12 gap 1 the file does not hold the body of the response of channel 2"


def test_a_request_that_failed_says_why(tmp_path):
    entry = fetch(responseStatus=None, error="fetch failed")
    _, [capture] = brought(tmp_path, json.dumps([entry]).encode())
    why = "the file does not hold an answer to the request of channel 1: fetch failed"
    assert told(capture)[-1] == f"12 gap 1 {why}"


def test_a_damaged_entry_loses_itself_alone(tmp_path):
    faults = [{"timestamp": "?"}, {"message": "ping"}, {"response": 7}, {"origin": "nobody"}, {"duration": "x"}]
    for broken in ({}, *(message(**fault) for fault in faults)):
        account, [capture] = brought(tmp_path, json.dumps([message(), broken, message()]).encode())
        assert (account.read, account.lost) == (3, 1)
        assert len(told(capture)) == 2


def test_nesting_without_end_loses_one_entry(tmp_path):
    for depth in (900, 985, 990, 995, 100_000):
        deep = json.dumps(message(message={"x": 0})).replace('{"x": 0}', '{"x":' + "[" * depth + "]" * depth + "}")
        account, [capture] = brought(tmp_path, f"[{deep},{json.dumps(message())}]".encode())
        assert account.lost + len(told(capture)) == 2
    assert account.lost == 1
