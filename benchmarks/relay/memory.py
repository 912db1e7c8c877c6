"""The row about memory: one line of 100 MB, passing each way at once through `wrap -- cat`."""

import hashlib
import os
from collections.abc import Iterator
from threading import Thread

from benchmarks.relay.captures import pieces
from benchmarks.relay.figures import Result, Row, Target
from benchmarks.relay.plan import WRAP, Plan
from benchmarks.relay.processes import CHUNK, Broken, Peer, running
from benchmarks.relay.traffic import HANDSHAKE, exchange, ping, prose
from benchmarks.relay.usage import resident


def memory(plan: Plan) -> Result:
    idle, peak = _passing(plan, WRAP, plan.scale.long_frame, 1)
    size = plan.scale.long_frame // 1_000_000
    rows = [
        Row(f"memory: peak while {size} MB pass each way", [peak], Target(25, unit="MB")),
        Row("memory: idle", [], text=f"{idle:.2f} MB"),
    ]
    return Result(rows, {"memory: MB": {"idle": [idle], "peak": [peak]}})


def peak_of(plan: Plan, variant: str, size: int, count: int) -> float:
    """Return the peak in MB of a variant while `count` lines of `size` bytes pass each way."""
    return _passing(plan, variant, size, count)[1]


def _passing(plan: Plan, variant: str, size: int, count: int) -> tuple[float, float]:
    """Return MB of a variant around `cat`: idle, and the peak once the lines have passed."""
    first = HANDSHAKE[0][0]
    with running(plan.stages(variant, ["cat"]), plan.environ, plan.scale.seconds) as peer:
        exchange(peer, first, first)
        idle = resident(peer.pids[0], "VmRSS")
        passed = [_both_ways(peer, size) for _ in range(count)]
        peak = resident(peer.pids[0], "VmHWM")
    _verify(plan, first, passed)
    os.remove(plan.capture)
    return idle, peak


def _line(size: int) -> Iterator[bytes]:
    """Yield one ping of exactly `size` bytes, in chunks, so that nobody needs to hold it."""
    middle = prose(CHUNK)[len(b'{"_meta":{"text":"') : -len(b'"}}}\n')]
    head, tail = ping(0, b'{"_meta":{"text":"')[0], b'"}}}\n'
    yield head
    whole, rest = divmod(size - len(head) - len(tail), len(middle))
    for _ in range(whole):
        yield middle
    yield b"." * rest + tail


def _both_ways(peer: Peer, size: int) -> str:
    """Send the line from a thread while we read it back; return its digest, which must be that of what came."""
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


def _verify(plan: Plan, first: bytes, passed: list[str]) -> None:
    """Prove that the capture holds, on both channels, the short line and then the long ones."""
    frames: dict[int, list[str]] = {1: [], 2: []}
    digests = {ch: hashlib.sha256() for ch in frames}
    for ch, raw, more in pieces(plan.capture):
        digests[ch].update(raw)
        if not more:
            digests[ch].update(b"\n")
            frames[ch].append(digests[ch].hexdigest())
            digests[ch] = hashlib.sha256()
    expected = [hashlib.sha256(first).hexdigest(), *passed]
    if frames != {1: expected, 2: expected}:
        raise Broken("the capture does not hold the long line as it passed")
