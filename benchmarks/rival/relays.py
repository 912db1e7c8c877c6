"""The rows about stdio: round trips of three sizes, one line of 100 MB, and start-up."""

import os
import subprocess
from statistics import median
from time import perf_counter_ns

from benchmarks.relay.figures import Result, Rounds, Row, percentile
from benchmarks.relay.latency import measure, script_of_pings
from benchmarks.relay.memory import Passed, passing, verify
from benchmarks.relay.plan import BARE, WRAP
from benchmarks.relay.processes import Broken, pinned
from benchmarks.relay.startup import install
from benchmarks.relay.startup import measure as measure_starts
from benchmarks.relay.traffic import prose
from benchmarks.rival.plan import FASTMCP, Plan, Stdio
from benchmarks.rival.tools import calls, first_answer
from benchmarks.rival.versus import joined, versus

SIZES = {"200 B": 200, "4 KB": 4096, "64 KiB": 65536}


def stdio(plan: Plan) -> Result:
    """Measure pings, which come back byte by byte; through fastmcp, calls of a tool."""
    results = []
    for what, size in SIZES.items():
        p50, _ = measure(plan.stdio, script_of_pings(plan.stdio, prose(size)), variants=plan.stdio.variants())
        results.append(versus(f"stdio, {what}: added p50", "µs", p50))
        if FASTMCP in plan.others:
            results.append(versus(f"stdio, a tool called with {what}: added p50", "µs", _tools(plan, size)))
    return joined(*results, _free(plan))


def _free(plan: Plan) -> Result:
    """Measure the shortest pings without pinning, for information: a relay in Go has threads that use a second core."""
    script = script_of_pings(plan.stdio, prose(SIZES["200 B"]))
    p50, _ = measure(plan.stdio, script, pin=False, variants=plan.stdio.variants())
    found = versus("stdio, 200 B, free-running: p50", "µs", p50)
    return Result(found.rows[-1:], found.raw)


def _tools(plan: Plan, size: int) -> Rounds:
    p50: Rounds = {BARE: [], FASTMCP: [], WRAP: []}
    for _ in range(plan.scale.rounds):
        for variant, found in p50.items():
            with pinned():
                taken, _ = calls(plan.stdio, variant, size, plan.scale.calls, plan.scale.calls // 10)
            found.append(percentile(taken, 0.5))
    return p50


def long(plan: Plan) -> Result:
    """Measure one line in both directions at the same time, through `cat`; through fastmcp, one call of a tool."""
    size = plan.stdio.scale.long_frame
    what = f"stdio, a line of {size // 1_000_000} MB each way"
    variants = plan.stdio.variants()
    seconds: Rounds = {variant: [] for variant in variants}
    peaks: Rounds = {variant: [] for variant in variants if variant != BARE}
    recorded = {}
    for _ in range(plan.scale.rounds):
        for variant in variants:
            with pinned():
                passed = passing(plan.stdio, variant, size, 1)
            seconds[variant].append(passed.seconds)
            if variant != BARE:
                peaks[variant].append(passed.peak)
                recorded[variant] = _recorded(plan.stdio, variant, passed, size)
    told = {"mcpspy" if name == WRAP else name: share for name, share in recorded.items()}
    rows = [Row(f"{what}: recorded", [], text=", ".join(f"{name} {share}" for name, share in told.items()))]
    if FASTMCP in plan.others:
        rows.append(_long_tool(plan, size))
    return joined(
        versus(f"{what}: added time", "s", seconds), versus(f"{what}: peak memory", "MB", peaks), Result(rows, {})
    )


def _recorded(plan: Stdio, variant: str, passed: Passed, size: int) -> str:
    """Return how much of the line is in the recording of a variant. mcpspy must have recorded all of it."""
    log = plan.log(variant)
    assert log
    kept = max(len(raw) for _, raw, _ in log.pieces())
    try:
        verify(log, passed)
    except Broken:
        if variant == WRAP or kept >= size - 1:
            raise
        return f"the first {kept / 1e6:.1f} MB of it"
    return "all of it"


def _long_tool(plan: Plan, size: int) -> Row:
    what = f"stdio, {size // 1_000_000} MB to a tool and back, once, with a server in Python"
    found = []
    for variant in (BARE, FASTMCP, WRAP):
        try:
            with pinned():
                taken, peak = calls(plan.stdio, variant, size, 1)
        except (Broken, ValueError, KeyError) as error:
            found.append(f"{variant}: {error}")
            continue
        memory = "" if variant == BARE else f", at most {peak:,.0f} MB"
        found.append(f"{'mcpspy' if variant == WRAP else variant} {taken[0] / 1e9:.2f} s{memory}")
    return Row(what, [], text="; ".join(found))


def startup(plan: Plan) -> Result:
    """Measure from the spawn to the first byte of an answer. Programs in Python run in a fresh environment."""
    scripts = install(plan.stdio)
    wrap = plan.mcpspy if plan.stdio.given else os.path.join(scripts, "mcpspy")
    commands = {variant: plan.stdio.stages(variant, plan.stdio.server)[0] for variant in plan.stdio.variants()} | {
        WRAP: plan.stdio.wrap(wrap, plan.stdio.server)
    }
    took = measure_starts(plan.stdio, commands, pin=True)
    for path in (plan.stdio.capture, plan.stdio.trace):
        if os.path.exists(path):
            os.remove(path)
    results = [versus("start-up: added time to the first byte", "ms", took)]
    if FASTMCP in plan.others:
        results.append(versus("start-up with a server in Python: added time to the first byte", "ms", _answers(plan)))
    python = os.path.join(scripts, "python")
    alone = {"python -c ''": [python, "-c", ""], "python -I -S -c ''": [python, "-I", "-S", "-c", ""]}
    text = ", ".join(f"{name} {median(_ends(plan, argv)):.1f}" for name, argv in alone.items())
    return joined(*results, Result([Row("Python alone, from the spawn to its end, ms", [], text=text)], {}))


def _answers(plan: Plan) -> Rounds:
    took: Rounds = {BARE: [], FASTMCP: [], WRAP: []}
    with pinned():
        for _ in range(plan.scale.rounds):
            for variant, found in took.items():
                found.append(first_answer(plan.stdio, variant))
    return took


def _ends(plan: Plan, argv: list[str]) -> list[float]:
    taken = []
    with pinned():
        for _ in range(plan.stdio.scale.starts):
            start = perf_counter_ns()
            subprocess.run(argv, check=True, env=plan.stdio.environ)
            taken.append((perf_counter_ns() - start) / 1e6)
    return taken
