"""The tables have the same values as `show --json`."""

import json
import os
from collections import Counter
from contextlib import closing

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.query.build import MESSAGES, build
from mcpspy.query.cache import tables_of
from mcpspy.query.database import CaptureDatabase
from mcpspy.query.stats import Stats
from mcpspy.timeline import final_rows, to_json
from tests.test_overview import HANDSHAKE, called, listed
from tests.timelines import GOLDEN
from tests.transcript import begin, finish, record


def selected(captured, query):
    """Return the rows of a query as JSON objects."""
    with closing(CaptureDatabase([captured], os.path.dirname(captured.folder))) as database:
        return [json.loads(line) for line in database.objects(query)]


@pytest.mark.parametrize("name", [path.stem for path in GOLDEN])
def test_the_tables_of_a_golden_capture_agree_with_show(golden, name):
    captured = golden[name]
    source = Capture(captured.capture.path)
    shown = [json.loads(to_json(row, source.header)) for row in final_rows(source.records, live=False)]
    kinds, methods = Counter(row["kind"] for row in shown), Counter(row["method"] for row in shown)
    frames = selected(captured, "SELECT n, messages FROM frames ORDER BY n")
    assert [row["n"] for row in frames] == sorted({row["n"] for row in shown})
    assert sum(row["messages"] for row in frames) == sum(kinds[kind] for kind in MESSAGES)
    columns = "n, part, t, sender, kind, id, method, name, revision, session, status, outcome, failed, expected,"
    columns += " request, response, latency, size"
    messages = selected(captured, f"SELECT {columns}, findings, message FROM messages ORDER BY n, part")  # noqa: S608
    expected = [row for row in shown if row["kind"] in MESSAGES]
    for row in expected:
        row["findings"], row["sender"] = len(row["findings"]), row["from"]
    expected.sort(key=lambda row: (row["n"], row["part"]))
    assert messages == [
        {key: row.get(key) for key in (*columns.split(", "), "findings", "message")} for row in expected
    ]
    requests = [row for row in expected if row["kind"] == "request"]
    sizes = {row["n"]: row["size"] for row in expected}
    assert selected(
        captured, "SELECT request, part, response, status, latency, response_size FROM exchanges ORDER BY request, part"
    ) == [
        {key: row[key] for key in ("request", "part", "response", "status", "latency")}
        | {"response_size": sizes.get(row["response"])}
        for row in requests
    ]
    query = "SELECT *, (SELECT count(*) FROM findings) AS found, (SELECT sum(calls) FROM tools) AS calls FROM captures"
    (counts,) = selected(captured, query)
    assert (
        counts["findings"]
        == counts["found"]
        == sum(row["findings"] for row in expected)
        + sum(len(row["findings"]) for row in shown if row["kind"] not in MESSAGES)
    )
    assert counts["calls"] == sum(row["method"] == "tools/call" for row in requests)
    assert [counts[key] for key in ("frames", "messages", "exchanges")] == [len(frames), len(messages), len(requests)]
    failed = [len(selected(captured, f"FROM {table} WHERE failed")) for table in ("exchanges", "frames")]
    assert counts["failed"] == sum(failed)
    assert methods["initialize"] == 0 or counts["client"]


@pytest.mark.parametrize("name", [path.stem for path in GOLDEN])
def test_the_tools_of_a_golden_capture_are_those_of_stats(golden, name):
    stats = Stats()
    stats.add(golden[name].capture)
    (server,) = stats.servers.values()
    rows = selected(golden[name], "FROM tools")
    keys = ("calls", "errors", "findings", "definition", "arguments", "results", "p50", "max")
    assert {row["name"]: tuple(row[key] for key in keys) for row in rows} == {
        tool.name: (
            *(tool.calls, tool.errors, tool.found, tool.size, tool.arguments, tool.results),
            *([it / 1e9 for it in tool.latencies.quantiles(0.5, 1)] or (None, None)),
        )
        for tool in server.tools.values()
    }


def test_the_moments_are_those_of_show(golden):
    captured = golden["field-stdio"]
    source = Capture(captured.capture.path)
    shown = [json.loads(to_json(row, source.header)) for row in final_rows(source.records, live=False)]
    times = selected(captured, "SELECT strftime(time, '%Y-%m-%dT%H:%M:%S.%fZ') AS time FROM frames ORDER BY n, time")
    assert sorted(row["time"] for row in times) == sorted(row["time"] for row in shown)


def test_a_batch_is_one_frame_and_several_messages(made):
    captured = made('> [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"},7]')
    assert selected(captured, "SELECT kind, messages FROM frames LIMIT 1") == [{"kind": "request", "messages": 3}]
    assert [(row["part"], row["kind"]) for row in selected(captured, "FROM messages ORDER BY part")] == [
        (0, "request"), (1, "request"), (2, "invalid"),
    ]  # fmt: skip


def test_ids_and_numbers_keep_their_digits(made):
    captured = made('> {"jsonrpc":"2.0","id":12345678901234567890123,"method":"x","params":{"a":1.10}}')
    (row,) = selected(captured, "SELECT id::VARCHAR AS id, message::VARCHAR AS message FROM messages")
    assert row["id"] == "12345678901234567890123"
    assert '{"a":1.10}' in row["message"]


def test_an_error_is_told_by_its_code_and_message(made):
    text = '> 1 ping\n< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\n> 2 ping\n'
    text += '< {"jsonrpc":"2.0","id":2,"error":{"code":1e99,"message":{}}}'
    assert selected(made(text), "SELECT status, error_code, error_message FROM exchanges ORDER BY request") == [
        {"status": "error", "error_code": -32601, "error_message": "no"},
        {"status": "error", "error_code": None, "error_message": None},
    ]


def test_a_request_without_an_answer_is_an_exchange(made):
    (row,) = selected(made("> 1 ping"), "FROM exchanges")
    assert (row["status"], row["response"], row["latency"], row["findings"]) == ("unanswered", None, None, 1)


def test_tools_have_their_use_and_their_sizes(made):
    text = HANDSHAKE + listed(1, '{"name":"a"}', '{"name":"b"}') + called(2, "a", seconds=0.5)
    a, b = selected(made(text), "FROM tools ORDER BY name")
    assert {key: a[key] for key in ("name", "listed", "called", "calls", "errors", "p50", "max", "definition")} == {
        "name": "a", "listed": 8, "called": 9, "calls": 1, "errors": 0, "p50": 0.5, "max": 0.5, "definition": 12,
    }  # fmt: skip
    assert (b["called"], b["calls"], b["p50"]) == (None, 0, None)


def test_what_is_no_message_has_its_text(made):
    rows = selected(made("! warming up\n< | not JSON"), "SELECT kind, text FROM frames ORDER BY n")
    assert rows[0] == {"kind": "stderr", "text": "warming up"}
    assert [row["kind"] for row in rows] == ["stderr", "invalid", "end"]
    assert rows[1]["text"] is None


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (r"a\u0000b", "a\0b"),
        (r"\ud800 \ud83d\ude00 \\ud800", "� 😀 \\ud800"),
        ("'); DROP TABLE x; --", "'); DROP TABLE x; --"),
        ('a\\nb\\"c', 'a\nb"c'),
    ],
)  # fmt: skip
def test_strings_that_peers_make_up_come_through(made, raw, name):
    captured = made(f'> {{"jsonrpc":"2.0","id":"{raw}","method":"tools/call","params":{{"name":"{raw}"}}}}')
    (row,) = selected(captured, "SELECT name, id, message->>'$.params.name' AS inner FROM messages")
    assert row == {"name": name, "id": name, "inner": name}
    assert selected(captured, "SELECT name FROM tools") == [{"name": name}]


def test_bytes_that_are_not_text_do_not_stop_anything(tmp_path, made):
    captured = made('> {"jsonrpc":"2.0","id":NaN,"method":"x"}\n> {"jsonrpc":"2.0","id":1,"method":"x","a":1,"a":2}')
    assert len(selected(captured, "FROM messages")) == 2


def test_a_capture_without_messages_has_empty_tables(made):
    captured = made("")
    assert selected(captured, "SELECT frames, seconds FROM captures") == [{"frames": 1, "seconds": 10.0}]
    assert selected(captured, "SELECT count(*) AS n FROM messages") == [{"n": 0}]


def test_a_live_capture_is_read_as_it_is_now_and_again_when_it_has_ended(tmp_path, cache):
    path = str(tmp_path / "live.jsonl")
    writer = begin(path)
    record(writer, "> 1 ping")
    query = "SELECT live, (SELECT max(status) FROM exchanges) AS status FROM captures"
    live = tables_of(path)
    build([live], lambda _: None)
    assert selected(live, query) == [{"live": True, "status": "pending"}]
    finish(writer, 10_000_000_000)
    ended = tables_of(path)
    build([ended], lambda _: None)
    assert selected(ended, query) == [{"live": False, "status": "unanswered"}]


def test_damage_is_a_gap(tmp_path, made):
    path = made("> 1 ping").capture.path
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"kind":"frame","ch":1,"t":')
    captured = tables_of(path)
    build([captured], lambda _: None)
    (gap,) = selected(captured, "FROM frames WHERE kind = 'gap'")
    assert (gap["n"], gap["sender"], gap["messages"]) == (7, "mcpspy", 0)
    assert gap["text"]
