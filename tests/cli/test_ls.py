import json
import os
import subprocess
import sys
import time
from functools import partial

import pytest

from mcpspy import cli
from mcpspy.text import size_text
from tests.cli.conftest import refusal
from tests.limits import LIMIT
from tests.transcript import WALL, begin, capture, finish, record

SESSION = """
    > {"id":1,"method":"ping"}
    < {"id":1,"result":{}}
    > {"id":2,"method":"nope"}
    < {"id":2,"error":{"code":1,"message":""}}
    < | not JSON
    ! warning
"""
NOW = WALL / 1e9 + 3 * 86400


@pytest.fixture
def ls(monkeypatch, tmp_path, run):
    """Run `mcpspy ls`, three days after the captures of `tests.transcript`, and return its status and output."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MCPSPY_CAPTURE_DIR", raising=False)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return partial(run, "ls")


def test_captures_are_listed_live_ones_first(tmp_path, ls):
    folder = tmp_path / "captures"
    folder.mkdir()
    done = capture(folder / "done.jsonl", SESSION)
    writer = begin(folder / "live.jsonl")
    record(writer, '> {"id":1,"method":"ping"}')
    status, out, err = ls(folder)
    assert (status, err) == (0, "")
    live_size, size = (size_text(os.path.getsize(folder / name)) for name in ("live.jsonl", "done.jsonl"))
    assert [line.split() for line in out.splitlines()] == [
        ["live", "weather", "stdio", *live_size.split(), "1", "frame,", "1", "exchange"],
        [str(folder / "live.jsonl")],
        f"3 d ago weather stdio {size} 6 frames, 2 exchanges, 1 failed, 2 errors".split(),
        "last error #9 not JSON (error at character 0)".split(),
        [done],
        f"2 captures, {size_text(os.path.getsize(done) + os.path.getsize(folder / 'live.jsonl'))}, in {folder}".split(),
    ]
    finish(writer, 1)


INITIALIZE = """
    > {"id":1,"method":"initialize","params":{"clientInfo":{"name":"claude-code","version":"2.1"}}}
"""


def test_the_captures_of_one_client_process_are_together_under_its_name(tmp_path, ls):
    """One client starts its server twice for one connection; another client starts its own."""
    probe = capture(tmp_path / "probe.jsonl", '> {"id":1,"method":"server/discover"}', wall=WALL, ppid=4200)
    other = capture(tmp_path / "other.jsonl", INITIALIZE, wall=WALL + 10**9, ppid=77)
    main = capture(tmp_path / "main.jsonl", INITIALIZE + SESSION, wall=WALL + 2 * 10**9, ppid=4200)
    status, out, err = ls(tmp_path)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "claude-code 2.1, process 4200: 2 captures"
    assert [line.strip() for line in lines if line.endswith(".jsonl")] == [main, probe, other]
    assert all("process" not in line for line in lines[1:])
    objects = [json.loads(line) for line in ls(tmp_path, "--json")[1].splitlines()]
    assert [(it["client"], it["client_process"]) for it in objects] == [
        ("claude-code 2.1", 4200), (None, 4200), ("claude-code 2.1", 77),
    ]  # fmt: skip


def test_the_program_tells_clients_without_a_name_apart(tmp_path, ls):
    """V-06: the default name of a client in the SDK for Python."""
    hello = INITIALIZE.replace("claude-code", "mcp").replace("2.1", "0.1.0")
    command = ["python", "agent.py", "\x1b[2J"]
    for name in ("one", "two"):
        capture(tmp_path / f"{name}.jsonl", hello, ppid=42, client_start=5, client=command)
    capture(tmp_path / "other.jsonl", hello, wall=WALL - 1, ppid=43, client_start=5, client=["/bin/chat"])
    lines = ls(tmp_path)[1].splitlines()
    assert lines[0] == "agent.py (mcp 0.1.0), process 42: 2 captures"
    assert [line.strip() for line in lines if line.endswith(" (mcp 0.1.0)")] == [
        *["agent.py (mcp 0.1.0)"] * 2,
        "chat (mcp 0.1.0)",
    ]
    first = json.loads(ls(tmp_path, "--json")[1].splitlines()[0])
    assert (first["client"], first["client_command"]) == ("mcp 0.1.0", command)
    runs = [json.loads(line) for line in ls(tmp_path, "--runs", "--json")[1].splitlines()]
    assert [(run["client"], run["client_command"]) for run in runs] == [
        ("mcp 0.1.0", command),
        ("mcp 0.1.0", ["/bin/chat"]),
    ]
    assert "agent.py (mcp 0.1.0) (42)" in ls(tmp_path, "--runs")[1]


def test_what_a_session_was_about_stands_below_its_counts(tmp_path, ls):
    call = '> {"id":%d,"method":"tools/call","params":{"name":"%s"}}'
    calls = [call % (n, name) for n, name in enumerate(["add", "find", "find", "\\u001b[2J", "echo"], 2)]
    capture(
        tmp_path / "a.jsonl",
        "\n".join([INITIALIZE, *calls, '< {"id":2,"error":{"code":-1,"message":"%s"}}' % ("no " * 99)]),
    )
    about, error = ls(tmp_path)[1].splitlines()[1:3]
    assert about == "           claude-code 2.1 · find 2, add 1, \\e[2J 1, …"
    assert error.startswith("           last error #11 tools/call add -1 no no")
    assert error.endswith("…")
    assert len(error) < 160


CALLS = """
    @0 > 2 tools/list
    @1 < 2 = {}
    @600 > 3 tools/list
    @601 < 3 = {}
"""


def test_runs_are_summed_up_above_their_captures(tmp_path, ls):
    main = capture(tmp_path / "main.jsonl", INITIALIZE + CALLS, wall=WALL, ppid=42, client_start=5, name="main")
    other = capture(tmp_path / "other.jsonl", SESSION, wall=WALL + 10**9, ppid=42, client_start=5, name="other")
    alone = capture(tmp_path / "alone.jsonl", CALLS, wall=WALL - 10**9, ppid=42, client_start=6, name="alone")
    status, out, err = ls(tmp_path, "--runs")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert [lines[at].split() for at in (0, 7)] == [
        "3 d ago claude-code 2.1 (42) 2 servers, 10 min, 2 turns, 11 frames, 5 exchanges, 2 failed, 2 errors".split(),
        "3 d ago unknown client (42) 1 server, 10 min, 2 turns, 4 frames, 2 exchanges".split(),
    ]
    assert [lines[at] for at in (3, 6, 9)] == [f"{'':13}{path}" for path in (other, main, alone)]
    assert lines[10].startswith("3 captures, ")


def test_a_run_over_http_has_no_turns(tmp_path, ls):
    capture(tmp_path / "web.jsonl", "", transport="http", name="web")
    run = json.loads(ls(tmp_path, "--runs", "--json")[1])
    assert (run["client_process"], run["duration"], run["turns"]) == (None, None, [])
    assert "1 server, 0 frames, 0 exchanges\n" in ls(tmp_path, "--runs")[1]


def test_a_run_with_a_capture_over_16_megabytes_is_not_counted(tmp_path, ls):
    path = capture(tmp_path / "a.jsonl", SESSION, ppid=42, client_start=5)
    capture(tmp_path / "b.jsonl", SESSION, ppid=42, client_start=5)
    os.truncate(path, (16 << 20) + 1)
    run = json.loads(ls(tmp_path, "--runs", "--json")[1])
    assert [run[key] for key in ("duration", "frames", "exchanges", "errors", "failed", "turns")] == [None] * 6
    assert "1 server, not counted\n" in ls(tmp_path, "--runs")[1]


def test_files_that_cannot_be_read_are_named_on_stderr(tmp_path, ls):
    capture(tmp_path / "a.jsonl", SESSION)
    expected = [ls(tmp_path, *options)[1] for options in ([], ["--json"])]
    (tmp_path / "\x1b[2J.jsonl").write_bytes(b'{"mcpspy":2}\n')
    for options, out in zip(([], ["--json"]), expected, strict=True):
        status, now, err = ls(tmp_path, *options)
        assert (status, now) == (0, out)
        assert err.startswith("mcpspy: 1 file not shown: \\e[2J.jsonl has format 2, ")
        assert err.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_capture_over_16_megabytes_is_not_counted(tmp_path, ls, options, monkeypatch):
    """docs/json.md: its counts are null."""
    path = capture(tmp_path / "a.jsonl", SESSION)
    os.truncate(path, (16 << 20) + 1)
    _, out, _ = ls(tmp_path, *options)
    if options:
        assert [json.loads(out)[key] for key in ("frames", "exchanges", "errors", "failed")] == [None] * 4
    else:
        assert "not counted" in out


def test_where_there_are_no_captures_it_says_how_to_make_one(tmp_path, ls):
    assert ls(tmp_path) == (0, f"no captures in {tmp_path}; 'mcpspy wrap -- COMMAND' makes one\n", "")
    assert ls(tmp_path, "--json") == (0, "", "")


def test_the_default_directory_need_not_be_there(tmp_path, ls):
    status, out, _ = ls()
    assert status == 0
    assert str(tmp_path / "home" / ".mcpspy" / "captures") in out


def test_the_directory_of_the_environment_is_listed(tmp_path, ls, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    path = capture(tmp_path / "a.jsonl", "")
    assert path in ls()[1]


@pytest.mark.parametrize("what", ["missing", "a capture"])
def test_what_is_no_directory_is_one_line_and_exit_code_2(tmp_path, ls, what):
    path = tmp_path / "a.jsonl"
    if what == "a capture":
        capture(path, "")
    err = refusal(ls(path))
    assert f"{path} is not a directory" in err
    assert f"mcpspy show {path}" in err


def test_a_hostile_header_cannot_put_anything_on_the_terminal(tmp_path, ls):
    """F-08."""
    capture(tmp_path / "a.jsonl", "", name="\x1b[2J\n\u202e" + "x" * 1000, transport="\x1b[2J\x07")
    status, out, _ = ls(tmp_path)
    assert status == 0
    assert len(out.splitlines()) == 3
    assert all(line.isprintable() and len(line) < 300 for line in out.splitlines())


@pytest.mark.parametrize("name", ["\x1b[2J.jsonl", "new\nline.jsonl", "\u202e.jsonl"])
def test_a_hostile_file_name_cannot_put_anything_on_the_terminal(tmp_path, ls, name):
    """F-08."""
    capture(tmp_path / name, "")
    status, out, _ = ls(tmp_path)
    assert status == 0
    assert len(out.splitlines()) == 3
    assert all(line.isprintable() for line in out.splitlines())
    assert json.loads(ls(tmp_path, "--json")[1])["path"] == str(tmp_path / name)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_file_name_that_is_no_unicode_is_listed(tmp_path, options):
    capture(tmp_path / "a.jsonl", "")
    os.rename(tmp_path / "a.jsonl", os.path.join(os.fsencode(tmp_path), b"\xff.jsonl"))
    root = os.path.dirname(os.path.dirname(os.path.dirname(cli.__file__)))
    command = [sys.executable, "-m", "mcpspy", "ls", str(tmp_path), *options]
    run = subprocess.run(command, capture_output=True, check=False, cwd=root, timeout=LIMIT)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"weather" in run.stdout
