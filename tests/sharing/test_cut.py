"""A small capture made of a large one: it is judged as the original was, and it can be played."""

import json

import pytest

from mcpspy.capture.format import LEFT_OUT_BY_CUT
from mcpspy.capture.reader import Capture
from mcpspy.filters import parse
from mcpspy.recording.copy import write_copy
from mcpspy.replay.script import load
from mcpspy.sharing.cut import cut_lines, cut_rows
from mcpspy.timeline import final_rows
from tests.capture.test_parts import written as in_files
from tests.sharing.scrub.captures import frame, header, opened, written
from tests.timelines import GOLDEN
from tests.transcript import capture

FILTERS = (
    "method:tools/call", "name:add", "method:resources/read", "status:error", "method:sampling/createMessage",
    "method:notifications/progress", "kind:notification from:server", "id:3,4", "kind:http from:server",
)  # fmt: skip
NOT_BEFORE = {"schema/deprecated"}
"""Rules with one finding per session, at its first frame, which may be another one in a part of the session."""


def cut(path, tmp_path, wanted, first=0, last=1 << 30):
    """Cut a capture; return the new one, or None if no row matches."""
    source = Capture(str(path))
    matches = parse(wanted, source.header.started)
    rows = cut_rows(source.records, lambda row: first <= row.n <= last and matches(row), live=False)
    if not rows:
        return None
    new = str(tmp_path / "cut.jsonl")
    write_copy(cut_lines(source, rows, {"filter": wanted}, lambda _: None), new, replace=True)
    return Capture(new)


def rows_of(found):
    return list(final_rows(found.records, live=False))


def names(found):
    """Return method and name of the messages of a capture, in order."""
    kinds = ("request", "result", "error", "notification")
    return [f"{row.method} {row.name or ''}".rstrip() for row in rows_of(found) if row.kind in kinds]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
@pytest.mark.parametrize("wanted", FILTERS)
def test_a_part_of_a_capture_is_judged_as_the_whole_and_can_be_played(tmp_path, path, wanted):
    found = cut(path, tmp_path, wanted)
    if found is None:
        return
    old = {(row.raw, row.t): row for row in rows_of(Capture(str(path)))}
    for row in rows_of(found):
        if row.kind == "gap":
            continue
        before = old[row.raw, row.t]
        assert (row.kind, row.method, row.name, row.outcome) == (
            before.kind, before.method, before.name, before.outcome,
        )  # fmt: skip
        assert row.failed == before.failed
        assert {it.rule for it in row.findings} - NOT_BEFORE <= {it.rule for it in before.findings}
    messages = load(found.path, print).messages
    assert messages[0].method in ("initialize", "server/discover")
    assert all(it.exchange for it in messages if it.body.value.get("id") is not None)


def test_a_call_stays_with_what_the_server_asks_and_tells_during_it(tmp_path):
    path = capture(tmp_path / "a.jsonl", """
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[]}
        > 3 ping
        < 3 = {}
        > 4 tools/call {"name":"a","_meta":{"progressToken":"p"}}
        < notifications/progress {"progressToken":"p","progress":1}
        < 1 sampling/createMessage {}
        > 1 = {}
        < notifications/message {"level":"info","data":"apart"}
        < 4 = {"content":[]}
        < notifications/tools/list_changed
        > 5 tools/call {"name":"b"}
        < 5 = {"content":[]}
    """)  # fmt: skip
    whole = [
        "initialize", "initialize", "notifications/initialized", "tools/list", "tools/list", "tools/call a",
        "notifications/progress", "sampling/createMessage", "sampling/createMessage", "notifications/message",
        "tools/call a",
    ]  # fmt: skip
    for wanted in ("name:a", "method:notifications/progress", "method:sampling/createMessage", "apart"):
        assert names(cut(path, tmp_path, wanted)) == whole, wanted
    assert names(cut(path, tmp_path, "method:ping")) == [*whole[:3], "ping", "ping"]


def test_a_cancelled_call_stays_with_its_cancellation(tmp_path):
    path = capture(tmp_path / "a.jsonl", """
        = 2025-06-18
        > 2 tools/call {"name":"a"}
        > 3 tools/call {"name":"b"}
        > notifications/cancelled {"requestId":2,"reason":"the user stopped it"}
        < 3 = {"content":[]}
    """)  # fmt: skip
    assert names(cut(path, tmp_path, "name:a"))[3:] == ["tools/call a", "notifications/cancelled"]
    assert names(cut(path, tmp_path, "name:b"))[3:] == ["tools/call b", "tools/call b"]


def posted(channel, session, message, answer):
    """Return the records of a POST and its response in a session over HTTP."""
    fields = [["content-type", "application/json"], ["mcp-session-id", session]]
    head = {"method": "POST", "target": "/mcp", "headers": fields[: 1 if message.get("method") == "initialize" else 2]}
    reply = {"status": 200 if answer else 202, "reason": "OK", "headers": fields}
    result = {"jsonrpc": "2.0", "id": message.get("id"), "result": answer}
    return [
        opened(channel, "client", "request", "body", head=head),
        frame(channel, {"jsonrpc": "2.0", **message}),
        opened(channel + 1, "server", "response", "body", head=reply, answers=channel),
        *([frame(channel + 1, result)] if answer else []),
        {"kind": "close", "ch": channel + 1, "t": 1, "how": "eof"},
    ]


def test_over_http_only_the_session_of_a_match_stays(tmp_path):
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    server = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    records = [header(transport="http", url="http://127.0.0.1:3000/mcp")]
    for at, session in enumerate(("one", "two")):
        first = 6 * at + 1
        records += posted(first, session, {"id": 1, "method": "initialize", "params": client}, server)
        records += posted(first + 2, session, {"method": "notifications/initialized"}, None)
        call = {"id": 2, "method": "tools/call", "params": {"name": f"of {session}"}}
        records += posted(first + 4, session, call, {"content": []})
    records = [*records, {"kind": "end"}]
    timed = [records[0], *(record | {"t": t} for t, record in enumerate(records[1:]))]
    found = cut(written(tmp_path / "a.jsonl", *timed), tmp_path, '"of two"')
    with open(found.path, "rb") as file:
        opens = [record for record in map(json.loads, file) if record.get("kind") == "open"]
    assert [record["ch"] for record in opens] == [7, 8, 9, 10, 11, 12]
    assert names(found)[2:] == ["notifications/initialized", "tools/call of two", "tools/call of two"]


def test_rows_are_selected_by_number(tmp_path):
    path = capture(tmp_path / "a.jsonl", "= 2025-06-18\n> 2 ping\n< 2 = {}\n> 3 ping\n< 3 = {}\n> 4 ping\n< 4 = {}")
    numbers = [row.n for row in rows_of(Capture(path)) if row.method == "ping"]
    assert len(names(cut(path, tmp_path, "", first=numbers[1], last=numbers[2]))) == 3 + 4
    assert cut(path, tmp_path, "", first=numbers[-1] + 99) is None


def test_lines_stay_as_they_are_and_the_header_names_the_original(tmp_path):
    path = capture(tmp_path / "a.jsonl", "= 2025-06-18\n> 2 ping\n< 2 = {}\n> 3 tools/list\n< 3 = {}\n! x\n> 4 ping")
    found = cut(path, tmp_path, "id:3")
    with open(path, "rb") as old, open(found.path, "rb") as new:
        original, before = json.loads(old.readline()), set(old)
        own = json.loads(new.readline())
        after = list(new)
    gaps = [json.loads(line) for line in after if line not in before]
    assert [(it["kind"], it["lost"], it["why"]) for it in gaps] == [
        ("gap", 2, LEFT_OUT_BY_CUT), ("gap", 2, LEFT_OUT_BY_CUT),
    ]  # fmt: skip
    assert own["cut"] == {"id": original["id"], "file": "a.jsonl", "filter": "id:3"}
    assert own["id"] != original["id"]
    assert {name: own[name] for name in own.keys() - {"id", "cut"}} == {
        name: original[name] for name in original.keys() - {"id", "proof"}
    }
    assert cut(path, tmp_path, "id:3").header.id == found.header.id, "the same command makes the same file"


def test_a_part_of_a_part_can_be_played(tmp_path):
    path = capture(tmp_path / "a.jsonl", "= 2025-06-18\n> 2 ping\n< 2 = {}\n> 3 ping\n< 3 = {}\n> 4 ping\n< 4 = {}")
    first = cut(path, tmp_path, "id:2,3")
    (tmp_path / "b").mkdir()
    second = cut(first.path, tmp_path / "b", "id:3")
    assert names(second)[3:] == ["ping", "ping"]
    assert load(second.path, print).lost is None


def test_what_was_lost_when_it_was_recorded_stays_lost(tmp_path):
    path = capture(tmp_path / "a.jsonl", "= 2025-06-18\n> 2 ping\n< 2 = {}\n> 3 ping\n< 3 = {}")
    with open(path, "rb") as file:
        lines = file.readlines()
    lines.insert(-1, b'{"kind":"gap","t":9,"lost":1,"why":"the disk is full"}\n')
    with open(path, "wb") as file:
        file.writelines(lines)
    with pytest.raises(Exception, match="the disk is full"):
        load(cut(path, tmp_path, "id:2").path, print)


def test_several_files_are_cut_as_one(tmp_path):
    whole = in_files(tmp_path / "whole.jsonl", limit=None)
    several = in_files(tmp_path / "parts.jsonl")
    assert len(Capture(str(several)).paths) > 1
    for path in (whole, several):
        found = cut(path, tmp_path, "method:notifications/n77")
        assert found.paths == [str(tmp_path / "cut.jsonl")]
        assert names(found) == ["notifications/n77"]
        with open(found.path, "rb") as file:
            assert b'"continue' not in file.read()


def test_a_long_part_that_is_left_out_is_one_gap(tmp_path):
    path = capture(tmp_path / "a.jsonl", "= 2025-06-18\n" + "! apart\n" * 5000 + "> 2 ping\n< 2 = {}")
    found = cut(path, tmp_path, "id:2")
    with open(found.path, "rb") as file:
        assert len(file.readlines()) < 15
