"""Four thousand sequential calls with the same progress token, on one core, have no findings.

On one core, a relay that forwards before it records sometimes records a response before its request.
"""

import os
import signal
import subprocess
import sys

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.rules import LocatedFinding
from mcpspy.rules.judge import judged_events
from tests.peers import prepare
from tests.peers.serving import LIMIT, PATHS, running, serving

CALLS = 4000
PATIENCE = 600  # seconds

pytestmark = [
    pytest.mark.field,
    pytest.mark.timeout(PATIENCE),
    pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores can be chosen on Linux only"),
]


@pytest.fixture(autouse=True)
def _one_core():
    """Restrict this process, and all processes that it starts, to one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    yield
    os.sched_setaffinity(0, cores)


def call(*where):
    """Run the client of the Python SDK."""
    done = subprocess.run(prepare.caller(CALLS, *where), capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr.decode()


def found(path):
    """Check that a capture has all calls, and return the findings in it."""
    events = list(judged_events(Capture(str(path)).records()))
    assert sum(getattr(it, "method", None) == "tools/call" for it in events) == 2 * CALLS
    return [it.finding for it in events if isinstance(it, LocatedFinding)]


def test_over_stdio_there_is_no_finding(tmp_path):
    """R-01, through `wrap`."""
    capture = tmp_path / "capture.jsonl"
    wrap = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--"]
    call("--", *wrap, *prepare.server("python1"))
    assert found(capture) == []


def test_over_http_there_is_no_finding(tmp_path):
    """R-01, through `proxy`."""
    capture = tmp_path / "capture.jsonl"
    with serving("python1", "http") as url:
        proxy = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "-o", str(capture), url]
        with running(proxy) as process:
            ours = process.stdout.readline().strip()
            assert ours.endswith(PATHS["http"])
            call(ours)
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0
    assert found(capture) == []
