"""The command line: `python -m benchmarks.proxy`, from the root of the repository."""

import argparse
import gc
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace

from benchmarks.proxy import calls, streams
from benchmarks.proxy.plan import QUICK, Plan, Scale, install_mitmdump, prepare
from benchmarks.relay.figures import Result
from benchmarks.relay.report import machine, report

SETS: dict[str, Callable[[Plan], Result]] = {
    "single": calls.single,
    "crowd": calls.crowd,
    "events": streams.events,
    "behind": calls.behind_big,
    "memory": streams.memory,
    "idle": streams.idle,
}


def main() -> int:
    options = _options()
    if not sys.platform.startswith("linux"):
        print("benchmarks.proxy: runs on Linux only: it pins to a core and reads /proc", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else Scale()
    scale = replace(scale, rounds=options.rounds or scale.rounds)
    mcpspy = os.path.join(sysconfig.get_path("scripts"), "mcpspy")
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        try:
            if not options.quick:
                install_mitmdump()
            plan = prepare(scale, folder, os.path.abspath(options.mcpspy or mcpspy))
        except (OSError, subprocess.SubprocessError) as error:
            print(f"benchmarks.proxy: needs a C compiler, and mitmproxy from pip: {error}", file=sys.stderr)
            return 2
        return _run(plan, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of each set (default 5, the fewest to judge by)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few seconds, to see that all of it works; judges nothing"
    )
    usual = [name for name in SETS if name != "idle"]
    parser.add_argument(
        "--rows", nargs="+", choices=SETS, default=usual, metavar="NAME", help=f"{', '.join(SETS)} (default: not idle)"
    )
    parser.add_argument("--mcpspy", metavar="PATH", help="the script to measure (default: of this environment)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


def _run(plan: Plan, options: argparse.Namespace) -> int:
    facts = machine()  # read before the benchmark itself loads the machine
    gc.disable()  # its pauses would look like pauses of the proxy
    os.sched_setaffinity(0, {plan.cores[0]})
    return report(SETS, plan, options, facts, asdict(plan.scale))


if __name__ == "__main__":
    sys.exit(main())
