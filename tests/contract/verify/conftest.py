"""Benches of small servers, run directly and through wrappers with planted faults."""

import os
import sys

import pytest

from mcpspy.contract.verify import stdio
from mcpspy.contract.verify.proof import found_out
from mcpspy.process.child import environment
from tests.contract.verify import PYTHON, SERVER, WRAPPER


@pytest.fixture
def bench(tmp_path):
    """Return a function that makes a bench from the server's habits and the wrapper's fault; None is mcpspy itself."""

    def make(*habits, fault="none", seconds=20.0):
        own = [sys.executable, "-P", "-m", "mcpspy", "wrap", "--capture-dir", str(tmp_path), "--"]
        through = own if fault is None else [*PYTHON, WRAPPER, fault]
        return stdio.StdioBench([*PYTHON, SERVER, *habits], through, environment(), str(tmp_path), seconds)

    return make


@pytest.fixture(scope="session")
def plan(tmp_path_factory):
    """The session plan for the small server."""
    bench = stdio.StdioBench([*PYTHON, SERVER], (), environment(), str(tmp_path_factory.mktemp("plan")), 20.0)
    return found_out(bench.connect, 20, {})


def alive(pid):
    """Return whether a process runs and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return os.path.exists(f"/proc/{pid}")
