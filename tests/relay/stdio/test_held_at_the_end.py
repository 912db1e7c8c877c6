"""Every held frame has a release record, however `mcpspy wrap` ends (A-19)."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame, Release
from tests import limits
from tests.relay import gated
from tests.relay.harness import LIMIT, end_group, python, until
from tests.relay.stdio.pair import SECOND, compiled

COUNT = 1000
FEWER = COUNT - 1
"""With so many held frames, the relay still reads from the client, and notices its end."""
LINE = '{"jsonrpc":"2.0","method":"m","params":"%s"}'
SENDS = (
    f"import sys, time\nfor n in range({COUNT}): print({LINE!r} % ('x' * SIZE))\nsys.stdout.flush()\ntime.sleep(600)"
)
SLEEPS = python("import time; time.sleep(600)")
LEAVES_A_READER = python("""
import os, time
relay = os.getppid()
if os.fork() == 0:
    os.setsid(), os.close(1), os.close(2)
while True:
    time.sleep(0.1)
    os.kill(relay, 0)  # it ends with the relay
""")


@pytest.fixture
def holding(tmp_path):
    """Start a relay that holds frames `to` one side, and wait until they are held; end it after the test."""
    path, started = tmp_path / "capture.jsonl", []

    def start(to, *command, size=10, count=COUNT):
        gates = [compiled({"hold": 600 * SECOND}, **{"from": "client" if to == "server" else "server"})]
        program = [sys.executable, gated.__file__, str(path), json.dumps(gates)]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        server = command or python(f"SIZE = {size}\n{SENDS}")
        process = limits.Popen(
            [*program, *server], stdin=-1, stdout=-1, stderr=-1, env=environ, start_new_session=True, bufsize=0
        )
        started.append(process)
        if to == "server":
            process.stdin.write((LINE % ("x" * size) + "\n").encode() * count)
        until(lambda: path.exists() and path.read_bytes().count(b'"held":') == count, f"{count} held frames")
        return path, process

    yield start
    for process in started:
        for child in children(process):
            os.kill(child, signal.SIGKILL)
        end_group(process)


def children(process):
    """Return the processes whose parent is the relay or its server."""
    found, task = [], f"/proc/{process.pid}/task/{process.pid}/children"
    while Path(task).exists() and (pids := Path(task).read_text().split()):
        found.append(int(pids[0]))
        task = f"/proc/{pids[0]}/task/{pids[0]}/children"
    return found


def released(path):
    """Return the releases of a finished session: one for each held frame."""
    records = list(Capture(str(path)).records(1 << 62))
    found = [it for it in records if isinstance(it, Release)]
    assert isinstance(records[-1], End)
    assert sorted(it.held for it in found) == [it.held for it in records if isinstance(it, Frame) and it.held]
    return found


@pytest.mark.parametrize("to", ["server", "client"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_releases_every_held_frame(holding, to, number):
    """A-19: the server dies by the same signal."""
    path, process = holding(to, *(["cat"] if to == "server" else []))
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert len(released(path)) == COUNT


def test_a_server_that_exits_releases_every_held_frame(holding):
    """A-19: nothing that is held can be forwarded."""
    path, process = holding("server", *SLEEPS)
    os.kill(children(process)[0], signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    assert [(it.how, it.dropped) for it in released(path)] == [("closed", True)] * COUNT


def test_a_server_that_exits_while_frames_are_released(holding):
    """A-19: it reads the first line, and the thread that releases the others is not done when the server is."""
    path, process = holding("server", *python("input()"), count=FEWER)
    process.stdin.close()
    process.stdout.read()
    process.wait(LIMIT)
    assert len(released(path)) == FEWER


def test_a_client_that_leaves_releases_every_held_frame(holding):
    """A-19: frames to the server are forwarded when the client's stream ends."""
    path, process = holding("server", "cat", count=FEWER)
    out, _ = process.communicate(timeout=LIMIT)
    assert out.count(b"\n") == len(released(path)) == FEWER


@pytest.mark.parametrize(("to", "command"), [("client", ()), ("server", LEAVES_A_READER)])
def test_a_peer_that_reads_nothing_keeps_no_release_from_being_recorded(holding, to, command):
    """A-19, A-05: the thread that writes to it never returns. `LEAVES_A_READER` leaves a process that holds stdin."""
    path, process = holding(to, *command, size=900)
    process.send_signal(signal.SIGTERM)
    process.wait(LIMIT)
    found = released(path)
    assert len(found) == COUNT
    assert any(it.dropped for it in found)
