"""Calls of a tool over stdio, for fastmcp, whose proxy answers pings itself and serializes every message again.

So only the text in the results is compared. The server is in Python and has one tool, and there are fewer calls,
because fastmcp is slow. The variants compared with it have the same server and the same calls.
"""

import json
import os
import sys
from collections.abc import Iterator
from time import perf_counter_ns

from benchmarks.relay.captures import verify
from benchmarks.relay.processes import Broken, Peer, running
from benchmarks.relay.traffic import HANDSHAKE, PLAIN
from benchmarks.relay.usage import resident
from benchmarks.rival.plan import Stdio

SERVER = [sys.executable, "-I", "-S", os.path.join(os.path.dirname(os.path.abspath(__file__)), "echo.py")]


def calls(plan: Stdio, variant: str, size: int, count: int, warmups: int = 0) -> tuple[list[int], float]:
    """Return the nanoseconds of each call with a request of `size` bytes, and the peak memory of the variant in MB."""
    sent, came, taken = [], [], []
    with running(plan.stages(variant, SERVER), plan.environ, plan.scale.seconds) as peer:
        for line, reply, _ in HANDSHAKE:
            sent.append(line)
            os.write(peer.to, line)
            if reply:
                came.append(_line(peer))
        for n in range(warmups + count):
            request, text = _request(n + 1, size)
            start = perf_counter_ns()
            _write(peer, request)
            answer = _line(peer)
            taken.append(perf_counter_ns() - start)
            if json.loads(answer)["result"]["content"][0]["text"] != text:
                raise Broken("a result came back changed")
            sent.append(request)
            came.append(answer)
        peak = resident(peer.pids[0], "VmHWM")
    log = plan.log(variant)
    if log:
        verify(log, {1: iter(sent), 2: iter(came)})
        os.remove(log.path)
    return taken[warmups:], peak


def first_answer(plan: Stdio, variant: str) -> float:
    """Return the milliseconds from the spawn to the answer to an `initialize` that is already on stdin."""
    with running(plan.stages(variant, SERVER), plan.environ, plan.scale.seconds, first=HANDSHAKE[0][0]) as peer:
        peer.read()
        return (perf_counter_ns() - peer.started) / 1e6


def _request(n: int, size: int) -> tuple[bytes, str]:
    head = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"' % n
    tail = b'"}}}\n'
    room = size - len(head) - len(tail)
    text = (PLAIN * (room // len(PLAIN) + 1))[:room]
    return head + text + tail, text.decode()


def _write(peer: Peer, request: bytes) -> None:
    view = memoryview(request)
    while view:
        view = view[os.write(peer.to, view) :]


def _line(peer: Peer) -> bytes:
    return b"".join(_chunks(peer))


def _chunks(peer: Peer) -> Iterator[bytes]:
    chunk = b""
    while not chunk.endswith(b"\n"):
        chunk = peer.read()
        yield chunk
