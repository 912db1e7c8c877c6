"""Problems as text for people, and for programs.

Captured text goes through `printable`, so that no line contains a control character.
"""

import os
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcpspy.capture.reader import Capture
from mcpspy.problems.fold import Problems
from mcpspy.problems.problem import KINDS, Cause, Problem
from mcpspy.report.checked import KindCount, OpenRequest, live_text, open_requests
from mcpspy.report.words import MARKS, coloured
from mcpspy.rules import SEVERITIES, Severity
from mcpspy.rules.judge import judged_events
from mcpspy.text import plural, printable, wrapped
from mcpspy.timeline import text_json


@dataclass(frozen=True, slots=True)
class Explained:
    """One capture and its problems."""

    path: str
    name: str
    """The name of its server."""
    requests: int
    """The number of JSON-RPC requests."""
    failed: int
    """The number of failed requests, also of HTTP requests that carry no JSON-RPC request."""
    problems: tuple[Problem, ...]
    findings: dict[Severity, int]
    """The number of kinds of findings by severity, as `mcpspy check` counts them."""
    live: bool = False
    open: tuple[OpenRequest, ...] = ()
    """The requests of a live capture that have no response yet."""


def explain(path: str, read: Callable[[int], None] | None = None) -> Explained:
    """Return what failed in the capture at `path`, and why. Raises CaptureError."""
    capture = Capture(path)
    live, fold, kinds = capture.live, Problems(capture.header), KindCount()
    deque(judged_events(capture.records(read=read), fold, kinds, live=live), 0)
    still_open = open_requests(fold.pending) if live else ()
    made = tuple(fold.made())
    return Explained(path, capture.header.name, fold.requests, fold.failed, made, kinds.number, live, still_open)


@dataclass(frozen=True, slots=True)
class SharedProblem:
    """A problem, with the captures that have it."""

    problem: Problem
    """The first one, with the sum of the counts."""
    captures: tuple[tuple[Explained, Problem], ...]


def shared(every: Iterable[Explained]) -> list[SharedProblem]:
    """Return the problems of all captures: those of one server that are alike are one."""
    alike: dict[tuple[str, str], list[tuple[Explained, Problem]]] = {}
    for explained in every:
        for problem in explained.problems:
            alike.setdefault((explained.name, problem.likeness), []).append((explained, problem))
    kinds = list(KINDS)
    found = [SharedProblem(_sum([problem for _, problem in same]), tuple(same)) for same in alike.values()]
    return sorted(found, key=lambda it: (kinds.index(it.problem.kind), -it.problem.count))


def _sum(alike: Sequence[Problem]) -> Problem:
    count, failed = sum(it.count for it in alike), sum(it.failed for it in alike)
    return replace(alike[0], count=count, failed=failed)


_INDENT, _HANGING = 2, 4  # columns
_TEXT = 1000  # characters of a sentence
_ROWS, _NAMED = 8, 3
_FEW = 2  # captures that a summary names
_HEADLINE = 100  # characters in a line of summary


def explained_fields(every: Sequence[Explained]) -> dict[str, Any]:
    """Return what failed in some captures as programs read it (`docs/json.md`)."""
    return {
        "captures": [
            {"path": it.path, "name": text_json(it.name), "live": it.live, "requests": it.requests, "failed": it.failed}
            for it in every
        ],
        "problems": [
            problem_fields(it.problem) | {"captures": [_place_fields(*place) for place in it.captures]}
            for it in shared(every)
        ],
    }


def _place_fields(explained: Explained, problem: Problem) -> dict[str, Any]:
    return {"path": explained.path, "count": problem.count, "rows": list(problem.rows)}


def problem_fields(problem: Problem) -> dict[str, Any]:
    """Return a problem as programs read it (`docs/json.md`)."""
    return {
        "kind": problem.kind,
        "headline": text_json(problem.headline),
        "side": problem.side,
        "count": problem.count,
        "failed": problem.failed,
        "method": text_json(problem.method),
        "name": text_json(problem.name),
        "cause": _cause_fields(problem.cause),
        "further": [_cause_fields(cause) for cause in problem.further],
        "advice": [text_json(it) for it in problem.advice],
        "rows": list(problem.rows),
        "t": problem.t / 1e9,
        "rules": list(problem.rules),
    }


def _cause_fields(cause: Cause) -> dict[str, Any]:
    return {"text": text_json(cause.text), "certainty": cause.certainty, "rows": list(cause.rows)}


def problem_lines(problem: Problem, width: int, *, colour: bool = False, where: str = "") -> Iterator[str]:
    """Yield the lines of a problem: the headline, the cause with its side, what else may explain it, what to do.

    `where` names the captures, if the problem is one of several sessions.
    """
    head = list(wrapped(printable(problem.headline, _TEXT), max(width - _INDENT, 20)))
    for number, text in enumerate(head):
        yield f"{MARKS['error']} {coloured(text, 'error') if colour else text}" if number == 0 else f"  {text}"
    for label, cause in labelled_causes(problem):
        yield from _labelled(label, cause_text(cause), width, colour=colour)
    for advice in problem.advice:
        yield from _labelled("do", advice, width, colour=colour)
    rows = ", ".join(f"#{n}" for n in problem.rows[:_ROWS])
    place = " · ".join(filter(None, (rows, where)))
    if place:
        yield from _labelled("see", place, width, colour=colour)


def labelled_causes(problem: Problem) -> Iterator[tuple[str, Cause]]:
    """Yield the causes of a problem, each after its label: the side and the certainty of the first one."""
    side = problem.side if problem.side != "unknown" else "side unknown"
    yield f"{side}, {problem.cause.certainty}", problem.cause
    for cause in problem.further:
        yield "also" if cause.certainty == "known" else cause.certainty, cause


def cause_text(cause: Cause) -> str:
    """Return a cause with the rows that show it."""
    rows = ", ".join(f"#{n}" for n in cause.rows[:3])
    return f"{cause.text} ({rows})" if rows else cause.text


def _labelled(label: str, text: str, width: int, *, colour: bool) -> Iterator[str]:
    """Yield a text after a label, its further lines indented."""
    room = max(width - _INDENT - len(label) - 2, 20)
    for number, line in enumerate(wrapped(printable(text, _TEXT), room)):
        shown = coloured(label, "dim") if colour else label
        yield f"{' ' * _INDENT}{shown}: {line}" if number == 0 else f"{' ' * (_INDENT + _HANGING)}{line}"


def why_lines(every: Sequence[Explained], width: int, *, colour: bool = False) -> Iterator[str]:
    """Yield the report of `mcpspy why`: what failed in some captures, and why."""
    found, requests = shared(every), sum(it.requests for it in every)
    one = every[0] if len(every) == 1 else None
    state = " · live" if one and one.live else ""
    about = f"{printable(one.name, 60)}{state}: " if one else f"{plural(len(every), 'capture')}: "
    yield f"{about}{plural(len(found), 'problem') if found else 'no problems'} in {plural(requests, 'request')}"
    for number, it in enumerate(found):
        yield from [""] * (number > 0)
        names = [printable(str(explained.path), 200) for explained, _ in it.captures]
        more = f" and {plural(len(names) - _NAMED, 'other capture')}" if len(names) > _NAMED else ""
        yield from problem_lines(
            it.problem, width, colour=colour, where="" if one else ", ".join(names[:_NAMED]) + more
        )
    if one and one.live:
        yield live_text(one.open)
    counts = {severity: sum(it.findings[severity] for it in every) for severity in SEVERITIES}
    if any(counts.values()):
        told = ", ".join(plural(counts[severity], severity) for severity in SEVERITIES if counts[severity])
        yield ""
        yield f"'mcpspy check' finds {told} in the messages"


def summary_line(problems: Sequence[Problem], failed: int, paths: Sequence[str]) -> str:
    """Return one line that names what failed, and the command that explains it; empty if there is no problem.

    `paths` are those of the captures that have the problems.
    """
    if not problems:
        return ""
    what = f"{plural(failed, 'request')} failed" if failed else plural(len(problems), "problem")
    others = len(problems) - 1
    more = f" (and {plural(others, 'other problem')})" if others else ""
    return f"{what}: {printable(problems[0].headline, _HEADLINE)}{more}; see 'mcpspy why {_arguments(paths)}'"


def _arguments(paths: Sequence[str]) -> str:
    """Return arguments of a command for these captures: their paths, or of many, the directory."""
    if len(paths) > _FEW:
        try:
            paths = [os.path.commonpath(paths) or "."]
        except ValueError:  # some are relative, or on another drive
            paths = paths[:_FEW]
    return " ".join(shlex.quote(printable(path, _TEXT)) for path in paths)
