"""A server has time to exit by itself, and again after SIGTERM; SIGKILL is the last."""

import signal
import subprocess
import sys

import pytest

from mcpspy.process.ending import KILL, end, signal_group
from tests.limits import LIMIT, Popen
from tests.relay.harness import running, until


@pytest.mark.parametrize(
    ("dies_by", "sent", "waited"),
    [
        (None, [], [1]),
        (signal.SIGTERM, [signal.SIGTERM], [1, 2]),
        (KILL, [signal.SIGTERM, KILL], [1, 2]),
    ],
)
def test_each_signal_is_sent_only_if_the_one_before_was_not_enough(dies_by, sent, waited):
    signals, waits = [], []

    def gone(seconds):
        waits.append(seconds)
        return dies_by is None or dies_by in signals

    end(gone, signals.append, 1, 2)
    assert (signals, waits) == (sent, waited)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no groups to signal")
def test_a_signal_reaches_the_whole_group_and_is_told_if_there_is_none():
    source = "import os, time; child = os.fork()\nif child: print(child, flush=True)\ntime.sleep(60)"
    with Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout
        child = int(leader.stdout.readline())
        assert signal_group(leader.pid, KILL)
        assert leader.wait(LIMIT) == -KILL
    until(lambda: not running(child), "the end of the child")
    with Popen([sys.executable, "-c", ""], start_new_session=True) as alone:
        alone.wait(LIMIT)
    assert not signal_group(alone.pid, KILL)
