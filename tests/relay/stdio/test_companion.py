"""`wrap --check`: errors are reported at once, and the traffic does not depend on the companion that reports them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mcpspy.relay.stdio import companion
from mcpspy.relay.stdio.companion import Companion
from tests.relay.harness import LIMIT, python, running, until
from tests.test_layers import LIGHT, imported

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

FAULTY = """
import sys
for line in sys.stdin:
    print("not a message", flush=True)
    print('{"jsonrpc":"2.0","id":1,"result":{}}', flush=True)
"""
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
END = 0.3  # seconds that `wrap` may take to exit
SLACK = 10  # seconds for a machine that is busy with other tests


@pytest.fixture
def checked(wrap, tmp_path):
    """Start a server behind `wrap --check`."""

    def start(*command, **popen):
        return wrap(*command, options=("-o", str(tmp_path / "capture-0.jsonl"), "--check"), **popen)

    return start


def companion_of(wrapped):
    """Wait for the companion, and return its pid."""
    return until(lambda: companion_now(wrapped), "the companion")


def companion_now(wrapped):
    """Return the pid of the companion, or None if it does not exist."""
    for task in Path(f"/proc/{wrapped.pid}/task").iterdir():
        for pid in (task / "children").read_text().split():
            if b"mcpspy.report.companion" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    return None


def following(pid, path):
    """Return whether the companion has opened the capture."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed in the meantime
            if os.readlink(f"/proc/{pid}/fd/{fd}") == str(path):
                return True
    return False


def test_an_error_is_said_while_the_session_goes_on(checked):
    """S-14: each finding of severity error is one line with a prefix; only the server writes to stdout."""
    wrapped = checked(*python(FAULTY))
    assert wrapped.ask(PING) == b"not a message"
    line = wrapped.stderr.readline()
    assert line.startswith(b"mcpspy: #")
    assert line.endswith(b" server: this line is not JSON (error at character 0) [framing/not-json]\n")
    assert wrapped.poll() is None
    assert wrapped.finish() == (b'{"jsonrpc":"2.0","id":1,"result":{}}\n', b"", 0)


def test_the_end_waits_a_moment_for_what_only_the_end_can_tell(checked):
    """The response has no request. Whether the companion can report that in this time depends on the machine."""
    wrapped = checked(*python(FAULTY))
    assert wrapped.ask(PING.replace(b'"id":1', b'"id":2')) == b"not a message"
    assert wrapped.stderr.readline().endswith(b"[framing/not-json]\n")
    before = time.monotonic()
    _, err, code = wrapped.finish()
    assert time.monotonic() - before < END + SLACK
    assert code == 0
    assert [line.rpartition(b"[")[2] for line in err.splitlines()] in ([], [b"pairing/orphan-response]"])


def test_the_companion_starts_with_the_first_frame_gives_way_and_says_nothing_without_an_error(checked):
    """The capture is like any other."""
    wrapped = checked("cat")
    until(wrapped.recording, "the capture")
    wrapped.witness()
    assert companion_now(wrapped) is None
    assert wrapped.ask(PING.replace(b"ping", b"x/y")) == PING.replace(b"ping", b"x/y")  # a warning at most
    pid = companion_of(wrapped)
    until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == companion.LOWEST, "the lowest priority")

    def held():
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime: it reads the header before it follows
            return {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        return {}

    until(
        lambda: {path for fd, path in held().items() if fd > 2} == {str(wrapped.path)}, "the capture and no other file"
    )
    assert held()[0] == held()[1] == os.devnull
    assert wrapped.finish() == (b"", b"", 0)
    lines = wrapped.path.read_text().splitlines()
    assert (json.loads(lines[0])["argv"], json.loads(lines[-1])["exit"]) == (["cat"], {"code": 0})


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_companion_that_hangs_or_dies_changes_nothing(checked, number):
    """`wrap` exits as usual, and no process keeps stderr open."""
    wrapped = checked("sh", "-c", "cat; exit 7")
    assert wrapped.ask(PING) == PING
    pid = companion_of(wrapped)
    os.kill(pid, number)
    for n in range(200):
        line = b"%d not a message" % n
        assert wrapped.ask(line) == line
    wrapped.stdin.close()
    before = time.monotonic()
    wrapped.stderr.read()  # to its end: no process has it open
    assert wrapped.wait(LIMIT) == 7
    assert time.monotonic() - before < END + SLACK
    assert not running(pid)
    assert len(wrapped.frames(1)) == len(wrapped.frames(2)) == 201


def test_a_client_that_does_not_read_stderr_is_not_held_up(checked):
    """The companion must not fill the pipe: the server would block when it writes to its own stderr."""
    source = """
import sys
for line in sys.stdin:
    print("not a message", flush=True)
    sys.stderr.write("." * 20_000 if line.startswith("last") else "")
    sys.stderr.flush()
    print("done", flush=True) if line.startswith("last") else None
"""
    wrapped = checked(*python(source))
    for n in range(3000):
        assert wrapped.ask(b"%d" % n) == b"not a message"
    pid = companion_of(wrapped)
    until(lambda: following(pid, wrapped.path), "the look at the capture")
    until(lambda: companion_waits(pid), "errors that nobody reads")
    assert wrapped.ask(b"last") == b"not a message"
    assert wrapped.readline() == b"done"
    before = time.monotonic()
    wrapped.stdin.close()
    assert wrapped.stderr.read().count(b"." * 1000) >= 1
    assert wrapped.wait(LIMIT) == 0
    assert time.monotonic() - before < END + SLACK


def companion_waits(pid):
    """Return whether the companion has written, and sleeps."""
    written = Path(f"/proc/{pid}/io").read_text().split("syscw: ")[1].split()[0]
    return int(written) > 10 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_companion_does_not_outlive_wrap(checked, number):
    wrapped = checked("cat")
    wrapped.ask(PING)
    pid = companion_of(wrapped)
    until(lambda: following(pid, wrapped.path), "the look at the capture")
    wrapped.send_signal(number)
    wrapped.stderr.read()
    assert wrapped.wait(LIMIT) == -number
    until(lambda: not running(pid), "the end of the companion")


def test_a_signal_to_the_group_is_not_for_the_companion(checked):
    """Otherwise it would end before it has reported its findings, or with a traceback."""
    wrapped = checked(
        *python(FAULTY.replace("import sys", "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)"))
    )
    wrapped.ask(PING)
    pid = companion_of(wrapped)
    os.killpg(wrapped.pid, signal.SIGINT)
    assert b"[framing/not-json]" in wrapped.stderr.readline()
    assert running(pid)
    assert b"Traceback" not in wrapped.finish()[1]


def test_without_a_capture_there_is_nothing_to_check(wrap, tmp_path):
    wrapped = wrap("cat", options=("-o", str(tmp_path / "no" / "such" / "file"), "--check"))
    assert wrapped.ask(b"not a message") == b"not a message"
    _, err, code = wrapped.finish()
    assert (code, err.count(b"\n")) == (0, 1)
    assert b"cannot write a capture" in err


def test_the_wrap_path_stays_light_with_a_companion(tmp_path):
    """S-13."""
    found = imported(str(tmp_path), "wrap", "--check", "--", "true")
    assert "mcpspy.relay.stdio.companion" in found
    assert {name for name in found if not name.startswith("mcpspy")} <= LIGHT
    assert "mcpspy.relay.stdio.companion" not in imported(str(tmp_path), "wrap", "--", "true")


# Without a process


def test_a_companion_that_cannot_start_is_said_once_and_waited_for_by_nobody(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no room")

    said = []
    monkeypatch.setattr(companion.os, "posix_spawn", refuse)
    started = Companion("capture.jsonl", said.append)
    started.wake()
    started.wake()
    until(lambda: said, "the sentence")
    before = time.monotonic()
    started.end(5)
    assert time.monotonic() - before < 4
    assert said == ["cannot check the traffic (OSError: no room); traffic goes on"]


def test_a_companion_that_was_never_woken_is_ended_at_once(monkeypatch):
    pids = []
    monkeypatch.setattr(companion.os, "setpriority", lambda which, pid, value: pids.append(pid))
    started = Companion(os.devnull, print)  # no capture: its thread must not start a useful check, and has to end
    before = time.monotonic()
    started.end(5)
    assert time.monotonic() - before < 4
    started.wake()
    until(lambda: pids, "the process")
    started.end(0)
    os.waitpid(pids[0], 0)


def test_the_package_that_wrap_belongs_to_is_run_whatever_else_is_installed(tmp_path):
    for name in ("ours", "theirs"):
        folder = tmp_path / name / "mcpspy" / "report"
        folder.mkdir(parents=True)
        for package in (folder, folder.parent):
            (package / "__init__.py").touch()
        (folder / "companion.py").write_text(f"def main(): print({name!r})")
    command = [sys.executable, "-P", "-c", companion.PROGRAM, "capture", "1", str(tmp_path / "ours")]
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "theirs")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=LIMIT)
    assert done.stdout == "ours\n"
