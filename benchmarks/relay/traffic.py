"""The requests and their expected replies, and how to run them.

Frames are real MCP, so `--check` has no findings: an initialize handshake of 2025-06-18, then pings. The server returns
a ping's params as its result, so the reply is known in advance. Every byte of it is compared, outside of the measured
time.
"""

import os
import time
from collections.abc import Callable, Iterator
from random import Random

from benchmarks.relay.captures import verify
from benchmarks.relay.plan import Plan
from benchmarks.relay.processes import Broken, Peer, running
from benchmarks.relay.server import PING, RESULT, WELCOME

Step = tuple[bytes, bytes, bool]
"""A request, its whole reply (empty if there is none), and whether the round trip counts."""

HANDSHAKE: list[Step] = [
    (
        (
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
            b'"clientInfo":{"name":"bench","version":"1"}}}\n'
        ),
        WELCOME,
        False,
    ),
    (b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', b"", False),
]
PROSE = (
    rb"The relay passes every byte on and keeps a copy of each frame that went by;\n"
    rb"\"quoted\" words stand in every second line, as they do in a page of text.\n"
)
PLAIN = b"The relay passes every byte on and keeps a copy. "
DENSE = b'{"name":"get_forecast","value":17,"unit":"mm","ok":true},'
PINGS_BEHIND = 20  # pings behind a big frame; the first, which is delayed, is 5 % of them and appears in the p99
BIG = 8_000_000


def ping(n: int, body: bytes) -> tuple[bytes, bytes]:
    """Return a ping and its reply. `body` is from `prose`, `plain` or `dense`."""
    head = b'{"jsonrpc":"2.0","id":%d' % (1_000_000 + n)
    return head + PING + body, head + RESULT + body


def prose(size: int) -> bytes:
    """Return the rest of a ping of `size` bytes after its head, newline included: lines of 75 letters, some quotes."""
    return _filled(b'{"_meta":{"text":"', PROSE, size)


def plain(size: int) -> bytes:
    """Return the same with text that has no line end and no quote, so that nothing needs escaping."""
    return _filled(b'{"_meta":{"text":"', PLAIN, size)


def dense(size: int) -> bytes:
    """Return the same with JSON that is mostly quotes and commas, which costs the most to escape."""
    count = (size - 200) // len(DENSE)
    return _filled(b'{"_meta":{"rows":[' + (DENSE * count)[:-1] + b'],"text":"', PLAIN, size)


def _filled(start: bytes, text: bytes, size: int) -> bytes:
    whole, rest = divmod(size - len(ping(0, start + b'"}}}\n')[0]), len(text))
    return start + text * whole + b"." * rest + b'"}}}\n'  # `text` is never cut, so no escape is cut


def pings(body: bytes, samples: int, warmups: int) -> Iterator[Step]:
    yield from HANDSHAKE
    for n in range(warmups + samples):
        yield *ping(n, body), n >= warmups


def mixed(big_frames: int) -> Iterator[Step]:
    """Yield 8 MB in each direction, directly followed by small frames. Only the small ones count."""
    yield from HANDSHAKE
    big, small = prose(BIG), prose(200)
    for n in range(0, big_frames * (PINGS_BEHIND + 1), PINGS_BEHIND + 1):
        yield *ping(n, big), False
        for behind in range(1, PINGS_BEHIND + 1):
            yield *ping(n + behind, small), True


def round_trips(plan: Plan, variant: str, script: Callable[[], Iterator[Step]], paced: bool = False) -> list[int]:
    """Run the script through `variant`, check that nothing was lost, and return the nanoseconds of counted round trips.

    `paced` waits 300 to 500 µs before each request. A variant that records has begun to record before the first round
    trip that counts: what passes while it starts is only kept, which is cheaper.
    """
    pauses = Random(1)  # noqa: S311 (the same pauses for every variant)
    taken: list[int] = []
    log, counting = plan.log(variant), False
    with running(plan.stages(variant, plan.server), plan.environ, plan.scale.seconds) as peer:
        for request, reply, counts in script():
            if counts and not counting:
                counting = True
                if log:
                    _await_frames(log.path, plan.scale.seconds)
            if paced:
                time.sleep(pauses.uniform(300e-6, 500e-6))
            spent = exchange(peer, request, reply)
            if counts:
                taken.append(spent)
    if log:
        verify(log, {1: (step[0] for step in script()), 2: (step[1] for step in script() if step[1])})
        os.remove(log.path)
    return taken


def _await_frames(path: str, seconds: float) -> None:
    """Wait until the capture has a frame. Raises Broken."""
    deadline = time.monotonic() + seconds
    while not (os.path.exists(path) and b'"frame"' in _start_of(path)):
        if time.monotonic() > deadline:
            raise Broken("the capture has no frame")
        time.sleep(0.001)


def _start_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1 << 16)


def exchange(peer: Peer, request: bytes, reply: bytes) -> int:
    """Send one frame, and return the nanoseconds until the last byte of its reply arrived."""
    start = time.perf_counter_ns()
    os.write(peer.to, request)
    chunks, missing = [], len(reply)
    while missing > 0:
        chunk = peer.read()
        chunks.append(chunk)
        missing -= len(chunk)
    spent = time.perf_counter_ns() - start
    if b"".join(chunks) != reply:
        raise Broken("a reply came back changed")
    return spent
