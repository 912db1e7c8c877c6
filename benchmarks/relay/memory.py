"""The row about memory: one line of 100 MB that passes `wrap -- cat` in both directions at the same time."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Thread
from time import perf_counter

from benchmarks.relay.captures import Log
from benchmarks.relay.figures import Result, Row, Target
from benchmarks.relay.plan import WRAP, Plan
from benchmarks.relay.processes import CHUNK, Broken, Peer, running
from benchmarks.relay.traffic import HANDSHAKE, exchange, ping, prose
from benchmarks.relay.usage import resident


def memory(plan: Plan) -> Result:
    passed = passing(plan, WRAP, plan.scale.long_frame, 1)
    verify(Log(plan.capture), passed)
    size = plan.scale.long_frame // 1_000_000
    rows = [
        Row(f"memory: peak while {size} MB pass each way", [passed.peak], Target(25, unit="MB")),
        Row("memory: idle", [], text=f"{passed.idle:.2f} MB"),
    ]
    return Result(rows, {"memory: MB": {"idle": [passed.idle], "peak": [passed.peak]}})


def peak_of(plan: Plan, variant: str, size: int, count: int) -> float:
    """Return the peak memory of a variant in MB while `count` lines of `size` bytes pass in both directions."""
    passed = passing(plan, variant, size, count)
    verify(Log(plan.capture), passed)
    return passed.peak


@dataclass(frozen=True, slots=True)
class Passed:
    """The memory and time to pass lines in both directions at the same time."""

    idle: float
    peak: float
    """Memory in MB: `idle` is before the first line, `peak` is the maximum."""
    seconds: float
    frames: list[str]
    """The digest of every line, which is the same on each channel."""


def passing(plan: Plan, variant: str, size: int, count: int) -> Passed:
    """Pass a short line, then `count` lines of `size` bytes, through a variant around `cat`, and read them back."""
    first = HANDSHAKE[0][0]
    with running(plan.stages(variant, ["cat"]), plan.environ, plan.scale.seconds) as peer:
        exchange(peer, first, first)
        idle = resident(peer.pids[0], "VmRSS")
        start = perf_counter()
        frames = [_both_ways(peer, size) for _ in range(count)]
        seconds = perf_counter() - start
        peak = resident(peer.pids[0], "VmHWM")
    return Passed(idle, peak, seconds, [hashlib.sha256(first).hexdigest(), *frames])


def _line(size: int) -> Iterator[bytes]:
    """Yield one ping of exactly `size` bytes in chunks, so that it is never in memory as a whole."""
    middle = prose(CHUNK)[len(b'{"_meta":{"text":"') : -len(b'"}}}\n')]
    head, tail = ping(0, b'{"_meta":{"text":"')[0], b'"}}}\n'
    yield head
    whole, rest = divmod(size - len(head) - len(tail), len(middle))
    for _ in range(whole):
        yield middle
    yield b"." * rest + tail


def _both_ways(peer: Peer, size: int) -> str:
    """Send the line in a thread and read it back. Return its digest, which both directions must share."""
    sent, came = hashlib.sha256(), hashlib.sha256()

    def send() -> None:
        for chunk in _line(size):
            sent.update(chunk)
            os.write(peer.to, chunk)

    sender = Thread(target=send, daemon=True)  # blocked for ever if the pipeline dies before our end is closed
    sender.start()
    missing = size
    while missing > 0:
        chunk = peer.read()
        came.update(chunk)
        missing -= len(chunk)
    sender.join()
    if missing < 0 or sent.digest() != came.digest():
        raise Broken("the long line came back changed")
    return sent.hexdigest()


def verify(log: Log, passed: Passed) -> None:
    """Check that the recording has both channels unchanged, and remove it. Raises Broken."""
    frames: dict[int, list[str]] = {1: [], 2: []}
    digests = {ch: hashlib.sha256() for ch in frames}
    for ch, raw, more in log.pieces():
        digests[ch].update(raw)
        if not more:
            digests[ch].update(b"\n")
            frames[ch].append(digests[ch].hexdigest())
            digests[ch] = hashlib.sha256()
    os.remove(log.path)
    if frames != {1: passed.frames, 2: passed.frames}:
        raise Broken("the long line was not recorded as it passed")
