"""`mcpspy check` and `mcpspy why`: find errors in captures, for people and for CI; and what failed in them, and why."""

import argparse
import gc
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial

import orjson

from mcpspy.capture.reader import Capture
from mcpspy.cli.output import (
    ProgressBar,
    has_colours,
    line_width,
    refuse_to_overwrite,
    say_unused,
    size_of,
    write_report,
)
from mcpspy.cli.targets import (
    capture_paths,
    existing_path,
    newest_capture,
    parsed_filter,
    readable_paths,
    refuse_to_follow,
)
from mcpspy.contract import lock as lock_file
from mcpspy.contract.expectations import (
    Expectations,
    NoErrors,
    SessionDuration,
    expectations,
    read,
    refuse_contradictions,
)
from mcpspy.contract.lock import Lock
from mcpspy.errors import UsageError
from mcpspy.gate_files.values import duration
from mcpspy.process.workers import Advance, Result, Work, cores, mapped
from mcpspy.report import waivers
from mcpspy.report.checked import NOTHING, Checked, ReportOptions, Threshold, check, counted, reaches
from mcpspy.report.findings import FORMATS
from mcpspy.report.lines import WIDTH, finding_line
from mcpspy.report.problems import Explained, explain, explained_fields, why_lines
from mcpspy.report.words import coloured
from mcpspy.rules import FORMER, RULES, LocatedFinding, current
from mcpspy.rules.judge import JudgedEvents
from mcpspy.spec.client_limits import CLIENTS
from mcpspy.spec.revisions import Revision
from mcpspy.text import suggestion
from mcpspy.timeline import final_rows


def expectations_of(options: argparse.Namespace) -> Expectations:
    """Return the expectations that the options declare. Raises UsageError."""
    found = read(options.expect) if options.expect else Expectations()
    for option, more in (("--expect-tool", {}), ("--forbid-tool", {"never": True})):
        for name in getattr(options, option[2:].replace("-", "_")):
            if not name:
                raise UsageError(f"{option} has no name; write the name of a tool, where * is any text")
            found = found.joined(expectations({"tool": [{"name": name, **more}]}, option))
    refuse_contradictions(options.expect or "--expect-tool, --forbid-tool", found.every)
    if options.no_failures:
        found = found.joined(Expectations((NoErrors(None),)))
    if options.max_duration is not None:
        try:
            longest = SessionDuration(None, duration(options.max_duration))
        except ValueError as error:
            raise UsageError(f"--max-duration: {error}") from None
        found = found.joined(Expectations((longest,)))
    return found


def refuse_unmet_servers(expected: Expectations, captures: Sequence[Checked]) -> None:
    """Raise UsageError for an expectation about a server without captures: it could never be violated."""
    held = {(it.rule, it.title) for checked in captures for it in checked.met}
    for expectation in expected.every:
        if (expectation.rule, expectation.title) not in held:
            what = f"no capture is of a server {expectation.server!r}, which an expectation names"
            raise UsageError(f"{what}; 'mcpspy ls' shows the server of each capture")


_FAILED = 2
"""The exit status if a bug of ours prevented some checks, whatever else was found."""
SMALL = 1 << 18
"""Up to this size of all captures, in bytes, one process is faster than starting more processes."""
GC_OFTEN = gc.get_threshold()
GC_SELDOM = (10_000, 10, 100)
"""Thresholds of the garbage collector.

The collector runs often for captures of HTTP: each exchange is a reference cycle that keeps its frames in memory,
whatever their size. It runs seldom for captures of stdio, which have few cycles.
"""


def run(options: argparse.Namespace) -> int:
    """Check the captures. Returns 1 if a finding reaches the threshold or a waiver is stale, 2 if a rule failed."""
    expected = expectations_of(options)
    revision = _revision(options.revision)
    clients = _clients(options.client)
    ignored = _ignored(options.ignore)
    options.captures = options.captures or [newest_capture()]
    threshold: Threshold = options.fail_on
    form: str = options.format
    gc.freeze()  # imported modules stay in memory, so the collector can skip them
    if options.follow:
        return _follow(options, revision, clients, ignored, threshold)
    lock = lock_file.read(options.lock) if options.lock else None
    accepted = waivers.read(options.waivers) if options.waivers else ()
    paths = list(capture_paths(options.captures))
    if options.output:
        refuse_to_overwrite("--output", options.output, [*paths, *filter(None, [options.waivers, options.lock])])
    work = partial(_check, revision=revision, clients=clients, expected=expected, lock=lock, form=form)
    captures: Sequence[Checked] = _for_each("checking", work, paths)
    refuse_unmet_servers(expected, captures)
    waived = waivers.apply(accepted, captures, datetime.now(tz=UTC).date())
    captures = [counted(checked.without(ignored)) for checked in waived.captures]
    _write(captures, form, threshold, options.output)
    say_unused(waived)
    if any(checked.failed for checked in captures):
        return _FAILED
    reached = any(reaches(finding.severity, threshold) for checked in captures for finding in checked.findings)
    return int(reached or bool(waived.stale))


def _for_each(title: str, work: Work[Result], paths: Sequence[str]) -> list[Result]:
    """Return the results for some captures, with a progress bar, on all processors if there is enough to read."""
    size = sum(map(size_of, paths))
    with ProgressBar(title, size) as bar:
        return mapped(work, paths, bar.advance, cores() if size > SMALL else 1)


def _check(
    path: str,
    advance: Advance,
    *,
    revision: Revision | None,
    clients: frozenset[str],
    expected: Expectations,
    lock: Lock | None,
    form: str,
) -> Checked:
    gc.set_threshold(*(GC_SELDOM if Capture(path).header.transport == "stdio" else GC_OFTEN))
    show = FORMATS[form].shows_frames
    return check(path, revision, clients=clients, expected=expected, lock=lock, show=show, read=advance)


def _follow(
    options: argparse.Namespace,
    revision: Revision | None,
    clients: frozenset[str],
    ignored: set[str],
    threshold: Threshold,
) -> int:
    """Print the findings of one capture as they appear, until it is no longer live."""
    if len(options.captures) != 1 or os.path.isdir(options.captures[0]):
        raise UsageError("--follow takes one capture")
    if expectations_of(options) != NOTHING:
        raise UsageError(
            "--follow prints findings as they occur: it cannot be used with --expect or other expectations"
        )
    if options.output or options.waivers or options.lock or options.format != "text":
        raise UsageError("--follow prints text: it cannot be used with --output, --waivers, --lock or --format")
    refuse_to_follow(options.captures[0])
    colour = has_colours()
    reached = False
    events = JudgedEvents(as_revision=revision, clients=clients)
    for event in events.all(Capture(existing_path(options.captures[0])).follow()):
        if isinstance(event, LocatedFinding) and event.finding.rule not in ignored:
            finding = event.finding
            reached = reached or reaches(finding.severity, threshold)
            text = finding_line(finding).lstrip()
            print(coloured(text, finding.severity if colour else None), flush=True)
    return _FAILED if events.failed else int(reached)


def _write(captures: Sequence[Checked], form: str, threshold: Threshold, output: str | None) -> None:
    options = ReportOptions(threshold, colour=output is None and has_colours())
    write_report(FORMATS[form].write(captures, options), output)


def _revision(name: str | None) -> Revision | None:
    if name is None:
        return None
    revision = Revision.of(name)
    if revision is None:
        raise _unknown("revision", name, [it.value for it in Revision])
    return revision


def _clients(names: Sequence[str]) -> frozenset[str]:
    """Return the clients with these names."""
    for name in names:
        if name not in (*CLIENTS, "all"):
            raise _unknown("client", name, CLIENTS, ", or all")
    return frozenset(CLIENTS if "all" in names else names)


def _unknown(what: str, name: str, known: Collection[str], more: str = "") -> UsageError:
    """Return the error for an unknown name, with the nearest valid name, or else all valid names."""
    hint = suggestion(name, known, f"the {what}s are {', '.join(known)}{more}")
    return UsageError(f"there is no {what} {name!r}; {hint}")


def _ignored(patterns: Sequence[str]) -> set[str]:
    """Return the rules that match patterns such as `tools/arguments`, `tools/*`."""
    found = set()
    for pattern in patterns:
        rules = {current(rule) for rule in (*RULES, *FORMER) if fnmatchcase(rule, pattern)}
        if not rules:
            raise UsageError(waivers.no_rule(pattern))
        found |= rules
    return found


def run_why(options: argparse.Namespace) -> int:
    """Explain the captures. Returns 1 if there are problems."""
    named = readable_paths(options.captures or [newest_capture()])
    every = _for_each("reading", explain, list({os.path.realpath(path): path for path in named}.values()))
    if options.filter is not None:
        every = [_matching(explained, options.filter) for explained in every]
    if options.json:
        sys.stdout.buffer.write(orjson.dumps(explained_fields(every)) + b"\n")
    else:
        for line in why_lines(every, line_width(WIDTH), colour=has_colours()):
            print(line)
    return int(any(explained.problems for explained in every))


def _matching(explained: Explained, text: str) -> Explained:
    """Return the same with only the problems that have a row that matches a filter."""
    capture = Capture(explained.path)
    wanted = parsed_filter(text, capture.header.started)
    numbers = {n for problem in explained.problems for n in problem.rows}
    rows = final_rows(capture.records, live=explained.live) if numbers else ()
    matching = {row.n for row in rows if row.n in numbers and wanted(row)}
    return replace(explained, problems=tuple(it for it in explained.problems if matching.intersection(it.rows)))
