"""Runs on stdio keep the bytes that passed at both ends."""

import signal

import pytest

from mcpspy.contract.verify.proof import found_out
from mcpspy.contract.verify.stdio import ODD_LINES


@pytest.mark.parametrize("fault", [None, "drop-out"])
def test_a_run_has_both_ends(bench, plan, fault):
    found = bench(fault=fault or "none").run(plan, wrapped=fault is not None)
    assert found.streams["stdin"].written == found.streams["stdin"].arrived
    assert found.streams["stdin"].written.splitlines()[0] == plan.messages[0].line
    written, arrived = found.streams["stdout"].written, found.streams["stdout"].arrived
    assert len(written) - len(arrived) == (fault is not None)
    assert (found.server_end, found.end, found.ended) == ("exited with status 0", "exited with status 0", True)
    assert found.facts["group"] == found.facts["session"] == "the client's"


def test_a_signal_ends_a_run_after_the_handshake(bench, plan):
    found = bench().run(plan, wrapped=False, number=signal.SIGINT)
    assert (found.signals, found.end) == (("SIGINT",), "exited with status 7")
    assert found.streams["stdin"].written.count(b"\n") == len(plan.greeting)


def test_times_are_measured_without_a_probe(bench, plan):
    took, pings = bench().timed(plan, wrapped=False, pings=4)
    assert 0 < took < 60e9
    assert len(pings) == 4


def test_a_server_that_dies_is_timed_as_far_as_it_goes(bench):
    own = bench("dies")
    plan = found_out(own.connect, 20, {})
    assert len(own.timed(plan, wrapped=False, pings=2)[1]) == 2


def test_wrap_gives_back_odd_lines_as_they_are(bench):
    found = bench(fault=None).echoed()
    assert found.written == found.arrived
    assert found.written.split(b"\n") == [*ODD_LINES, b""]
