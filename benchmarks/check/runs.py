"""One run of a command on one file, start-up included.

The output goes to a file, which is read after the command has ended. A small process starts the command and waits,
because the kernel counts the memory of the parent for a new process.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import IO

from benchmarks.relay.processes import Broken

_STARTER = """\
import os, sys, time
start = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ), 0)
seconds = time.perf_counter() - start
figures = seconds, usage.ru_maxrss * 1024 / 1e6, usage.ru_utime + usage.ru_stime
os.write(int(sys.argv[1]), " ".join(map(str, figures)).encode())
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command: its duration, start-up included, and its peak memory."""

    seconds: float
    megabytes: float
    computed: float
    """CPU time in seconds, which other programs on the machine hardly change."""


def timed(command: list[str], output: IO[bytes], environ: dict[str, str] | None = None) -> Run:
    """Run a command that must end with status 0. The processes that wait for it share its cores."""
    source, sink = os.pipe()
    starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(sink), *command]
    with open(source) as figures:
        try:
            done = subprocess.run(starter, stdout=output, env=environ, pass_fds=[sink], check=False)
        finally:
            os.close(sink)
        if done.returncode:
            raise Broken(f"{os.path.basename(command[0])} ended with status {done.returncode}")
        output.seek(0)
        return Run(*map(float, figures.read().split()))


def checked(mcpspy: list[str], path: str, frames: int) -> Run:
    """Run `mcpspy check`. It must count `frames` frames and report no error or warning."""
    with tempfile.TemporaryFile() as output:
        run = timed([*mcpspy, "check", path, "--format", "json"], output)
        report = json.load(output)
    (capture,), totals = report["captures"], report["totals"]
    if capture["frames"] != frames or totals["error"] or totals["warning"]:
        raise Broken(f"the check of {frames:,} frames went wrong: {capture['frames']:,} seen, {totals} found")
    return run
