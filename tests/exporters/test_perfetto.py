import json
from collections import Counter
from contextlib import closing

import pytest

from tests.exporters.consumers import Perfetto, exported, golden
from tests.exporters.gated import gated
from tests.optional import require
from tests.transcript import capture

SLICES = (
    "select s.name, s.ts, s.dur, t.name, p.name from slice s join thread_track tt on s.track_id = tt.id"
    " join thread t using (utid) join process p using (upid) order by s.ts, s.id"
)
FLOWS = (
    "select a.name, b.name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id"
    " order by a.ts, b.ts"
)
COUNTERS = "select max(value) from counter"


def events(content):
    return json.loads(content)["traceEvents"]


@pytest.fixture(scope="module")
def engine():
    require(".peers/mitm", "node")
    with closing(Perfetto()) as found:
        yield found


@pytest.fixture
def asked(engine, tmp_path):
    """Return a function that exports captures and returns Perfetto's slices, flows and highest counter."""

    def ask(*captures, wants=None):
        path = tmp_path / "trace.json"
        path.write_bytes(exported("perfetto", *captures, wants=wants))
        faults, slices, flows, counters = engine.ask(path, SLICES, FLOWS, COUNTERS)
        assert faults == []
        return slices, flows, counters

    return ask


def made(tmp_path, transcript, name="made", **fields):
    return capture(str(tmp_path / f"{name}.jsonl"), transcript, **fields)


def test_perfetto_reads_the_trace_of_every_golden_capture_without_a_complaint_and_complains_of_broken_ones(
    engine, tmp_path
):
    requests, traces = [], []
    for place, path in enumerate(golden()):
        trace = tmp_path / f"{place}.json"
        trace.write_bytes(exported("perfetto", path))
        traces.append(events(trace.read_bytes()))
        requests.append((trace, "select count(*) from slice", "select count(*) from flow"))
    whole = (tmp_path / "0.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(whole.replace(b'"ts":', b'"ts":x', 1))
    overlap = [{"ph": "X", "pid": 1, "tid": 1, "ts": t, "dur": 10, "name": "a"} for t in (0, 5)]
    lost = [{"ph": "f", "bp": "e", "id": 1, "pid": 1, "tid": 1, "ts": 3, "name": "a", "cat": "b"}]
    (tmp_path / "wrong.json").write_text(json.dumps({"traceEvents": [*overlap, *lost]}))
    found = [engine.ask(*request) for request in requests]
    cut, wrong = engine.ask(tmp_path / "cut.json"), engine.ask(tmp_path / "wrong.json")
    for trace, (faults, slices, flows) in zip(traces, found, strict=True):
        phases = Counter(event["ph"] for event in trace)
        assert faults == []
        assert slices == [[phases["X"] + phases["i"]]]
        assert flows == [[phases["f"]]]
        assert phases["s"] == phases["f"]
    assert sum(flows[0][0] for _, _, flows in found) > 20
    assert "error" in cut or cut[0]
    assert wrong[0], "slices that overlap and an arrow from nowhere"


def test_an_exchange_is_a_slice_of_who_sent_the_request_and_calls_at_the_same_time_have_lanes(asked, tmp_path):
    path = made(
        tmp_path,
        """@1 > 1 tools/call {"name":"a"}
           @2 > 2 tools/call {"name":"b"}
           @3 < 7 roots/list
           @4 < 1 = {}
           @5 > 3 ping
           @6 < 2 = {}
           @7 > {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}""",
    )
    slices, flows, counters = asked(path)
    assert [it for it in slices if "requests" in it[3]] == [
        ["tools/call a", 10**9, 3 * 10**9, "requests 1", "client (weather)"],
        ["tools/call b", 2 * 10**9, 4 * 10**9, "requests 2", "client (weather)"],
        ["roots/list (unanswered)", 3 * 10**9, 7 * 10**9, "requests 1", "server (weather)"],
        ["ping (unanswered)", 5 * 10**9, 5 * 10**9, "requests 1", "client (weather)"],
    ]
    assert ["notifications/roots/list_changed", 7 * 10**9, 0, "notifications", "client (weather)"] in slices
    assert not flows, "two calls were open when the server asked"
    assert counters[0][0] > 100


def test_an_arrow_leads_from_the_only_open_call_to_what_the_server_asks_meanwhile(asked, tmp_path):
    path = made(tmp_path, '> 1 tools/call {"name":"a"}\n< 7 roots/list\n> 7 = {"roots":[]}\n< 1 = {}')
    assert asked(path)[1] == [["tools/call a", "roots/list"]]


def test_an_arrow_leads_from_one_round_to_the_next():
    [path] = [path for path in golden() if path.endswith("features-python2-2026-07-28.jsonl")]
    rounds = [event for event in events(exported("perfetto", path)) if event["name"] == "round"]
    assert {event["ph"] for event in rounds} == {"s", "f"}
    before, after = rounds[:2]
    assert before["id"] == after["id"]
    assert before["ts"] < after["ts"]


def test_findings_stderr_and_the_end_are_instants(asked, tmp_path):
    path = made(tmp_path, '> 1 tools/call {"name":"a"}\n! warming up\n< 2 = {}')
    slices, _, _ = asked(path)
    instants = {(name, track) for name, _, length, track, _ in slices if length == 0}
    assert ("warming up", "stderr") in instants
    assert any(track == "findings" for _, track in instants)
    assert any(name.startswith("end") and track == "other" for name, track in instants)


def test_what_mcpspy_did_itself_is_a_process_and_a_slice_lasts_as_long_as_its_client_waited(asked, tmp_path):
    slices, _, _ = asked(gated(tmp_path / "gated.jsonl"))
    calls = [(start // 10**6, length // 10**6, process) for name, start, length, _, process in slices if "call" in name]
    assert calls == [(1, 1, "client (weather)"), (3, 1, "mcpspy (weather)"), (6, 6, "client (weather)")]
    assert {it[0] for it in slices if it[4] == "mcpspy (weather)" and it[3] == "other"} == {
        "gap 3 lost: disk; #59;", "signal SIGTERM to the process group", "gates a (set by the gate file)",
        "gap 1 lost: a damaged line",
    }  # fmt: skip


def test_several_captures_stand_side_by_side_at_their_times(asked, tmp_path):
    wall = 1_764_000_000_000_000_000
    paths = [made(tmp_path, "@1 > 1 ping\n@2 < 1 = {}", f"c{place}", wall=wall + place * 10**9) for place in range(2)]
    slices, _, _ = asked(*paths)
    assert [it[1] for it in slices if it[0] == "ping"] == [10**9, 2 * 10**9]


def test_hostile_names_are_names(asked, tmp_path):
    name = '"}],"x":[{\n\u202e\x1b[31m</script>\udc80' + "x" * 5000
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
    slices, _, _ = asked(made(tmp_path, f"> {json.dumps(call)}\n< 1 = {{}}"))
    [shown] = [it[0] for it in slices if it[3] == "requests 1"]
    assert shown.startswith('tools/call "}],"x":[{\\n\\u202e\\e[31m</script>\\udc80xxx')
    assert len(shown) <= 200


def test_a_filter_leaves_rows_out(asked, tmp_path):
    path = made(tmp_path, "> 1 ping\n< 1 = {}\n> 2 tools/list\n< 2 = {}")
    slices, _, _ = asked(path, wants=lambda row: row.method == "ping")
    assert [it[0] for it in slices] == ["ping"]
