"""The command line: `python -m benchmarks.fleet`, from the root of the repository."""

import argparse
import subprocess
import sys
import tempfile

from benchmarks.fleet.run import QUICK, Run, Scale, measure
from benchmarks.fleet.taken import SECOND
from benchmarks.relay.figures import Row, Target, percentile
from benchmarks.relay.processes import Broken
from benchmarks.relay.report import machine, summary

UNSURE = 2 * SECOND
"""Nanoseconds before the stop of the receiver: the spans of exchanges that ended then may have been sent later."""


def main() -> int:
    options = _options()
    facts = machine()  # read before the benchmark itself loads the machine
    scale = QUICK if options.quick else Scale()
    try:
        with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
            run = measure(scale, folder)
    except (Broken, OSError, subprocess.SubprocessError) as error:
        print(f"benchmarks.fleet: {error}", file=sys.stderr)
        return 1
    rows = [_counts(run), *_lags(run, scale), *_costs(run, scale)]
    summary(rows, options, facts, f"{scale.wraps} relays, {scale.rate:,} exchanges/s in all for {scale.end:g} s")
    return 1 if any(row.broken for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some seconds, to see that all of it works")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


def _counts(run: Run) -> Row:
    """Return the row of counts. Each exchange must have one span, and all counts must agree."""
    times = run.taken.times
    lost, twice = run.exchanges - len(times), times.total() - len(times)
    text = f"{lost} lost, {twice} twice of {run.exchanges:,}; show --json has {run.shown:,}, otel {run.sent:,}"
    return Row(
        "spans of the exchanges", [], text=text, broken=bool(lost or twice) or {run.shown, run.sent} != {run.exchanges}
    )


def _lags(run: Run, scale: Scale) -> list[Row]:
    taken, (_, away, back) = run.taken, run.taken.listens[:3]
    settled = run.started + round(scale.settled * SECOND)
    first, last = taken.caught_up()
    lags = [*taken.lags(settled, away - UNSURE), *taken.lags(last + SECOND, taken.spans[-1][0])]
    return [
        Row("from a response until its span is taken, p99", [percentile(lags, 0.99) / 1e6], Target(2, unit="s")),
        Row("the same, p50 and longest", [], text=f"{percentile(lags, 0.5) / 1e6:.2f} s, {max(lags) / 1e9:.2f} s"),
        Row(
            f"after the receiver was away for {(back - away) / 1e9:.1f} s",
            [],
            text=f"{(first - back) / 1e9:.1f} s until the first span came, {(last - back) / 1e9:.1f} s until all did",
        ),
    ]


def _costs(run: Run, scale: Scale) -> list[Row]:
    taken, usage, (_, away, _) = run.taken, run.usage, run.taken.listens[:3]
    settled = run.started + round(scale.settled * SECOND)
    first, last = taken.caught_up()
    steady, busy = (
        usage.between(since, until) / max(taken.count(since, until), 1) * 1000
        for since, until in ((settled, away), (first, last))
    )
    return [
        Row("processor time for 1,000 exchanges at that rate", [steady], Target(1, unit="s")),
        Row("the same while it catches up", [], text=f"{busy:.2f} s"),
        Row("the same over all, start-up included", [], text=f"{usage.seconds[-1] / run.exchanges * 1000:.2f} s"),
        Row("peak memory", [usage.peak], Target(150, unit="MB")),
        Row("processor time of the relays for 1,000 exchanges", [], text=f"{run.relays / run.exchanges * 1000:.2f} s"),
        Row(
            "bytes of an exchange",
            [],
            text=f"{run.captured / run.exchanges:.0f} in the capture, {taken.bytes / len(taken.spans):.0f} on the wire",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
