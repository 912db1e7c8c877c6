"""Captures to look at: a large one, and one that a relay-like process is writing at a steady rate.

`python -m benchmarks.tui.traffic FILE RATE SECONDS` is that process: it prints the clock, in nanoseconds, before each
frame that it wrote, one a line, when it is done. The frame's number is in its tool name.
"""

import json
import os
import sys
import time
from time import monotonic_ns

from mcpspy.capture.writer import Writer, create

FIRST = 5
"""The line of the first frame: a header and three channels stand before it."""
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
    """A call whose tool's name tells its number."""
    params = {"name": f"t{number:07}", "arguments": {"city": "Bergen", "days": 3}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def large(path: str, size: int) -> int:
    """Write a capture of about `size` bytes, small requests and results of about 3 kB; returns how many rows it has."""
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
    """Write frames at `rate` a second, each when it is due; returns the clock before each."""
    writer = begin(path)
    start = monotonic_ns()
    stamps: list[int] = []
    for number in range(int(rate * seconds)):
        due = start + number * 1_000_000_000 // rate
        while (now := monotonic_ns()) < due:
            time.sleep((due - now) / 1e9)
        stamps.append(now)
        writer.frame(1, now - start, request(number), False, False)
    time.sleep(1)  # the last rows are to be seen while the session is live
    writer.end(monotonic_ns() - start, 0, None)
    return stamps


if __name__ == "__main__":
    print(*steady(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])), sep="\n")
