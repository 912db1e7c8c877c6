"""The rows about a gate that matches nothing: its cost for each frame that it has to examine.

The gate of `Plan.gate` requires a method that every frame has and a name that no frame has, so each frame is decoded as
far as a gate ever decodes one.
"""

from statistics import median

from benchmarks.relay.figures import Result, Row, Target, added, ratios
from benchmarks.relay.latency import SMALL, measure, script_of_pings
from benchmarks.relay.memory import peak_of
from benchmarks.relay.plan import BARE, GATED, WRAP, Plan
from benchmarks.relay.traffic import mixed, prose

FRAME = 1 << 20
"""Size of the longest frame that a gate decides on, in bytes."""
FRAMES = 50


def gated(plan: Plan) -> Result:
    variants = [BARE, WRAP, GATED]
    p50, p99 = measure(plan, script_of_pings(plan, prose(SMALL)), variants=variants)
    behind_p50, behind_p99 = measure(plan, lambda: mixed(plan.scale.big_frames), variants=variants)
    peak = peak_of(plan, GATED, FRAME - 1, FRAMES)
    quotients = ratios(added(p50, GATED, BARE), added(p50, WRAP, BARE))
    figures = [f"{variant} {median(p50[variant]):.0f} / {median(p99[variant]):.0f}" for variant in variants]
    rows = [
        Row("200 B, gate: added p50, with a gate / without", quotients, Target(2.5), (p50[BARE],)),
        Row("200 B, gate: p50 / p99 in µs", [], text=", ".join(figures)),
        Row(
            "200 B behind 8 MB, gate: p99",
            [value / 1e3 for value in behind_p99[GATED]],
            Target(5, unit="ms"),
            (behind_p50[BARE],),
        ),
        Row("memory, gate: peak while frames of 1 MiB pass each way", [peak], Target(30, unit="MB")),
    ]
    raw = {"gate: p50, µs": p50, "gate: p99, µs": p99, "gate, behind 8 MB: p99, µs": behind_p99}
    return Result(rows, raw | {"gate: memory, MB": {"peak": [peak]}})
