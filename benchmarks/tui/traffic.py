"""Captures for the TUI: a large one, and one that a process writes at a steady rate, like a relay.

`python -m benchmarks.tui.traffic FILE RATE SECONDS` is that process. At its end it prints one line per frame: the clock
in nanoseconds before the write. The tool name in a frame contains the frame's number.
"""

import json
import os
import sys
import time
from time import monotonic_ns

from mcpspy.capture.writer import Writer, create

FIRST = 5
"""The line of the first frame, after a header and three channels."""
_TEXT = "Light rain until the evening, then clear; wind from the west at 12 km/h. "


def begin(path: str) -> Writer:
    """Begin a capture of a stdio server."""
    header: dict[str, object] = {"tool": "mcpspy", "transport": "stdio", "name": "weather", "argv": ["weather"]}
    writer = create(header, output=path, folder=None, environ={}, wall=time.time_ns(), say=print)
    if writer is None:
        sys.exit(2)
    for ch, (sender, role) in enumerate((("client", "stdin"), ("server", "stdout"), ("server", "stderr")), 1):
        writer.open(ch, 0, sender, role, "lines")
    return writer


def request(number: int) -> bytes:
    """Return a call of a tool whose name contains the number."""
    params = {"name": f"t{number:07}", "arguments": {"city": "Bergen", "days": 3}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def large(path: str, size: int) -> int:
    """Write a capture of about `size` bytes: small requests, and results of about 3 kB. Return the number of rows."""
    writer = begin(path)
    body = json.dumps({"content": [{"type": "text", "text": _TEXT * 40}]})
    rows = 0
    while os.path.getsize(path) < size:
        for _ in range(500):
            t = rows * 1_000_000
            writer.frame(1, t, request(rows), False, False)
            reply = f'{{"jsonrpc":"2.0","id":{rows},"result":{body}}}'
            writer.frame(2, t + 500_000, reply.encode(), False, False)
            rows += 2
    writer.end(rows * 1_000_000, 0, None)
    return rows + 1


def steady(path: str, rate: int, seconds: float) -> list[int]:
    """Write `rate` frames per second, each at its time. Return the clock before each write."""
    writer = begin(path)
    start = monotonic_ns()
    stamps: list[int] = []
    for number in range(int(rate * seconds)):
        due = start + number * 1_000_000_000 // rate
        while (now := monotonic_ns()) < due:
            time.sleep((due - now) / 1e9)
        stamps.append(now)
        writer.frame(1, now - start, request(number), False, False)
    time.sleep(1)  # the last rows must appear while the session is live
    writer.end(monotonic_ns() - start, 0, None)
    return stamps


if __name__ == "__main__":
    print(*steady(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])), sep="\n")
