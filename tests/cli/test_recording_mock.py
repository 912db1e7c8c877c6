"""`mcpspy mock --record-missing` as a process, between a test's client and a scripted server."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.cli import test_gates
from tests.cli.conftest import refusal
from tests.peers import warm
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish, record

READY = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
RECORDED = f"> {INITIALIZE}\n< {INITIALIZED}\n> {READY}\n> {call(2, 'a')}\n< {result(2, 'A')}"
SERVER = r"""
import json, os, sys
print("ready", file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    if request["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "weather", "version": "1.0.0"}}
    else:
        name = request["params"]["name"]
        if name == "hang":
            print("hangs", file=sys.stderr, flush=True)
            continue
        if name == "die":
            os._exit(3)
        answer = {"content": [{"type": "text", "text": name.upper()}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}, separators=(",", ":")), flush=True)
"""
COMMAND = [sys.executable, "-I", "-S", "-c", SERVER]


@contextlib.contextmanager
def client(path, *command):
    """Run the mock of a capture, with a server if a command is given."""
    with warm.start("mock", path, *(["--record-missing", "--", *command] if command else ())) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process, *lines):
    """Send lines and return the response to the last one."""
    for line in lines:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        told = process.stdout.readline().strip() if '"id"' in line else ""
    return told


def end(process):
    """Close the process's stdin, and return its exit status and the lines of stderr."""
    _, said = process.communicate()
    return process.returncode, said.splitlines()


@pytest.fixture
def path(tmp_path):
    return capture(tmp_path / "c.jsonl", RECORDED)


def test_what_is_missing_is_asked_once_and_then_no_server_is_needed(path):
    with client(path, *COMMAND) as process:
        assert ask(process, INITIALIZE, READY, call(5, "a")) == result(5, "A")
        assert ask(process, call(6, "b")) == result(6, "B")
        assert end(process) == (0, ["ready", f"mcpspy: {path} lacked tools/call b; it has 1 request more now"])
    assert os.listdir(os.path.dirname(path)) == ["c.jsonl"]
    with client(path) as process:
        assert ask(process, INITIALIZE, READY, call(1, "b")) == result(1, "B")
        assert ask(process, call(2, "a")) == result(2, "A")
        assert end(process) == (0, [])


def test_nothing_is_started_where_nothing_is_missing(path):
    with client(path, *COMMAND) as process:
        ask(process, INITIALIZE, READY, call(5, "a"))
        assert end(process) == (0, [])


def test_without_a_capture_there_is_one_then(tmp_path):
    path = tmp_path / "new.jsonl"
    lines = [INITIALIZE, READY, call(5, "b")]
    with client(path, *COMMAND) as process:
        assert ask(process, *lines) == result(5, "B")
        said = "lacked initialize, tools/call b; it has 2 requests more now"
        assert end(process) == (0, ["ready", f"mcpspy: {path} {said}"])
    with client(path) as process:
        assert ask(process, *lines) == result(5, "B")


def test_a_client_that_closes_its_end_at_once_has_its_answers(path):
    said = (INITIALIZE, READY, call(5, "b"), call(6, "c"))
    status, out, _ = test_gates.run("mock", path, "--record-missing", "--", *COMMAND, said=said)
    assert (status, out) == (0, [INITIALIZED, result(5, "B"), result(6, "C")])


def test_a_server_that_dies_is_an_error_that_says_so_and_leaves_the_capture_as_it_is(path):
    before = Path(path).read_text()
    with client(path, *COMMAND) as process:
        told = json.loads(ask(process, INITIALIZE, READY, call(5, "die")))
        why = "tools/call die was not recorded, and the server ended with the exit code 3"
        assert told == {"jsonrpc": "2.0", "id": 5, "error": {"code": -32603, "message": why}}
        assert end(process) == (1, ["ready", f"mcpspy: {path} still lacks tools/call die"])
    assert Path(path).read_text() == before
    assert os.listdir(os.path.dirname(path)) == ["c.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_session_and_what_was_recorded_is_added(path, number):
    with client(path, *COMMAND) as process:
        ask(process, INITIALIZE, READY, call(6, "b"))
        process.stdin.write(call(7, "hang") + "\n")
        process.stdin.flush()
        assert [process.stderr.readline() for _ in range(2)] == ["ready\n", "hangs\n"]
        process.send_signal(number)
        assert process.wait() == 1
        assert f"mcpspy: {path} lacked tools/call b" in process.stderr.read()
    with client(path) as process:
        assert ask(process, INITIALIZE, READY, call(1, "b")) == result(1, "B")


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a test choose the thread of a signal")
def test_a_signal_in_another_thread_ends_a_session_that_waits(path):
    """Python then only notes the signal, and nothing interrupts the wait of the main thread."""
    with client(path, *COMMAND) as process:
        assert ask(process, INITIALIZE, READY, call(6, "b")) == result(6, "B")
        other = max(map(int, os.listdir(f"/proc/{process.pid}/task")))
        assert other != process.pid
        assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGINT) == 0
        assert process.wait() == 0
        assert f"mcpspy: {path} lacked tools/call b" in process.stderr.read()


def test_what_a_killed_mock_has_recorded_is_added_by_the_next(path):
    before = Path(path).read_text()
    with client(path, *COMMAND) as process:
        ask(process, INITIALIZE, READY, call(6, "b"))
        process.kill()
        process.communicate()  # ends when its server has exited too
    assert Path(path).read_text() == before
    with client(path, *COMMAND) as process:
        assert ask(process, INITIALIZE, READY, call(1, "b")) == result(1, "B")
        assert end(process) == (
            0,
            [f"mcpspy: {path} has 1 request more, of an earlier session that was not added when it ended"],
        )


def test_two_at_once_both_add_what_they_asked(path):
    with client(path, *COMMAND) as one, client(path, *COMMAND) as other:
        ask(one, INITIALIZE, READY, call(5, "b"))
        ask(other, INITIALIZE, READY, call(5, "c"), call(6, "b"))
        assert [end(one)[0], end(other)[0]] == [0, 0]
    with client(path) as process:
        assert ask(process, INITIALIZE, READY, call(1, "b")) == result(1, "B")
        assert ask(process, call(2, "c")) == result(2, "C")


@pytest.fixture
def refused(run):
    """Run `mcpspy mock`, which is refused, and return its one line on stderr."""
    return lambda *arguments: refusal(run("mock", *arguments))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--record-missing"], "--record-missing needs the command of the server: mcpspy mock CAPTURE"),
        (["--record-missing", "--"], "--record-missing needs the command"),
        (["--", "true"], "what follows '--' is the command of a server that records"),
        (["--record-missing", "--", "no-such-command"], "no-such-command is not a command that can be run"),
        (["second.jsonl", "--record-missing", "--", "true"], "adds to one capture: give one"),
        (["--listen", "127.0.0.1:0", "--record-missing", "--", "true"], "leave out --listen"),
        (["--gate", "x.toml", "--record-missing", "--", "true"], "leave out --gate"),
        (["--loose", "--record-missing", "--", "true"], "--loose answers what is missing"),
    ],
)
def test_options_that_make_no_sense_are_refused(refused, path, options, said):
    assert said in refused(path, *options)


def test_captures_that_nothing_can_be_added_to_are_refused(refused, path, tmp_path, monkeypatch):
    record_missing = ["--record-missing", "--", "true"]
    web = shutil.copy(CAPTURES / "http-python1-2025-11-25.jsonl", tmp_path)
    assert "was recorded over HTTP" in refused(web, *record_missing)
    assert "was scrubbed" in refused(capture(tmp_path / "s.jsonl", RECORDED, scrubbed=True), *record_missing)
    before = {"id": "x", "file": "y", "lines": 1}
    assert "one of several files" in refused(capture(tmp_path / "p.jsonl", RECORDED, continues=before), *record_missing)
    assert "there is no directory" in refused(tmp_path / "none" / "c.jsonl", *record_missing)
    (tmp_path / "text").write_text("x\n")
    assert "is not a capture: its first line is not a capture header" in refused(tmp_path / "text", *record_missing)
    for unwritable in (path, str(tmp_path)):
        allowed = lambda name, _mode, unwritable=unwritable: str(name) != unwritable  # noqa: E731 (root may write all)
        monkeypatch.setattr(os, "access", allowed)
        monkeypatch.setattr(shutil, "which", lambda name: name)
        assert "is not writable" in refused(path, *record_missing)


def test_a_live_capture_is_refused(refused, tmp_path):
    writer = begin(tmp_path / "live.jsonl")
    record(writer, RECORDED)
    assert "is still being recorded" in refused(writer.path, "--record-missing", "--", "true")
    finish(writer)


def test_a_server_of_another_revision_than_the_captures_is_named(path):
    newer = SERVER.replace("2025-06-18", "2025-11-25")
    with client(path, *COMMAND[:-1], newer) as process:
        ask(process, INITIALIZE, READY, call(6, "b"))
        said = f"mcpspy: the server answered with revision 2025-11-25, but {path} with 2025-06-18: "
        assert said + "record the capture again to have one revision only" in end(process)[1]


def test_long_names_are_clipped(path):
    with client(path, *COMMAND) as process:
        ask(process, INITIALIZE, READY, call(6, "b" * 9000))
        assert end(process)[1][-1].endswith("b…; it has 1 request more now")
