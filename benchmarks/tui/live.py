"""The row about a live session: the time from the write of a frame to its row in the output of the terminal."""

import os
import re
import subprocess
import sys

from benchmarks.relay.figures import Result, Row, Target, percentile
from benchmarks.relay.processes import Broken
from benchmarks.tui.plan import Plan
from benchmarks.tui.terminal import Terminal

RATE = 1000
"""Frames per second."""
_NUMBER = re.compile(r"tools/call t(\d{7})")


def live(plan: Plan) -> Result:
    path = os.path.join(plan.folder, "live.jsonl")
    command = [sys.executable, "-m", "benchmarks.tui.traffic", path, str(RATE), str(plan.scale.live_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            shown = _watch(plan, path)
            stamps = [int(line) for line in writer.communicate(timeout=plan.scale.seconds)[0].split()]
        finally:
            writer.kill()
    os.remove(path)
    samples = _latencies(stamps, shown)
    p50, p99, most = (percentile(samples, share) / 1e3 for share in (0.5, 0.99, 1))
    what = f"{RATE:,} frames/s: from the write to the row"
    return Result(
        [
            Row(f"{what}, p50", [p50], Target(150, unit="ms")),
            Row(f"{what}, p99", [p99], Target(150, unit="ms")),
            Row(f"{what}, max", [], text=f"{most:.0f} ms of {len(samples):,} frames"),
        ],
        {"live: ms": {"latency": [sample / 1e6 for sample in samples]}},
    )


def _watch(plan: Plan, path: str) -> list[tuple[int, int]]:
    """Follow the session to its end. Return the highest frame number shown and the clock, each time that it grew."""
    while not os.path.exists(path) or not os.path.getsize(path):
        continue  # the writer is a Python process, which takes a moment to start
    shown: list[tuple[int, int]] = []
    with Terminal([sys.executable, "-m", "mcpspy", "tui", path], plan.folder) as terminal:
        deadline = terminal.started + int(plan.scale.seconds * 1e9)
        while True:
            now, text = terminal.read(1)
            if now > deadline:
                raise Broken("the session did not end")
            newest = max(map(int, _NUMBER.findall(text)), default=-1)
            if newest > (shown[-1][1] if shown else -1):
                shown.append((now, newest))
            if "· ended ·" in text:
                return shown


def _latencies(stamps: list[int], shown: list[tuple[int, int]]) -> list[int]:
    """Return the nanoseconds from the write of each frame until the screen showed it or a later one.

    Frames that were written before the first rows were shown do not count.
    """
    samples = []
    moments = iter(shown)
    began, newest = next(moments)
    begin = newest + 1  # earlier frames were in the first rows, which do not count
    moment = began
    for number in range(begin, len(stamps)):
        while newest < number:
            found = next(moments, None)
            if found is None:
                raise Broken(f"frame {number} never came on the screen")
            moment, newest = found
        if stamps[number] > began:
            samples.append(moment - stamps[number])
    return samples
