"""What the lines of a result of 8 MB take: `python -m benchmarks.reading`, from the root of the repository."""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from itertools import islice
from time import perf_counter
from typing import Any

from benchmarks.relay.figures import Row, Target
from benchmarks.relay.report import machine, summary
from mcpspy.reading.content import content_lines, parse

SIZE, ROUNDS, LINES = 8_000_000, 5, 50  # bytes of the frame; lines of a screen
FIRST, WHOLE, PRINTED = Target(0.25, unit="s"), Target(3, unit="s"), Target(8, unit="s")


def main() -> int:
    options = _options()
    facts = machine()  # read before the benchmark itself loads the machine
    gc.set_threshold(5_000, 10, 500)  # as in the TUI
    size, rounds = (100_000, 1) if options.quick else (SIZE, ROUNDS)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "a.jsonl")
        for what, result in _results(size).items():
            frame = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, separators=(",", ":"))
            _write(capture, frame)
            lines = len(deque(content_lines(parse(frame))))
            first = [_lines(frame, LINES) for _ in range(rounds)]
            whole = [_lines(frame, None) for _ in range(rounds)]
            printed = [_printed(capture) for _ in range(rounds)]
            rows += [
                Row(f"{what}, {len(frame) / 1e6:.1f} MB: parsed, and the first {LINES} lines", first, FIRST),
                Row(f"{what}: all {lines:,} lines", whole, WHOLE),
                Row(f"{what}: `show --long` into a pipe, start-up included", printed, PRINTED),
            ]
    summary(rows, options, facts, f"{rounds} rounds")
    return 0


def _results(size: int) -> dict[str, Any]:
    """Return results whose frames have about this size."""

    def block(text: str) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": text}]}

    row = {"id": 1, "city": "Bergen", "text": "no rain expected\nno wind", "at": [60.39, 5.32]}
    return {
        "text of short lines": block("no rain expected, and no wind\n" * (size // 31)),
        "text of one line": block("no rain expected, and no wind " * (size // 30)),
        "structured content": {"content": [], "structuredContent": {"rows": [row] * (size // 90)}},
    }


def _lines(frame: str, most: int | None) -> float:
    start = perf_counter()
    deque(islice(content_lines(parse(frame)), most), 0)
    return perf_counter() - start


def _write(capture: str, frame: str) -> None:
    header = {"mcpspy": 1, "started": "2026-11-29T19:15:00.123456Z", "transport": "stdio", "name": "x", "argv": ["x"]}
    channel = {"kind": "open", "t": 0, "ch": 1, "from": "server", "role": "stdout", "framing": "lines"}
    records = (header, channel, {"kind": "frame", "t": 1, "ch": 1, "raw": frame})
    with open(capture, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


def _printed(capture: str) -> float:
    start = perf_counter()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "mcpspy", "show", "--long", capture]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environ)
    assert b"no rain expected" in done.stdout
    return perf_counter() - start


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that all of it works")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
