"""The command line: `python -m benchmarks.check`, from the root of the repository."""

import argparse
import os
import sys
import tempfile
from time import perf_counter

import orjson

from benchmarks.check.runs import checked
from benchmarks.check.sessions import KINDS
from benchmarks.check.sessions import write as write_sessions
from benchmarks.check.traffic import write
from benchmarks.relay.figures import Row, Target
from benchmarks.relay.report import machine, summary

COMMAND = [sys.executable, "-m", "mcpspy"]
FEW, MANY, ROUNDS = 100_000, 1_000_000, 5  # frames, frames, rounds
SESSIONS, SESSION_ROUNDS = 10_000, 3


def main() -> int:
    options = _options()
    facts = machine()  # read before the benchmark itself loads the machine
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = _of_sessions(options.quick) if options.sessions else _of_frames(options.quick)
    summary(rows, options, facts, "one core")
    return 0


def _of_frames(quick: bool) -> list[Row]:
    """Compare a long capture of one session with a shorter one."""
    few, many, rounds = (1_000, 5_000, 1) if quick else (FEW, MANY, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        small, large = os.path.join(folder, "few.jsonl"), os.path.join(folder, "many.jsonl")
        write(small, few)
        write(large, many)
        short = checked(COMMAND, small, few)
        decoding, long = [], []
        for _ in range(rounds):
            decoding.append(_decoded(small))
            long.append(checked(COMMAND, large, many))
    return [
        Row(
            f"{many:,} frames of 200 B, end to end",
            [many / run.seconds / 1e3 for run in long],
            Target(60, unit="thousand/s", at_least=True),
            controls=(decoding,),
        ),
        Row(f"{few:,} frames, end to end", [], text=f"{few / short.seconds / 1e3:.1f} thousand/s"),
        Row(
            f"peak memory of {many:,} / {few:,} frames", [run.megabytes / short.megabytes for run in long], Target(1.2)
        ),
        Row("peak memory", [], text=f"{short.megabytes:.1f} MB and {max(run.megabytes for run in long):.1f} MB"),
        Row("decoding the lines alone", [], text=f"{few / min(decoding) / 1e3:.0f} thousand/s"),
    ]


def _of_sessions(quick: bool) -> list[Row]:
    """Compare captures of many HTTP sessions with one session of the same length and shape."""
    sessions, rounds = (50, 1) if quick else (SESSIONS, SESSION_ROUNDS)
    rows = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            many, one = os.path.join(folder, "many.jsonl"), os.path.join(folder, "one.jsonl")
            frames = write_sessions(many, sessions, 1, kind), write_sessions(one, 1, sessions, kind)
            runs = [(checked(COMMAND, many, frames[0]), checked(COMMAND, one, frames[1])) for _ in range(rounds)]
        speeds = [(frames[0] / every.computed) / (frames[1] / single.computed) for every, single in runs]
        target = Target(0.8, at_least=True)
        rows.append(Row(f"{sessions:,} sessions, {kind}: frames/s over those of one session", speeds, target))
        memory = max(every.megabytes for every, _ in runs), max(single.megabytes for _, single in runs)
        rows.append(Row(f"{kind}: peak memory of many, and of one", [], text=f"{memory[0]:.1f} MB, {memory[1]:.1f} MB"))
    return rows


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second, to see that all of it works; judges nothing")
    parser.add_argument("--sessions", action="store_true", help="many HTTP sessions instead of many frames")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


def _decoded(path: str) -> float:
    """Return the seconds to decode every line and the message in it, the lower bound for any check."""
    start = perf_counter()
    with open(path, "rb") as file:
        for line in file:
            record = orjson.loads(line)
            if "raw" in record:
                orjson.loads(record["raw"])
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
