"""Every held frame has a release record, however `mcpspy wrap` ends (A-19)."""

import os
import signal
from pathlib import Path

import pytest

from mcpspy.capture.records import End, Frame, Release
from tests.relay.harness import LIMIT, python, until
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
def holding(wrap):
    """Start a relay that holds frames `to` one side, and wait until they are held; end its server after the test."""
    started = []

    def start(to, *command, size=10, count=COUNT):
        gates = [compiled({"hold": 600 * SECOND}, **{"from": "client" if to == "server" else "server"})]
        wrapped = wrap(*(command or python(f"SIZE = {size}\n{SENDS}")), gates=gates)
        started.append(wrapped)
        if to == "server":
            wrapped.stdin.write((LINE % ("x" * size) + "\n").encode() * count)
        until(lambda: wrapped.recording() and wrapped.path.read_bytes().count(b'"held":') == count, "held frames")
        return wrapped

    yield start
    for process in started:
        for child in children(process):
            os.kill(child, signal.SIGKILL)


def children(process):
    """Return the processes whose parent is the relay or its server."""
    found, task = [], f"/proc/{process.pid}/task/{process.pid}/children"
    while Path(task).exists() and (pids := Path(task).read_text().split()):
        found.append(int(pids[0]))
        task = f"/proc/{pids[0]}/task/{pids[0]}/children"
    return found


def released(wrapped):
    """Return the releases of a finished session: one for each held frame."""
    records = list(wrapped.capture.records(1 << 62))
    found = [it for it in records if isinstance(it, Release)]
    assert isinstance(records[-1], End)
    assert sorted(it.held for it in found) == [it.held for it in records if isinstance(it, Frame) and it.held]
    return found


@pytest.mark.parametrize(("name", "to"), [("TERM", "server"), ("INT", "client"), ("HUP", "server"), ("QUIT", "client")])
def test_a_signal_releases_every_held_frame(holding, name, to):
    """A-19: the server dies by the same signal."""
    wrapped = holding(to, *(["cat"] if to == "server" else []))
    wrapped.send_signal(signal.Signals[f"SIG{name}"])
    wrapped.communicate(timeout=LIMIT)
    assert len(released(wrapped)) == COUNT


def test_a_server_that_exits_releases_every_held_frame(holding):
    """A-19: nothing that is held can be forwarded."""
    wrapped = holding("server", *SLEEPS)
    os.kill(children(wrapped)[0], signal.SIGKILL)
    wrapped.communicate(timeout=LIMIT)
    assert [(it.how, it.dropped) for it in released(wrapped)] == [("closed", True)] * COUNT


def test_a_client_that_leaves_releases_every_held_frame(holding):
    """A-19: frames to the server are forwarded when the client's stream ends.

    If the server exits after the first line, the thread that releases the others is not done when the server is.
    """
    wrapped = holding("server", "cat", count=FEWER)
    out, _ = wrapped.communicate(timeout=LIMIT)
    assert out.count(b"\n") == len(released(wrapped)) == FEWER
    wrapped = holding("server", *python("input()"), count=FEWER)
    wrapped.finish(None)
    assert len(released(wrapped)) == FEWER


@pytest.mark.parametrize(("to", "command"), [("client", ()), ("server", LEAVES_A_READER)])
def test_a_peer_that_reads_nothing_keeps_no_release_from_being_recorded(holding, to, command):
    """A-19, A-05: the thread that writes to it never returns. `LEAVES_A_READER` leaves a process that holds stdin."""
    wrapped = holding(to, *command, size=900)
    wrapped.send_signal(signal.SIGTERM)
    wrapped.wait(LIMIT)
    found = released(wrapped)
    assert len(found) == COUNT
    assert any(it.dropped for it in found)
