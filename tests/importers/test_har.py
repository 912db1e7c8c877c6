import base64
import json

import pytest

from tests.importers.files import AT, PING, PONG, START, brought, entry, fixture, har, imported, told

EVENTS = b'event: message\ndata: {"jsonrpc":"2.0","method":"a"}\n\nid: 4\ndata: {"jsonrpc":"2.0","method":"b"}\n\n'
STREAM = {"size": len(EVENTS), "mimeType": "text/event-stream"}
TYPED = [{"name": "Content-Type", "value": "text/event-stream"}]


def test_an_archive_of_mitmproxy_is_a_capture(tmp_path):
    """I-02."""
    account, [capture] = brought(tmp_path, fixture("weather.har"))
    assert (account.read, account.lost, account.fault) == (6, 0, "")
    assert capture.header.url == "http://127.0.0.1:18731"
    lines = [line.partition(" ")[2] for line in told(capture)]
    assert any(line.startswith('server response {"jsonrpc": "2.0", "id": 1, "result": {"tools"') for line in lines)
    assert len([line for line in lines if line.startswith("server response event: message")]) == 2
    assert not any("/about" in line or "gap" in line for line in lines)
    assert any("Sunny in Zürich" in line for line in lines), "which mitmproxy had read as ISO 8859-1"
    with open(capture.path, "rb") as file:
        assert b"made-up-credential" not in file.read()


def test_an_entry_is_a_request_and_a_response_at_their_times(tmp_path):
    _, [capture] = brought(tmp_path, har(entry(PING), entry(PONG, b"", "2026-03-17T11:00:01.5+01:00", status=202)))
    assert told(capture) == [
        "0 client request: POST /mcp?page=2",
        f"0 client request {PING.decode()}",
        "15 server response: 200",
        f"20 server response {PONG.decode()}",
        "1500 client request: POST /mcp?page=2",
        f"1500 client request {PONG.decode()}",
        "1515 server response: 202",
    ]
    assert capture.header.started == "2026-03-17T10:00:00.000000Z"


def test_the_last_event_of_a_stream_came_at_its_end_and_the_others_before_which_is_said(tmp_path):
    """I-02."""
    content = STREAM | {"text": base64.b64encode(EVENTS).decode(), "encoding": "base64"}
    _, [capture] = brought(tmp_path, har(entry(content=content, headers=TYPED)))
    assert [line for line in told(capture) if "data:" in line] == [
        '15 server response event: message\ndata: {"jsonrpc":"2.0","method":"a"}\n',
        '20 server response id: 4\ndata: {"jsonrpc":"2.0","method":"b"}\n',
    ]
    assert imported(capture) == {"from": "a HAR", "approximate": ["times of events", "bytes"], "missing": []}


def test_events_that_chrome_noted_bear_their_own_times(tmp_path):
    noted = [
        {"time": AT + 0.25, "eventName": "message", "eventId": "", "data": PONG.decode()},
        {"time": AT + 0.5, "eventName": "ping", "eventId": "4", "data": "a\nb"},
    ]
    shape = entry(content=STREAM, headers=TYPED, time=900.0, _eventSourceMessages=noted)
    _, [capture] = brought(tmp_path, har(shape))
    assert told(capture)[3:] == [
        f"250 server response data: {PONG.decode()}\n",
        "500 server response event: ping\nid: 4\ndata: a\ndata: b\n",
    ]


def test_events_of_a_stream_that_is_there_as_a_whole_have_the_times_that_were_noted_of_them(tmp_path):
    raw = f": hello\n\ndata: {PONG.decode()}\n\n: still here\n\nid: 4\ndata: a\n\n"
    noted = [{"time": AT + 0.25, "data": PONG.decode()}, {"time": AT + 0.5, "data": "a"}]
    shape = entry(content=STREAM | {"text": raw, "size": len(raw)}, headers=TYPED, time=900.0)
    _, [capture] = brought(tmp_path, har(shape | {"_eventSourceMessages": noted}))
    assert [line.partition(" ")[0] for line in told(capture)[3:]] == ["250", "250", "250", "500"]
    other = tmp_path / "other"
    _, [capture] = brought(other, har(shape | {"_eventSourceMessages": noted[:1]}))
    assert [line.partition(" ")[0] for line in told(capture)[3:]] == ["15", "15", "15", "900"], "as without them"


@pytest.mark.parametrize("content", [STREAM, STREAM | {"size": 0}, STREAM | {"text": ""}, {"size": 7}])
def test_a_body_that_is_not_there_is_a_gap(tmp_path, content):
    """I-02: missing text."""
    _, [capture] = brought(tmp_path, har(entry(content=content)))
    assert told(capture)[-1] == "20 gap 1 the file does not hold the body of the response of channel 2"


@pytest.mark.parametrize("content", [{"size": 0, "mimeType": "x-unknown"}, {"size": -1, "text": ""}, {}])
def test_an_empty_body_is_none(tmp_path, content):
    _, [capture] = brought(tmp_path, har(entry(content=content, status=202)))
    assert told(capture)[-1] == "15 server response: 202"


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [
        ('{"jsonrpc":"2.0","x":"Ã¼"}', 26, '{"jsonrpc":"2.0","x":"ü"}'),
        ('{"jsonrpc":"2.0","x":"Ã¼"}', 28, '{"jsonrpc":"2.0","x":"Ã¼"}'),
        ('{"jsonrpc":"2.0","x":"ü"}', 7, '{"jsonrpc":"2.0","x":"ü"}'),
        ('{"jsonrpc":"2.0","x":"€"}', None, '{"jsonrpc":"2.0","x":"€"}'),
    ],
)
def test_text_that_was_misread_is_put_right_where_its_size_proves_it(tmp_path, text, size, found):
    _, [capture] = brought(tmp_path, har(entry(content={"text": text, "size": size})))
    assert told(capture)[-1] == f"20 server response {found}"


def test_a_response_that_was_pending_is_a_gap(tmp_path):
    """I-02: status 0."""
    shape = entry(status=0)
    shape["response"]["_error"] = "net::ERR_ABORTED"
    _, [capture] = brought(tmp_path, har(shape))
    why = "the file does not hold an answer to the request of channel 1: net::ERR_ABORTED"
    assert told(capture)[-1] == f"20 gap 1 {why}"


def test_content_codings_are_undone_already_and_pseudo_headers_are_none(tmp_path):
    headers = [{"name": "content-encoding", "value": "br"}, {"name": ":status", "value": "200"}]
    _, [capture] = brought(tmp_path, har(entry(headers=headers)))
    [response] = [record for record in capture.records() if getattr(record, "role", "") == "response"]
    assert response.head["headers"] == [["content-encoding", "br"]]
    assert told(capture)[-1] == f"20 server response {PONG.decode()}"
    assert not any(getattr(record, "undecoded", False) for record in capture.records())


def test_messages_of_a_websocket_have_their_directions_and_times(tmp_path):
    said = [
        {"type": "send", "time": AT + 1, "opcode": 1, "data": PING.decode()},
        {"type": "receive", "time": AT + 1.5, "opcode": 1, "data": PONG.decode()},
        {"type": "receive", "time": 0, "opcode": 2, "data": "eHk="},
    ]
    shape = entry(b"", b"", status=101, _webSocketMessages=said)
    shape["request"] |= {"method": "GET", "url": "wss://mcp.example.com/ws"}
    del shape["request"]["postData"]
    _, [capture] = brought(tmp_path, har(shape))
    assert capture.header.url == "https://mcp.example.com"
    lines = told(capture)
    assert lines[:2] == ["0 client request: GET /ws", "15 server response: 101"]
    assert [line.partition(" ")[2] for line in lines[2:]] == [
        f"client ws {PING.decode()}",
        f"server ws {PONG.decode()}",
        "server ws binary xy",
    ]


@pytest.mark.parametrize(
    "before",
    [
        '"comment":"","version":"1.2","creator":{}',
        '"entriesCount":2,"version":"1.1"',
        '"creator":{"name":"Charles Proxy","entries":[{"no":1}]}',
    ],
)
def test_the_entries_may_stand_behind_anything_and_the_file_begin_with_a_mark(tmp_path, before):
    """I-02: BOM."""
    raw = b"\xef\xbb\xbf" + json.dumps(json.loads(har(entry(), before=before)), indent=2).encode()
    account, captures = brought(tmp_path, raw)
    assert (account.read, account.lost, account.fault, len(captures)) == (1, 0, "", 1)


def test_a_torn_archive_gives_all_entries_that_are_whole(tmp_path):
    raw = har(entry(), entry(), entry())
    account, [capture] = brought(tmp_path, raw[:-200])
    assert len(told(capture)) == 8
    assert account.fault == "it ends inside an entry"


DAMAGED = [
    {},
    {"request": {}},
    entry(start="yesterday"),
    entry(start="1969-01-01T00:00:00Z"),
    entry(time="long"),
    entry(content={"text": "€", "encoding": "base64"}),
    entry(headers=[{"name": "x"}]),
    entry(headers=7),
    entry(_webSocketMessages=[{}]),
    entry() | {"request": {"method": "GET", "url": "mcp://label/tools"}},
    entry() | {"request": {"method": "GET", "url": "http://[bad"}},
    entry() | {"startedDateTime": None},
]


@pytest.mark.parametrize("damaged", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_entry_loses_itself_alone(tmp_path, damaged):
    account, [capture] = brought(tmp_path, har(entry(), damaged, entry()))
    assert (account.read, account.lost) == (3, 1)
    assert len(told(capture)) == 8


def test_nesting_without_end_loses_one_entry(tmp_path):
    deep = b'{"request":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    raw = har(entry(), {"deep": 1}, entry()).replace(b'{"deep": 1}', deep)
    account, [capture] = brought(tmp_path, raw)
    assert (account.read, account.lost) == (3, 1)
    assert len(told(capture)) == 8


def test_a_password_in_a_url_and_a_secret_in_a_query_are_not_written(tmp_path):
    shape = entry()
    shape["request"]["url"] = "https://me:pa55@mcp.example.com/mcp?access_token=s3cr3t"
    _, [capture] = brought(tmp_path, har(shape))
    with open(capture.path, encoding="utf-8") as file:
        raw = file.read()
    assert "pa55" not in raw
    assert "s3cr3t" not in raw
    assert "access_token=«redacted:" in raw


def test_the_body_of_an_oauth_endpoint_has_its_secrets_replaced(tmp_path):
    shape = entry(b"grant_type=x&code=s3cr3t", b'{"access_token":"s3cr3t"}')
    shape["request"] |= {"url": "https://mcp.example.com/token"}
    shape["request"]["headers"] = [{"name": "MCP-Protocol-Version", "value": "2025-06-18"}]
    _, [capture] = brought(tmp_path, har(shape))
    with open(capture.path, encoding="utf-8") as file:
        raw = file.read()
    assert "s3cr3t" not in raw
    assert raw.count("«redacted:") == 2


def test_entries_that_overlap_are_put_in_the_order_of_time(tmp_path):
    """A stream stays open during other requests; browsers sort entries by their start, other programs by their end."""
    stream = entry(EVENTS, EVENTS, START, time=60_000.0, wait=10.0)
    later = entry(start="2026-03-17T10:00:30.000Z")
    for order in ([stream, later], [later, stream]):
        _, [capture] = brought(tmp_path, har(*order))
        times = [int(line.partition(" ")[0]) for line in told(capture)]
        assert times == sorted(times)
        assert times == [0, 0, 10, 30000, 30000, 30015, 30020, 60000]
