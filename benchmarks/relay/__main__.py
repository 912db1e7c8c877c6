"""The command line: `python -m benchmarks.relay`, from the root of the repository."""

import argparse
import gc
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace

from benchmarks.relay import latency
from benchmarks.relay.figures import Result
from benchmarks.relay.gated import gated
from benchmarks.relay.memory import memory
from benchmarks.relay.plan import QUICK, WRAP, Plan, Scale, build
from benchmarks.relay.processes import Broken
from benchmarks.relay.report import machine, report
from benchmarks.relay.startup import startup
from benchmarks.relay.stream import streaming
from benchmarks.relay.traffic import pings, prose, round_trips

SETS: dict[str, Callable[[Plan], Result]] = {
    "small": latency.small,
    "big": latency.big,
    "extremes": latency.extremes,
    "free": latency.free,
    "paced": latency.paced,
    "mixed": latency.behind_big,
    "first": latency.first,
    "stream": streaming,
    "startup": startup,
    "memory": memory,
    "gate": gated,
}
ROOM = 2_000_000_000
"""Disk space in bytes that the largest run needs until it is verified, with a margin."""


def main() -> int:
    options = _options()
    if not sys.platform.startswith("linux"):
        print("benchmarks.relay: runs on Linux only: it pins to a core and reads /proc", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else Scale()
    scale = replace(scale, rounds=options.rounds or scale.rounds)
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        server, relay = build(folder)
        default = os.path.join(sysconfig.get_path("scripts"), "mcpspy")
        path = os.path.abspath(options.mcpspy or default)
        plan = Plan(scale, folder, path, options.mcpspy is not None, options.check, server, relay)
        obstacle = _obstacle(plan)
        if obstacle:
            print(f"benchmarks.relay: {obstacle}", file=sys.stderr)
            return 2
        return _run(plan, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relay", description=__doc__)
    parser.add_argument(
        "--rounds", type=_count, metavar="N", help="rounds of each set (default 5, the fewest to judge by)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few seconds, to see that all of it works; judges nothing"
    )
    parser.add_argument("--rows", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--mcpspy", metavar="PATH", help="the script to measure (default: of this environment)")
    parser.add_argument("--check", action="store_true", help="pass --check to wrap")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("a number from 1 on")
    return int(text)


def _obstacle(plan: Plan) -> str | None:
    """Return why the benchmark cannot run; None if it can."""
    if not os.access(plan.mcpspy, os.X_OK):
        return f"no program at {plan.mcpspy}; install mcpspy here or give --mcpspy PATH"
    if plan.scale != QUICK and shutil.disk_usage(plan.folder).free < ROOM:
        return f"less than {ROOM / 1e9:.0f} GB free in {plan.folder}; set TMPDIR"
    try:
        round_trips(plan, WRAP, lambda: pings(prose(200), 1, 0))
    except (Broken, OSError) as error:
        return f"a single ping through {plan.mcpspy} fails: {error}"
    return None


def _run(plan: Plan, options: argparse.Namespace) -> int:
    gc.disable()  # its pauses would look like pauses of the relay
    facts = machine()  # read before the benchmark itself loads the machine
    settings = asdict(plan.scale) | {"check": plan.check, "c_compiler": plan.relay is not None}
    note = "" if plan.relay else "; no C compiler: no C relay to compare with, and a Python server"
    return report(SETS, plan, options, facts, settings, note)


if __name__ == "__main__":
    sys.exit(main())
