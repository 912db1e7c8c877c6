"""The row about throughput: the server sends 4 KB frames as fast as they are read."""

import os
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.relay.captures import verify
from benchmarks.relay.figures import Result, Rounds, Row, Target, ratios
from benchmarks.relay.plan import BARE, WRAP, Plan
from benchmarks.relay.processes import Broken, Peer, pinned, running
from benchmarks.relay.traffic import HANDSHAKE, PROSE, exchange, ping, prose

SIZE = 4096  # newline included


def streaming(plan: Plan) -> Result:
    room = bytearray(plan.scale.stream_frames * SIZE)  # shared by all runs, so that only the first touches new pages
    speed = _measure(plan, room, pin=True)
    free = _measure(plan, room, pin=False)
    rows = [
        Row(
            "4 KB stream: throughput, wrap / bare",
            ratios(speed[WRAP], speed[BARE]),
            Target(0.2, at_least=True),
            (speed[BARE],),
        ),
        _speeds("4 KB stream: MB/s", speed),
        _speeds("4 KB stream, free-running: MB/s", free),
    ]
    return Result(rows, {"stream: MB/s": speed, "stream, free: MB/s": free})


def frame(n: int) -> bytes:
    """Return the n-th frame: a log notification that contains its number."""
    start = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%d ' % (1_000_000 + n)
    whole, rest = divmod(SIZE - len(start) - 4, len(PROSE))
    return start + PROSE * whole + b"." * rest + b'"}}\n'


def _measure(plan: Plan, room: bytearray, pin: bool) -> Rounds:
    speed: Rounds = {variant: [] for variant in plan.variants()}
    _run(plan, BARE, room)  # touches the pages of `room`
    for _ in range(plan.scale.rounds):
        for variant in plan.variants():
            with pinned(pin):
                speed[variant].append(len(room) / 1e6 / _run(plan, variant, room))
    return speed


def _run(plan: Plan, variant: str, room: bytearray) -> float:
    """Return the seconds from the request for a stream to its last byte, as the median of the passes."""
    template = os.path.join(plan.folder, "frame")
    with open(template, "wb") as file:
        file.write(frame(0))
    count, passes = plan.scale.stream_frames, plan.scale.stream_passes
    requests = [ping(n, prose(SIZE))[0] for n in range(passes)]
    spent = []
    with running(plan.stages(variant, [*plan.server, template, str(count)]), plan.environ, plan.scale.seconds) as peer:
        for line, reply, _ in HANDSHAKE:
            exchange(peer, line, reply)
        for request in requests:
            spent.append(_pass(peer, request, room))
            view = memoryview(room)
            if any(view[n * SIZE : (n + 1) * SIZE] != frame(n) for n in range(count)):
                raise Broken("the stream came changed")
    log = plan.log(variant)
    if log:
        sent = [*(step[0] for step in HANDSHAKE), *requests]
        verify(log, {1: iter(sent), 2: _received(count, passes)})
        os.remove(log.path)
    return median(spent)


def _pass(peer: Peer, request: bytes, room: bytearray) -> float:
    start = time.perf_counter()
    os.write(peer.to, request)
    _fill(peer, room)
    return time.perf_counter() - start


def _fill(peer: Peer, room: bytearray) -> None:
    view = memoryview(room)
    while view:
        count = os.readv(peer.back, [view])
        if not count:
            raise Broken("the stream ended early")
        view = view[count:]


def _received(count: int, passes: int) -> Iterator[bytes]:
    yield from (step[1] for step in HANDSHAKE if step[1])
    for _ in range(passes):
        yield from map(frame, range(count))


def _speeds(what: str, speed: Rounds) -> Row:
    return Row(what, [], text=", ".join(f"{variant} {median(values):.0f}" for variant, values in speed.items()))
