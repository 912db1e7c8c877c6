"""The command line: `python -m benchmarks.tui`, from the root of the repository."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict

from benchmarks.relay.figures import Result
from benchmarks.relay.report import machine, report
from benchmarks.tui.filters import filters
from benchmarks.tui.large import large
from benchmarks.tui.live import live
from benchmarks.tui.plan import QUICK, Plan, Scale

SETS: dict[str, Callable[[Plan], Result]] = {"large": large, "filters": filters, "live": live}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tui", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a few seconds, to see that all of it works; judges nothing"
    )
    parser.add_argument("--rows", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        print("benchmarks.tui: runs on Linux only: it reads /proc", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else Scale()
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        if shutil.disk_usage(folder).free < 2 * scale.size:
            print(f"benchmarks.tui: less than {scale.size / 5e8:.0f} GB free in {folder}; set TMPDIR", file=sys.stderr)
            return 2
        return report(SETS, Plan(scale, folder), options, machine(), asdict(scale))


if __name__ == "__main__":
    sys.exit(main())
