import json
import pathlib
from collections import Counter

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.errors import UsageError
from mcpspy.exporters import export
from mcpspy.exporters.source import ExportSource
from mcpspy.recording.copy import record_line
from mcpspy.timeline import final_rows
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
