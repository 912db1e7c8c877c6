"""The rows about a filter on a capture: the time from its last letter to its hits, and keys meanwhile."""

import os
import re
import sys
from time import monotonic_ns

from benchmarks.check import traffic as small_frames
from benchmarks.relay.figures import Result, Row, Target, percentile
from benchmarks.relay.processes import Broken
from benchmarks.tui import traffic
from benchmarks.tui.plan import Plan
from benchmarks.tui.terminal import Terminal

_TITLE = re.compile(r"ended · ([\d,]+) rows([^\n]*)")
_COUNT = re.compile(r"([\d,]+) of ([\d,]+)( · \d+%)?")
_SELECTED = re.compile(r"#(\d+) [a-z]")  # the first line of the selected message


def filters(plan: Plan) -> Result:
    path = os.path.join(plan.folder, "filtered.jsonl")
    rows = traffic.large(path, plan.scale.size)
    half = (rows - 1) // 2
    large = {
        "a text of every answer": ("wind", half),
        "a text that is rare": (f"t{rows - 3:07}", 1),
        "what the fold knows": ("kind:result latency:<1s", half),
    }
    found = _over(plan, path, rows, large, 3)
    frames = plan.scale.size // 2500
    small_frames.write(path, frames)
    answers = (frames - 5) // 2
    small = {
        "a text of every answer": ("iserror", answers),
        "a text that is rare": (f'"\\"id\\":{answers},"', 2),
        "what the fold knows": ("kind:result latency:<1s", answers + 2),
    }
    also = _over(plan, path, frames + 1, small, 0.6)
    return Result([*found.rows, *also.rows], found.raw | also.raw)


def _over(plan: Plan, path: str, rows: int, asked: dict[str, tuple[str, int]], seconds: float) -> Result:
    """Return the rows about one capture, and remove it. The target is all hits of a filter within `seconds`."""
    size = f"{os.path.getsize(path) / 1e6:.0f} MB, {rows:,} rows"
    with Terminal([sys.executable, "-m", "mcpspy", "tui", path], plan.folder) as terminal:
        terminal.until(
            lambda text: any(count == f"{rows:,}" and "reading" not in rest for count, rest in _TITLE.findall(text)),
            plan.scale.seconds,
        )
        found = {
            what: [_filter(terminal, text, hits, plan) for _ in range(plan.scale.rounds)]
            for what, (text, hits) in asked.items()
        }
    os.remove(path)
    keys = [sample / 1e6 for runs in found.values() for _, _, samples in runs for sample in samples]
    first = {what: [run[0] / 1e6 for run in runs] for what, runs in found.items()}
    whole = {what: [run[1] / 1e9 for run in runs] for what, runs in found.items()}
    common = first["a text of every answer"] + first["what the fold knows"]
    return Result(
        [
            Row(f"a filter over {size}: first hits", common, Target(200, unit="ms")),
            *(Row(f"all of them, {what}", took, Target(seconds, unit="s")) for what, took in whole.items()),
            Row("a key answered while it filters, p99", [percentile([round(key * 1e6) for key in keys], 0.99) / 1e3],
                Target(50, unit="ms")),
        ],
        {f"filters, {size}: ms": first, f"filters, {size}: s": whole, f"filters, {size}: keys, ms": {"all": keys}},
    )  # fmt: skip


def _filter(terminal: Terminal, text: str, hits: int, plan: Plan) -> tuple[int, int, list[int]]:
    """Type a filter and remove it. Return the nanoseconds to its first hits and to all hits, and for keys meanwhile."""
    seen = {"first": 0, "all": 0, "rows": 0}

    def watch(written: str) -> bool:
        for count, _, progress in _COUNT.findall(written):
            seen["rows"] = number = int(count.replace(",", ""))
            seen["first"] = seen["first"] or (number > 0 and monotonic_ns())
            seen["all"] = seen["all"] or (number == hits and not progress and monotonic_ns())
        return bool(seen["first"])

    terminal.press("/")
    typed = terminal.press(f"{text}\r")
    terminal.until(watch, plan.scale.seconds)
    samples: list[int] = []
    deadline = monotonic_ns() + int(plan.scale.seconds * 1e9)
    while not seen["all"]:
        if monotonic_ns() > deadline:
            raise Broken(f"{text}: not {hits:,} hits within {plan.scale.seconds:.0f} s")
        pause = monotonic_ns() + 50_000_000 + len(samples) * 7_919_000 % 50_000_000  # not in step with the application
        while (left := pause - monotonic_ns()) > 0:
            watch(terminal.read(left / 1e9)[1])
        if seen["rows"] < 3:
            continue  # of one or two rows the selected one may be the last, and then a key moves nothing
        pressed = terminal.press("j" if len(samples) % 2 == 0 else "k")
        samples.append(terminal.until(lambda written: (watch(written), _SELECTED.search(written))[1], 10) - pressed)
    terminal.press("\x1b")
    end = monotonic_ns() + 500_000_000  # Escape and a key right after it would be read as another key
    while (left := end - monotonic_ns()) > 0:
        terminal.read(left / 1e9)
    return seen["first"] - typed, seen["all"] - typed, samples
