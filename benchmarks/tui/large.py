"""The rows about a large capture: the time to its first rows, the time to read all of it, and keys meanwhile."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from statistics import median
from time import monotonic_ns

from benchmarks.relay.figures import Result, Row, Target, percentile
from benchmarks.relay.processes import Broken
from benchmarks.tui import traffic
from benchmarks.tui.plan import Plan
from benchmarks.tui.terminal import LINES, Terminal

_TITLE = re.compile(r"ended · ([\d,]+) rows([^\n]*)")
_MESSAGE = re.compile(r"#(\d+) [a-z]")  # the first line of the selected message; in a row, the time follows the number
_PAGE = LINES - 5  # the number of rows minus one, below a title and the headings, above the views and the keys


def large(plan: Plan) -> Result:
    path = os.path.join(plan.folder, "large.jsonl")
    rows = traffic.large(path, plan.scale.size)
    size = os.path.getsize(path) / 1e6
    imports = median(_imports(plan) for _ in range(plan.scale.starts))
    found = [_open(plan, path, rows, imports) for _ in range(plan.scale.rounds)]
    os.remove(path)
    first, index, fold, peak = (list(column) for column in zip(*(figures for figures, _ in found), strict=True))
    keys = [samples for _, samples in found]
    answers = sum(map(len, keys))
    p50, p99 = ([percentile(samples, share) / 1e3 for samples in keys] for share in (0.5, 0.99))
    what = f"{size:.0f} MB, {rows:,} rows"
    return Result(
        [
            Row(f"{what}: first rows, after {imports:.2f} s of imports", first, Target(0.5, unit="s")),
            Row("the whole index", index, Target(1.5, unit="s")),
            Row("all of it folded", [], text=f"{median(fold):.1f} s"),
            Row("memory, peak", peak, Target(250, unit="MB")),
            Row("a key answered meanwhile, p50", p50, Target(50, unit="ms")),
            Row("a key answered meanwhile, p99", p99, Target(50, unit="ms")),
            Row("a key answered meanwhile, max", [], text=f"{max(map(max, keys)) / 1e6:.0f} ms of {answers} keys"),
        ],
        {"large: s, s, s, MB": {"first": first, "index": index, "fold": fold, "peak": peak}}
        | {"keys: ms": {str(n): [sample / 1e6 for sample in samples] for n, samples in enumerate(keys)}},
    )


def _imports(plan: Plan) -> float:
    """Return the seconds of a process that only imports the application."""
    start = monotonic_ns()
    program = "import os, mcpspy.cli.tui, mcpspy.cli.commands; os._exit(0)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=plan.scale.seconds)
    return (monotonic_ns() - start) / 1e9


def _open(plan: Plan, path: str, rows: int, imports: float) -> tuple[tuple[float, float, float, float], list[int]]:
    """Open the capture. Return the seconds to its first rows, its index and its fold, the peak memory, and the keys."""
    with Terminal([sys.executable, "-m", "mcpspy", "tui", path], plan.folder) as terminal:
        first = terminal.until(lambda text: "tools/call t0000002" in text, plan.scale.seconds)
        read = {"index": 0, "fold": 0}

        def watch(text: str) -> None:
            for count, rest in _TITLE.findall(text):
                whole = count == f"{rows:,}"
                read["index"] = read["index"] or (whole and monotonic_ns())
                read["fold"] = read["fold"] or (whole and "reading" not in rest and monotonic_ns())

        keys = _keys(terminal, watch, lambda: bool(read["fold"]), plan.scale.seconds)
        spent = [(moment - terminal.started) / 1e9 - imports for moment in (first, *read.values())]
        return (*spent, terminal.peak()), keys  # type: ignore[return-value]


def _keys(terminal: Terminal, watch: Callable[[str], None], done: Callable[[], bool], seconds: float) -> list[int]:
    """Press keys until `done`, each a while after the last one was answered. Return the nanoseconds of each."""
    n = traffic.FIRST
    presses = (
        ("j", n + 1),
        ("j", n + 2),
        ("k", n + 1),
        ("\x1b[6~", n + 1 + _PAGE),
        ("\x1b[5~", n + 1),
        ("G", None),
        ("g", n),
    )
    samples: list[int] = []
    deadline = monotonic_ns() + int(seconds * 1e9)
    for key, expected in cycle(presses):
        pause = monotonic_ns() + 50_000_000 + len(samples) * 7_919_000 % 50_000_000  # not in step with the application
        while (left := pause - monotonic_ns()) > 0:
            watch(terminal.read(left / 1e9)[1])
        if done():
            return samples
        if monotonic_ns() > deadline:
            raise Broken(f"not read within {seconds:.0f} s")
        pressed = terminal.press(key)

        def answered(text: str, expected: int | None = expected) -> bool:
            watch(text)
            numbers = map(int, _MESSAGE.findall(text))
            return any(number == expected if expected else number > n + 2 * _PAGE for number in numbers)

        samples.append(terminal.until(answered, 10) - pressed)
    return samples
