"""The benchmarks run. Their figures are only valid on a quiet machine."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from benchmarks.check.traffic import write
from benchmarks.fleet.taken import Taken
from benchmarks.relay.captures import pieces
from benchmarks.rival import snoop
from benchmarks.rival.versus import versus
from tests import NIGHTLY


@pytest.mark.field
def test_the_relay_benchmark_runs_and_loses_nothing(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.relay", "--quick", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(figures.read_text())
    assert "200 B" in done.stdout


@pytest.mark.field
def test_the_tui_benchmark_runs_and_sees_every_row(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.tui", "--quick", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["row"]: row for row in json.loads(figures.read_text())["rows"]}
    assert len(rows) == 15
    assert {row["verdict"] for row in rows.values()} == {"INCONCLUSIVE", "info"}


@pytest.mark.field
def test_the_fleet_benchmark_runs_and_no_span_is_lost_or_comes_twice(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.fleet", "--quick", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = json.loads(figures.read_text())["rows"]["spans of the exchanges"]["text"]
    assert counted == "0 lost, 0 twice of 405; show --json has 405, otel 405"


def test_what_the_receiver_of_a_fleet_noted_is_read_as_far_as_it_is_whole(tmp_path):
    notes = tmp_path / "notes.jsonl"
    requests = [(2_000, ["a", "b"]), (8_000, ["b", "c"])]
    lines = [{"t": 1, "listens": True}, {"t": 3_000, "listens": False}, {"t": 5_000, "listens": True}]
    lines += [{"t": t, "size": 10, "spans": [[name, t - 4_000] for name in names]} for t, names in requests]
    notes.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"t":')
    taken = Taken(str(notes))
    taken.read()
    taken.read()
    assert (taken.times, taken.bytes) == (Counter(a=1, b=2, c=1), 20)
    assert taken.caught_up() == (8_000, 8_000)
    assert taken.lags(0, 5_000) == [4_000, 4_000]
    assert taken.count(0, 5_000) == 2


@pytest.mark.field
def test_the_benchmark_of_tables_runs_and_all_count_the_same():
    command = [sys.executable, "-m", "benchmarks.lake", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "show        {'frames': 2000, 'messages': 2000, 'exchanges': 1000}" in done.stdout


@pytest.mark.parametrize("options", [pytest.param([], marks=pytest.mark.field), ["--sessions"]])
def test_the_check_benchmark_runs_and_finds_nothing(tmp_path, options):
    """A-02: the check of many HTTP sessions."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.check", "--quick", "--json", str(figures), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(figures.read_text())["rows"]
    assert ("sessions, deleted" if options else "end to end") in done.stdout


@pytest.mark.needs("cc")
@pytest.mark.field
def test_the_proxy_benchmark_runs_and_loses_nothing(tmp_path):
    figures = tmp_path / "figures.json"
    sets = ["single", "crowd", "events", "behind", "memory", "idle"] if NIGHTLY else ["single", "memory", "events"]
    command = [sys.executable, "-m", "benchmarks.proxy", "--quick", "--json", str(figures), "--rows", *sets]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["row"]: row for row in json.loads(figures.read_text())["rows"]}
    assert {"c=1: p50 / p99 in µs", "memory", "SSE, each event: p50 / p99 in µs"} <= set(rows)
    assert ("c=16: requests/s" in rows) is NIGHTLY
    assert {row["verdict"] for row in rows.values()} == {"INCONCLUSIVE", "info"}


@pytest.mark.needs("chromium", "chromedriver")
@pytest.mark.field
def test_the_share_benchmark_runs_and_sees_rows_and_answers(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.share", "--quick", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(figures.read_text())["rows"]) == 4


def test_the_reading_benchmark_runs(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.reading", "--quick", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(figures.read_text())["rows"]) == 9


@pytest.mark.needs("cc")
@pytest.mark.field
def test_the_rival_benchmark_runs_without_the_others_and_says_how_to_get_them(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.rival", "--quick", "--json", str(figures)]
    command += ["--mcpsnoop", str(tmp_path / "none"), "--fastmcp", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mcpsnoop is not installed and left out; to get it: npm pack" in done.stderr
    rows = {row["row"]: row for row in json.loads(figures.read_text())["rows"]}
    assert {"TUI: all read, s", "HTTP, c=1: p50, µs", "stdio, 64 KiB: p50, µs"} <= set(rows)
    assert {row["verdict"] for row in rows.values()} <= {"INCONCLUSIVE", "info"}


def test_a_session_has_the_same_frames_as_a_log_of_mcpsnoop(tmp_path):
    capture, log = tmp_path / "capture.jsonl", tmp_path / "log.jsonl"
    write(str(capture), 101)
    snoop.convert(str(capture), str(log))
    frames = list(pieces(str(capture)))
    assert list(snoop.pieces(str(log))) == frames
    assert len(frames) == 101


@pytest.mark.parametrize(
    ("rounds", "more", "figure"),
    [
        ({"bare": [1] * 5, "mcpsnoop": [3] * 5, "wrap": [2] * 5}, False, "0.50 (0.50 to 0.50): mcpspy wins"),
        ({"mcpsnoop": [2] * 5, "mcpspy": [4] * 5}, False, "2.00 (2.00 to 2.00): mcpspy loses"),
        ({"mcpsnoop": [2] * 5, "mcpspy": [4] * 5}, True, "2.00 (2.00 to 2.00): mcpspy wins"),
        ({"mcpsnoop": [2] * 5, "mcpspy": [1, 1, 1, 1, 4]}, True, "0.50 (0.50 to 2.00): even"),
        ({"mcpsnoop": [2, 2, 2, 2, 3], "mcpspy": [4] * 5}, True, "2.00 (1.33 to 2.00): not steady"),
        ({"mcpsnoop": [2], "mcpspy": [4]}, True, "2.00"),
    ],
)
def test_a_row_says_who_is_ahead_in_every_round(rounds, more, figure):
    assert versus("speed", "calls/s", rounds, more).rows[0].figure == figure
