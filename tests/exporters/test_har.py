"""HAR: archives that validators and mitmproxy read, their entries and bodies."""

import base64
import json
import pathlib
from collections import Counter
from contextlib import closing

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Frame, Header, Omitted, Open
from mcpspy.errors import UsageError
from mcpspy.exporters import export
from mcpspy.exporters.har import ArchivedBody, ArchivedExchange
from mcpspy.exporters.source import ExportSource
from mcpspy.recording.copy import record_line
from mcpspy.timeline import final_rows
from tests.each import each
from tests.exporters.consumers import exported, golden, har_validator, mitmproxy
from tests.importers.files import AT, PING, PONG, brought, entry, har
from tests.transcript import capture

WEB = [path for path in golden() if Capture(path).header.transport == "http"]


def archive(path, wants=None):
    return json.loads(exported("har", path, wants=wants))["log"]


def messages(path):
    """Count the messages of a capture by sender, kind, id, status and value."""
    rows = [row for row in final_rows(Capture(path).records, live=False) if row.value is not None]
    return Counter((row.sender, row.kind, str(row.id), row.status, json.dumps(row.value)) for row in rows)


@pytest.mark.needs(".peers/mitm", ".peers/node")
def test_a_validator_and_mitmproxy_accept_the_archive_of_every_golden_capture_and_refuse_broken_ones(tmp_path):
    assert len(WEB) > 3
    paths = []
    for place, path in enumerate(WEB):
        paths.append(tmp_path / f"{place}.har")
        paths[-1].write_bytes(exported("har", path))
    broken = json.loads(paths[0].read_bytes())
    del broken["log"]["entries"][0]["response"]["status"]
    (tmp_path / "broken.har").write_text(json.dumps(broken))
    *outcomes, refusal = har_validator(*paths, tmp_path / "broken.har")
    assert outcomes == ["ok"] * len(WEB)
    assert "status" in json.dumps(refusal)
    for path, flows in zip(paths, mitmproxy(*paths), strict=True):
        entries = json.loads(path.read_bytes())["log"]["entries"]
        expected = [
            [
                it["request"]["method"], it["request"]["url"], it["response"]["status"],
                len(it["request"].get("postData", {}).get("text", "").encode()), it["response"]["content"]["size"],
            ]
            for it in entries
        ]  # fmt: skip
        assert flows == expected
        assert any(size for *_, size in flows)


@pytest.mark.parametrize("path", WEB, ids=lambda path: path.rpartition("/")[2])
def test_an_archive_that_is_imported_has_the_same_messages(tmp_path, path):
    account, made = brought(tmp_path, exported("har", path))
    assert (account.lost, account.fault, len(made)) == (0, "", 1)
    assert messages(made[0].path) == messages(path)


def test_entries_stand_in_the_order_of_their_starts_with_pages_for_sessions():
    [path] = [path for path in WEB if path.endswith("http-everything-2025-11-25.jsonl")]
    log = archive(path)
    starts = [it["startedDateTime"] for it in log["entries"]]
    assert starts == sorted(starts)
    assert {it["pageref"] for it in log["entries"]} == {page["id"] for page in log["pages"]}
    assert (log["creator"]["name"], log["browser"]["name"]) == ("mcpspy", "node-client")
    kinds = Counter(it["_resourceType"] for it in log["entries"])
    assert set(kinds) == {"fetch", "eventsource"}
    for it in log["entries"]:
        assert it["time"] == pytest.approx(sum(it["timings"][name] for name in ("send", "wait", "receive")))


def test_a_websocket_is_an_exchange_with_messages_as_chrome_writes_them(tmp_path):
    socket = [
        {"type": "send", "time": AT + 0.1, "opcode": 1, "data": PING.decode()},
        {"type": "receive", "time": AT + 0.25, "opcode": 1, "data": PONG.decode()},
        {"type": "receive", "time": AT + 0.5, "opcode": 2, "data": "/w=="},
    ]
    shape = entry(b"", b"", status=101, _webSocketMessages=socket, content={"size": 0, "mimeType": "x-unknown"})
    _, [made] = brought(tmp_path, har(shape))
    [found] = archive(made.path)["entries"]
    assert found["_webSocketMessages"] == socket
    assert (found["_resourceType"], found["response"]["status"], found["time"]) == ("websocket", 101, 500.0)


def test_a_filter_leaves_the_exchanges_that_hold_a_wanted_row():
    whole = archive(WEB[0])["entries"]
    calls = archive(WEB[0], wants=lambda row: row.method == "tools/call")["entries"]
    assert 0 < len(calls) < len(whole)
    assert all('"tools/call"' in it["request"].get("postData", {}).get("text", "") or "text" in
               it["response"]["content"] for it in calls)  # fmt: skip


def test_a_capture_of_stdio_is_refused_with_the_formats_that_can_hold_it(tmp_path):
    path = capture(str(tmp_path / "made.jsonl"), "> 1 ping")
    with pytest.raises(UsageError) as caught:
        export("har", [ExportSource(Capture(path))])
    assert str(caught.value) == (
        f"{path} is a stdio session, and har holds HTTP only; use mermaid, perfetto, csv, otlp"
    )  # fmt: skip


def test_an_answer_that_is_missing_has_status_0_and_why(tmp_path):
    shape = entry(PING)
    shape["response"]["status"] = 0
    _, [made] = brought(tmp_path, har(shape))
    [found] = archive(made.path)["entries"]
    assert (found["response"]["status"], found["response"]["content"]["size"]) == (0, 0)
    assert "the capture has no response" in found["comment"]
    assert archive(made.path)["comment"] == "1 records of the capture are missing"


def test_a_capture_that_breaks_off_is_exported_as_far_as_it_goes(tmp_path):
    content = pathlib.Path(WEB[0]).read_bytes()
    path = tmp_path / "cut.jsonl"
    path.write_bytes(content[: len(content) * 3 // 4])
    log = archive(str(path))
    assert len(log["entries"]) > 3
    assert any("the capture ends before this exchange does" in it.get("comment", "") for it in log["entries"])


def test_a_number_of_a_channel_that_is_taken_twice_ends_the_first_exchange(tmp_path):
    head = {"method": "POST", "target": "/mcp", "version": "HTTP/1.1", "headers": []}
    opened = {"kind": "open", "ch": 1, "t": 1, "from": "client", "role": "request", "framing": "body", "head": head}
    header = {"mcpspy": 1, "id": "1", "started": "2026-11-20T19:15:00.000000Z", "tool": "t", "transport": "http"}
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b"".join(map(record_line, [header | {"name": "w", "url": "http://h/"}, opened, opened | {"t": 2}]))
    )
    entries = json.loads(exported("har", path))["log"]["entries"]
    assert len(entries) == 2
    assert "took the number of its channel" in entries[0]["comment"]


HEADER = Header("0" * 32, "2026-03-17T10:00:00.000000Z", "mcpspy 0.1.0", "http", "weather", url="http://example.test")
HEAD = {"method": "POST", "target": "/mcp?page=2&x", "version": "1.1", "headers": [["Host", "a"], ["X", "\ud800"]]}
MS = 1_000_000


def request(head=HEAD, **fields):
    return Open(2, 1, 0, "client", "request", "body", head=head, **fields)


def response(framing="body", status=200, sender="server", headers=(("content-type", "application/json"),)):
    head = {"status": status, "reason": "OK", "headers": [list(it) for it in headers]}
    return Open(4, 2, 15 * MS, sender, "response", framing, answers=1, head=head)


def archived(exchange):
    found = json.loads(b"".join(exchange.json(HEADER, "page_1")))
    exchange.close()
    return found


def exchange(opened=None, answered=None, posted=b"{}", content=b"{}", how="eof"):
    opened, answered = opened or request(), answered or response()
    found = ArchivedExchange(opened, [1, 2], asked=5 * MS, response=answered)
    found.add(Frame(3, 1, 4 * MS, posted), opened, HEADER)
    found.add(Frame(5, 2, 20 * MS, content), answered, HEADER)
    found.end = Close(6, 2, 20 * MS, how)
    return found


def test_heads_bodies_and_times_stand_where_browsers_put_them():
    found = archived(exchange())
    assert found["startedDateTime"] == "2026-03-17T10:00:00.000000Z"
    assert found["time"] == 20
    assert {name: found["timings"][name] for name in ("send", "wait", "receive")} == {
        "send": 5, "wait": 10, "receive": 5,
    }  # fmt: skip
    asked = found["request"]
    assert (asked["url"], asked["httpVersion"]) == ("http://example.test/mcp?page=2&x", "HTTP/1.1")
    assert asked["queryString"] == [{"name": "page", "value": "2"}, {"name": "x", "value": ""}]
    assert asked["headers"] == [{"name": "Host", "value": "a"}, {"name": "X", "value": "\ud800"}]
    assert asked["postData"] == {"mimeType": "x-unknown", "text": "{}"}
    assert found["response"]["content"] == {"size": 2, "mimeType": "application/json", "text": "{}"}
    assert "comment" not in found


def test_bodies_that_are_no_text_are_base64():
    found = archived(exchange(posted=b"\xff", content=b"\xfe"))
    assert found["request"]["postData"]["encoding"] == found["response"]["content"]["encoding"] == "base64"
    assert base64.b64decode(found["response"]["content"]["text"]) == b"\xfe"


def test_an_event_has_the_blank_line_that_ended_it():
    found = archived(exchange(answered=response("sse"), content=b"data: {}\n"))
    assert found["response"]["content"]["text"] == "data: {}\n\n"


@each("how, error", [("eof", None), ("abort", "the client left"), ("reset", "the server broke off")])
def test_how_a_response_ended_is_an_error_as_in_chrome(how, error):
    assert archived(exchange(how=how))["response"].get("_error") == error


@each(
    "changed, words",
    [
        ({"content": "«redacted:0f3c9a12»".encode()}, "mcpspy replaced secrets when it recorded this"),
        ({"content": "«withheld: 1234 bytes»".encode()}, "mcpspy replaced secrets when it recorded this"),
        (
            {"opened": request(HEAD | {"headers": [["authorization", "Bearer «redacted:0f3c9a12»"]]})},
            "mcpspy replaced secrets in the heads",
        ),
        ({"opened": request(sent={"target": "/x"}, by="route")}, "the request was forwarded with other headers"),
        ({"answered": response(sender="mcpspy", status=502)}, "mcpspy sent this response, not the server"),
    ],
)
def test_a_comment_says_what_an_archive_cannot_hold(changed, words):
    assert words in archived(exchange(**changed))["comment"]


def test_what_a_gate_did_is_a_comment():
    found = exchange()
    found.add(Frame(7, 2, 20 * MS, b"x", sent=b"y", by="gate slow"), found.response, HEADER)
    assert "#7 was changed, dropped or replaced by gate slow" in archived(found)["comment"]


def test_a_redirect_has_its_target():
    moved = response(status=307, headers=(("Location", "/elsewhere"),))
    found = archived(exchange(answered=moved))["response"]
    assert (found["redirectURL"], found["status"]) == ("/elsewhere", 307)


def test_a_frame_that_is_too_large_to_be_joined_is_left_out_and_counted():
    found = exchange(content=b"")
    found.add(Frame(7, 2, 20 * MS, b"begin", omitted=Omitted(99_000_000, b"end")), found.response, HEADER)
    content = archived(found)["response"]["content"]
    assert content == {"size": 99_000_000, "mimeType": "application/json"}


@each("text", ["", "{}", 'ü"\\\n\0\u2028🦊', "é🦊" * 100_000])
def test_text_is_a_json_string_however_long_it_is(text):
    with closing(ArchivedBody()) as body:
        for start in range(0, len(text), 777):
            body.add(text[start : start + 777].encode())
        assert json.loads(b"".join(body.json())) == text
        assert (body.size, body.is_text) == (len(text.encode()), True)


@each("raw", [b"\xff", b"\x80ab" * 50_001, b"text" * 50_000 + b"\xc3"])
def test_bytes_that_are_no_text_are_base64(raw):
    with closing(ArchivedBody()) as body:
        body.add(raw[:100])
        body.add(raw[100:])
        assert not body.is_text
        assert base64.b64decode(json.loads(b"".join(body.json()))) == raw


def test_it_can_be_read_as_it_came():
    with closing(ArchivedBody()) as body:
        body.add(b"a" * 100_000)
        assert sum(map(len, body.raw())) == 100_000
