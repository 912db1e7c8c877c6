"""The rows about a recorded session: `check` and `show`, compared with `check` and `export` of mcpsnoop."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.check.runs import Run, checked, timed
from benchmarks.check.traffic import write
from benchmarks.relay.figures import Result, Rounds, Target
from benchmarks.relay.processes import Broken, pinned
from benchmarks.rival import snoop
from benchmarks.rival.plan import OURS, SNOOP, Plan
from benchmarks.rival.versus import joined, versus

_SOUND = b"errors=0 invalid=0 warnings=0 mismatches=0 pending=0 late_results=0 deprecated=0 missing_frames=0"
_ROW = re.compile(rb"^#\d+ ", re.MULTILINE)


def check(plan: Plan) -> Result:
    with sessions(plan) as paths:
        runs = _in_turns(plan, {OURS: _check, SNOOP: _snoop_check}, paths)
    speed = {name: [plan.scale.frames / run.seconds for run in found] for name, found in runs.items()}
    what = f"check, {plan.scale.frames:,} frames of 200 B"
    targets = {SNOOP: Target(0.7, aim=1, at_least=True)}
    return joined(versus(f"{what}: speed", "frames/s", speed, more=True, targets=targets), _usage(what, runs))


def show(plan: Plan) -> Result:
    with sessions(plan) as paths:
        runs = _in_turns(plan, {OURS: _show, SNOOP: _export}, paths)
    speed = {name: [plan.scale.frames / run.seconds for run in found] for name, found in runs.items()}
    what = "show (mcpsnoop: export -T text, which prints whole frames)"
    targets = {SNOOP: Target(1, at_least=True)}
    return joined(versus(f"{what}: speed", "rows/s", speed, more=True, targets=targets), _usage("show", runs))


@contextmanager
def sessions(plan: Plan) -> Iterator[dict[str, str]]:
    """Write one session as a capture, and as a log of mcpsnoop if that is installed, and yield their paths."""
    paths = {OURS: os.path.join(plan.folder, "session.jsonl")}
    write(paths[OURS], plan.scale.frames)
    if SNOOP in plan.others:
        paths[SNOOP] = os.path.join(plan.folder, "session-of-mcpsnoop.jsonl")
        snoop.convert(paths[OURS], paths[SNOOP])
    yield paths
    for path in paths.values():
        os.remove(path)


def _in_turns(
    plan: Plan, runners: dict[str, Callable[[Plan, str], Run]], paths: dict[str, str]
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in paths}
    for _ in range(plan.scale.rounds):
        for name, path in paths.items():
            with pinned():
                runs[name].append(runners[name](plan, path))
    return runs


def _check(plan: Plan, path: str) -> Run:
    return checked([plan.mcpspy], path, plan.scale.frames)


def _snoop_check(plan: Plan, path: str) -> Run:
    run, printed = _printed(plan, [plan.others[SNOOP], "check", path])
    if _SOUND not in printed or b"check passed" not in printed:
        raise Broken("mcpsnoop finds something in a sound session")
    return run


def _show(plan: Plan, path: str) -> Run:
    run, printed = _printed(plan, [plan.mcpspy, "show", path])
    if len(_ROW.findall(printed)) != plan.scale.frames + 1:  # the end has a row too
        raise Broken("show does not print every frame")
    return run


def _export(plan: Plan, path: str) -> Run:
    run, printed = _printed(plan, [plan.others[SNOOP], "export", "-T", "text", path])
    if len(_ROW.findall(printed)) != plan.scale.frames or b"frames: %d " % plan.scale.frames not in printed:
        raise Broken("mcpsnoop does not export every frame")
    return run


def _printed(plan: Plan, command: list[str]) -> tuple[Run, bytes]:
    with tempfile.TemporaryFile(dir=plan.folder) as output:
        run = timed(command, output, plan.environ)
        return run, output.read()


def _usage(what: str, runs: dict[str, list[Run]]) -> Result:
    computed: Rounds = {name: [run.computed for run in found] for name, found in runs.items()}
    peaks: Rounds = {name: [run.megabytes for run in found] for name, found in runs.items()}
    return joined(
        versus(f"{what}: processor time", "s", computed),
        versus(f"{what}: peak memory", "MB", peaks),
    )
