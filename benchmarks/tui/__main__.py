"""The command line: `python -m benchmarks.tui`, from the root of the repository."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.relay.figures import Result, Rounds, Row
from benchmarks.relay.report import machine, measured, table
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
        return _run(Plan(scale, folder), options)


def _run(plan: Plan, options: argparse.Namespace) -> int:
    facts = machine()  # before we are the load
    found = measured(SETS, options.rows, plan)
    rows, raw = found.rows, found.raw
    cpu = f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, Python {facts['python']}"
    print(f"{cpu}, load {facts['load']:.1f}; {plan.scale.rounds} rounds")
    print(table(rows, judged=not options.quick, markdown=options.markdown))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(_report(plan, facts, rows, raw, judged=not options.quick), file, indent=1)
    return 1 if any(row.broken for row in rows) else 0


def _report(plan: Plan, facts: dict[str, Any], rows: list[Row], raw: dict[str, Rounds], *, judged: bool) -> Any:
    found = [
        {"row": row.what, "values": row.values, "text": row.figure, "verdict": row.verdict(judged)}
        | {"target": str(row.target) if row.target else None}
        for row in rows
    ]
    return {"machine": facts, "settings": asdict(plan.scale), "rows": found, "raw": raw}


if __name__ == "__main__":
    sys.exit(main())
