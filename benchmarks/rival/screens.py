"""The rows about the TUIs: the first rows of a session, a filter while it is typed, and the memory of both TUIs.

Both run in the same pseudo-terminal. Something counts as displayed when its text is in the output. mcpsnoop begins with
a list of sessions, so Enter is pressed when the list is displayed. It applies the filter after each letter, and again a
few times a second while a filter is set. The time is measured from the last letter to the display of the number of
matching rows.
"""

import re
from collections.abc import Callable
from time import monotonic_ns

from benchmarks.relay.captures import pieces
from benchmarks.relay.figures import Result, Rounds
from benchmarks.relay.processes import pinned
from benchmarks.rival.files import sessions
from benchmarks.rival.plan import OURS, SNOOP, Plan
from benchmarks.rival.versus import joined, versus
from benchmarks.tui.terminal import Terminal

_BEGUN, _FILTER = "ra", "rai"  # the first is in every call and result, the second only in every result
_TITLE = re.compile(r"ended · ([\d,]+) rows([^\n]*)")
_COUNT = re.compile(r"([\d,]+) of [\d,]+( · \d+%)?")
Seen = Callable[[str], object]


def tui(plan: Plan) -> Result:
    figures: dict[str, Rounds] = {}
    with sessions(plan) as paths:
        hits = [sum(text.encode() in raw for _, raw, _ in pieces(paths[OURS])) for text in (_BEGUN, _FILTER)]
        watched = {OURS: _ours, SNOOP: _snoop}
        for _ in range(plan.scale.rounds):
            for name, path in paths.items():
                for what, figure in watched[name](plan, path, *hits).items():
                    figures.setdefault(what, {}).setdefault(name, []).append(figure)
    units = {"first rows": "s", "all read": "s", f"filter, {plan.scale.frames:,} rows": "s", "peak memory": "MB"}
    return joined(*(versus(f"TUI: {what}", unit, figures[what.partition(",")[0]]) for what, unit in units.items()))


def _ours(plan: Plan, path: str, begun: int, hits: int) -> dict[str, float]:
    rows = f"{plan.scale.frames + 1:,}"  # the end has a row too

    def read(text: str) -> bool:
        return any(count == rows and "reading" not in rest for count, rest in _TITLE.findall(text))

    def matched(number: int) -> Seen:
        return lambda text: any(count == f"{number:,}" and not more for count, more in _COUNT.findall(text))

    with pinned():
        terminal = Terminal([plan.mcpspy, "tui", path], plan.folder)
    with terminal:
        first = terminal.until(lambda text: "tools/call forecast" in text, plan.scale.seconds)
        whole = terminal.until(read, plan.scale.seconds)
        return _filtered(plan, terminal, first, whole, matched(begun), matched(hits))


def _snoop(plan: Plan, path: str, begun: int, hits: int) -> dict[str, float]:
    frames = plan.scale.frames
    with pinned():
        terminal = Terminal([plan.others[SNOOP], "open", path], plan.folder)
    with terminal:
        terminal.until(lambda text: "1 session" in text, plan.scale.seconds)
        terminal.press("\r")
        first = terminal.until(lambda text: "tools/call forecast" in text, plan.scale.seconds)
        found = [lambda text, number=number: f"{number}/{frames} match" in text for number in (begun, hits)]
        return _filtered(plan, terminal, first, first, *found)  # it reads the whole session before its first screen


def _filtered(plan: Plan, terminal: Terminal, first: int, whole: int, begun: Seen, done: Seen) -> dict[str, float]:
    """Type a filter without its last letter, wait for the result, then type the last letter and measure."""
    terminal.press("/")
    _settle(terminal)
    terminal.press(_BEGUN)
    terminal.until(begun, plan.scale.seconds)
    _settle(terminal)
    typed = terminal.press(_FILTER.removeprefix(_BEGUN))
    took = terminal.until(done, plan.scale.seconds) - typed
    opened = [(moment - terminal.started) / 1e9 for moment in (first, whole)]
    return {"first rows": opened[0], "all read": opened[1], "filter": took / 1e9, "peak memory": terminal.peak()}


def _settle(terminal: Terminal) -> None:
    """Read the output for half a second; a program may never stop drawing."""
    end = monotonic_ns() + 500_000_000
    while (left := end - monotonic_ns()) > 0:
        terminal.read(left / 1e9)
