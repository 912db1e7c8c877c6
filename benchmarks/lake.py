"""What `mcpspy sql` and the Parquet export take, and whether all engines count the same.

    python -m benchmarks.lake                     500,000 frames of 2 KB in four captures: about 1 GB, some minutes
    python -m benchmarks.lake --quick             a few seconds, only to check that everything works
    python -m benchmarks.lake --engines PYTHON    also ClickHouse and Spark: an interpreter that has chdb and pyspark

Run it from the root of the repository. Memory is the highest peak of a single process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Any

from benchmarks import engines
from benchmarks.relay.report import machine

PARTS, FRAMES = 4, 500_000
SIZE = 2000  # bytes of a frame
TABLES = ("frames", "messages", "exchanges")
QUERIES = {table: f"SELECT count(*) FROM {table}" for table in TABLES}  # noqa: S608


def main() -> int:
    options = _options()
    frames = 2_000 if options.quick else options.frames
    print(f"{machine()}\n{frames:,} frames of {SIZE:,} bytes in {PARTS} captures")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        captures, lake = os.path.join(folder, "captures"), os.path.join(folder, "lake")
        os.mkdir(captures)
        for part in range(PARTS):
            _write(os.path.join(captures, f"{part}.jsonl"), frames // PARTS)
        _sized("captures", captures)
        query = f"SELECT {', '.join(f'({query}) AS {table}' for table, query in QUERIES.items())}"
        sql = [*_mcpspy("sql"), query, captures, "--format", "json"]
        found = {"sql": json.loads(_timed("sql, the first time", sql))}
        _timed("sql, again", sql)
        _timed("export, the first time", [*_mcpspy("export"), captures, "--format", "parquet", "-o", lake])
        _timed("export, again", [*_mcpspy("export"), captures, "--format", "parquet", "-o", lake])
        _sized("Parquet", lake)
        _sized("cache of sql", os.environ["XDG_CACHE_HOME"])
        for name in engines.PROGRAMS if options.engines else ():
            told = engines.answers(_timed(name, engines.command(options.engines, name, lake, QUERIES)))
            found[name] = {table: rows[0][0] for table, rows in told.items()}
        found["show"] = shown(captures)
    for name, counts in found.items():
        print(f"{name:<12}{counts}")
    return 0 if all(counts == found["show"] for counts in found.values()) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake", description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--quick", action="store_true", help="2,000 frames")
    parser.add_argument("--engines", metavar="PYTHON", help="an interpreter that has chdb and pyspark")
    return parser.parse_args()


def _mcpspy(command: str) -> list[str]:
    return [sys.executable, "-m", "mcpspy", command]


def _timed(title: str, command: list[str]) -> str:
    start, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    taken, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = after.ru_maxrss * 1024 / 1e6
    print(f"{title:<24}{taken:7.1f} s, {computed:7.1f} s of the processor, peak so far {memory:,.0f} MB", flush=True)
    return done.stdout


def _sized(title: str, folder: str) -> None:
    sizes = (os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)
    print(f"{title:<24}{sum(sizes) / 1e6:7.1f} MB", flush=True)


def shown(captures: str) -> dict[str, int]:
    """Return the counts of `mcpspy show --json`."""
    kinds, lines = Counter(), 0
    for name in sorted(os.listdir(captures)):
        before = None
        with subprocess.Popen(
            [*_mcpspy("show"), "--json", os.path.join(captures, name)], stdout=subprocess.PIPE
        ) as shown:
            assert shown.stdout
            for line in shown.stdout:
                row = json.loads(line)
                kinds[row["kind"]] += 1
                lines += row["n"] != before
                before = row["n"]
    messages = sum(kinds[kind] for kind in ("request", "notification", "result", "error", "invalid", "undecoded"))
    return {"frames": lines, "messages": messages, "exchanges": kinds["request"]}


def _write(path: str, frames: int) -> None:
    """Write a stdio session of calls and results, a millisecond apart, with frames of equal size."""
    header = {
        "mcpspy": 1, "id": uuid.uuid4().hex, "started": "2026-11-20T23:55:00.123456Z", "tool": "mcpspy",
        "transport": "stdio", "name": "weather", "argv": ["weather"],
    }  # fmt: skip
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        for channel, sender, role in ((1, "client", "stdin"), (2, "server", "stdout")):
            fields = {"kind": "open", "ch": channel, "t": 0, "from": sender, "role": role, "framing": "lines"}
            file.write(json.dumps(fields) + "\n")
        for number, (channel, message) in zip(range(frames), _messages(), strict=False):
            raw = json.dumps({"jsonrpc": "2.0", **message})
            file.write(json.dumps({"kind": "frame", "ch": channel, "t": number * 1_000_000, "raw": raw}) + "\n")


def _messages() -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the channel and the message of each frame, endlessly."""
    info = {"name": "x", "version": "1"}
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    agreed = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    yield 1, {"id": 0, "method": "initialize", "params": asked}
    yield 2, {"id": 0, "result": agreed}
    yield 1, {"method": "notifications/initialized"}
    for number in count(1):
        text = f"{uuid.uuid5(uuid.NAMESPACE_OID, str(number))} " * (SIZE // 37)
        params = {"name": f"t{number % 20}", "arguments": {"q": text}}
        yield 1, {"id": number, "method": "tools/call", "params": params}
        yield 2, {"id": number, "result": {"content": [{"type": "text", "text": text}]}}


if __name__ == "__main__":
    sys.exit(main())
