"""The command line: `python -m benchmarks.rival`, from the root of the repository."""

import argparse
import gc
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict

from benchmarks.proxy.plan import install_mitmdump
from benchmarks.relay.figures import Result
from benchmarks.relay.report import machine, report
from benchmarks.rival import files, proxies, relays, screens
from benchmarks.rival.plan import HOW, QUICK, Plan, Scale, find, prepare, versions

SETS: dict[str, Callable[[Plan], Result]] = {
    "check": files.check,
    "show": files.show,
    "tui": screens.tui,
    "http": proxies.http,
    "stdio": relays.stdio,
    "long": relays.long,
    "startup": relays.startup,
}


def main() -> int:
    options = _options()
    if not sys.platform.startswith("linux"):
        print("benchmarks.rival: runs on Linux only: it pins to a core and reads /proc", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else Scale()
    mcpspy = os.path.abspath(options.mcpspy or os.path.join(sysconfig.get_path("scripts"), "mcpspy"))
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        try:
            if not options.quick and "http" in options.rows:
                install_mitmdump()
            others = find(options.mcpsnoop, options.fastmcp)
            plan = prepare(scale.of(options.rounds or scale.rounds), folder, mcpspy, bool(options.mcpspy), others)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"benchmarks.rival: needs a C compiler, and mitmproxy from pip: {error}", file=sys.stderr)
            return 2
        for name in HOW.keys() - others.keys():
            print(f"benchmarks.rival: {name} is not installed and left out; to get it: {HOW[name]}", file=sys.stderr)
        return _run(plan, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rival", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of each set (default 5, the fewest to judge by)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="some seconds, to see that all of it works; judges nothing"
    )
    parser.add_argument("--rows", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--mcpspy", metavar="PATH", help="the script to measure (default: of this environment)")
    parser.add_argument("--mcpsnoop", metavar="PATH", help="the binary of mcpsnoop (default: mcpsnoop on PATH)")
    parser.add_argument("--fastmcp", metavar="PATH", help="the script of fastmcp (default: fastmcp on PATH)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


def _run(plan: Plan, options: argparse.Namespace) -> int:
    facts = machine()  # read before the benchmark itself loads the machine
    gc.disable()  # its pauses would look like pauses of a proxy
    note = f"; {time.strftime('%Y-%m-%d')}; {versions(plan.others)}"
    with open(os.path.join(plan.folder, "stderr"), "wb") as aside:  # mcpsnoop prints a line for every session
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
        os.dup2(aside.fileno(), 2)
    return report(SETS, plan, options, facts, asdict(plan.scale), note)


if __name__ == "__main__":
    sys.exit(main())
