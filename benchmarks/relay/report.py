"""The results as a table, plain or Markdown, and as JSON. Neither contains a host name or a path."""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import Any

from benchmarks.relay.figures import Result, Rounds, Row
from benchmarks.relay.processes import Broken

HEAD = ("row", "figure: median (min to max)", "target", "verdict")


def measured(sets: Mapping[str, Callable[[Any], Result]], names: Iterable[str], plan: object) -> Result:
    """Return all figures of the sets called `names`. A broken set has one row with the reason."""
    rows: list[Row] = []
    raw: dict[str, Rounds] = {}
    for name in names:
        print(f"measuring {name}", file=sys.stderr)
        try:
            result = sets[name](plan)
        except (Broken, OSError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            why = str(error) if isinstance(error, Broken) else type(error).__name__  # the text may contain a path
            rows.append(Row(f"{name}: broken", [], text=why, broken=True))
            continue
        rows += result.rows
        raw |= result.raw
    return Result(rows, raw)


def table(rows: list[Row], judged: bool, markdown: bool) -> str:
    lines = [HEAD, *((row.what, row.figure, str(row.target or ""), row.verdict(judged)) for row in rows)]
    if markdown:
        lines.insert(1, ("---",) * len(HEAD))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(map(len, column)) for column in zip(*(line for line in lines if line[2]), strict=True)]
    widths[0] = max(len(line[0]) for line in lines)
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    """Align the cells of a line. A long text may extend into the empty columns after it."""
    if not line[2]:
        return f"{line[0]:<{widths[0]}}  {line[1]}" + ("" if line[3] == "info" else f"  {line[3]}")
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def report(
    sets: Mapping[str, Callable[[Any], Result]],
    plan: Any,
    options: argparse.Namespace,
    facts: dict[str, Any],
    settings: Mapping[str, Any],
    note: str = "",
) -> int:
    """Measure the sets that the options name, print the results, and return the exit status.

    `facts` are those of the machine, read before the benchmark loads it. `settings` are written to the JSON, and `note`
    is printed after the heading.
    """
    found = measured(sets, options.rows, plan)
    text = f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, Python {facts['python']}"
    print(f"{text}, load {facts['load']:.1f}; {plan.scale.rounds} rounds{note}")
    print(table(found.rows, judged=not options.quick, markdown=options.markdown))
    if options.json:
        with open(options.json, "w") as file:
            file.write(as_json(settings, facts, found, judged=not options.quick) + "\n")
    return 1 if any(row.broken for row in found.rows) else 0


def summary(rows: list[Row], options: argparse.Namespace, facts: dict[str, Any], note: str) -> None:
    """Print rows that were measured without rounds of several variants, with `note` after the heading."""
    print(f"{facts['cpu']}, Python {facts['python']}, load {facts['load']:.1f}; {note}")
    print(table(rows, judged=not options.quick, markdown=options.markdown))
    if options.json:
        figures = {row.what: {"values": row.values, "text": row.figure} for row in rows}
        with open(options.json, "w") as file:
            json.dump({"machine": facts, "rows": figures}, file, indent=1)


def as_json(settings: Mapping[str, Any], facts: dict[str, Any], found: Result, judged: bool) -> str:
    rows = [
        {
            "row": row.what,
            "values": [None if isnan(value) else value for value in row.values],
            "text": row.figure,
            "target": str(row.target) if row.target else None,
            "verdict": row.verdict(judged),
        }
        for row in found.rows
    ]
    return json.dumps({"machine": facts, "settings": settings, "rows": rows, "raw": found.raw}, indent=1)


def machine() -> dict[str, Any]:
    """Return the facts of the machine that influence the figures."""
    with open("/proc/cpuinfo") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }
