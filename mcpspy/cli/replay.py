"""`mcpspy replay` and `mcpspy diff`: replay a capture against a server, compare two captures, report differences."""

import argparse
import os
import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mcpspy.capture.location import PACKED, STANDARD_INPUT
from mcpspy.cli.access import access_to_url
from mcpspy.cli.output import ProgressBar, explain, say, size_of, write_report
from mcpspy.cli.targets import refuse_new
from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.network.access import Access
from mcpspy.output_file import output_file
from mcpspy.replay import settings
from mcpspy.replay.learn import learned, narrowest, place_of
from mcpspy.replay.run import Replayed, replay
from mcpspy.replay.script import Script, accept, load, script_of
from mcpspy.replay.sessions import FINE, Compared
from mcpspy.replay.tolerance import Rules, Tolerance
from mcpspy.replay.update import update
from mcpspy.replay.volatile import looks_volatile
from mcpspy.report.differences import CHANGE_FORMATS, FORMATS, as_text, examine
from mcpspy.transport.link import Link

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink


APART = 1.5
"""The least number of seconds between the starts of two runs."""


def run(options: argparse.Namespace) -> int:
    """Replay and report. Returns 1 if there is a difference."""
    if options.only:
        from mcpspy.cli.again import run as run_again

        return run_again(options)
    _refuse(options)
    access = access_to_url(options)
    file = settings.place(options.capture)
    chosen = settings.chosen([options.capture], vars(options))
    if chosen.read_only and options.update and not options.learn:
        raise UsageError("--update would lose the calls that --read-only leaves out; give one of them")
    script = load(options.capture, say, forwarded=options.as_forwarded)
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        packed = options.new is not None and options.new.endswith(PACKED)
        path = os.path.join(folder, "new.jsonl") if packed or not options.new else options.new
        runs = list(_runs(options, access, script, path, read_only=chosen.read_only))
        if packed:
            accept(runs[-1].path, options.new)
        rules = chosen.rules
        if options.learn:
            found = learned(runs, rules)
            rules += Rules(tuple(found))
            _propose(found, file, write=options.update)
        return _report(options, runs[-1], rules)


def _runs(
    options: argparse.Namespace, access: Access, script: Script, path: str, *, read_only: bool
) -> Iterator[Replayed]:
    """Run once, or as often as wanted; the starts are so far apart that a clock that counts seconds has changed."""
    due = time.monotonic()
    for _ in range(options.learn or 1):
        time.sleep(max(0, due - time.monotonic()))
        due = time.monotonic() + APART
        yield _replay(options, access, script, path, read_only=read_only)


def _replay(options: argparse.Namespace, access: Access, script: Script, path: str, *, read_only: bool) -> Replayed:
    """Run once. Each run has its own progress bar, because its thread must not exist while a server is started."""
    with ProgressBar("replaying", len(script.messages)) as bar:
        connect = partial(_connect, options, access, script)
        return replay(script, connect, path, read_only=read_only, advance=bar.advance)


def _connect(options: argparse.Namespace, access: Access, script: Script, path: str) -> "Link | WebLink":
    name = script.header.name if script.header else "server"
    if options.url:
        from mcpspy.transport.http_link import WebLink

        return WebLink(options.url, options.header, name, path, script.size, access)
    return Link(options.server, name, path, say, script.size)


def _refuse(options: argparse.Namespace) -> None:
    if bool(options.server) == bool(options.url):
        raise UsageError("replay needs a server: mcpspy replay CAPTURE -- COMMAND [ARG...], or --url URL")
    for name in ("edit", "yes"):
        if getattr(options, name):
            raise UsageError(f"--{name} belongs to --only")
    if options.learn is not None and options.learn < 2:
        raise UsageError("--learn compares runs with each other: it needs 2 or more")
    if options.update and options.capture == STANDARD_INPUT:
        raise UsageError("--update replaces the capture, or its settings file: give the name of a file")
    refuse_new(options.new, options.capture)


def _report(options: argparse.Namespace, replayed: Replayed, rules: Rules) -> int:
    compared = replayed.compared(rules)
    text = FORMATS[options.format](options.capture, compared)
    write_report([text], options.output)
    differs = any(it.outcome not in FINE for it in compared)
    if options.update and not options.learn and differs:
        if any(it.outcome == "missing" and it.reason for it in compared):
            say(f"{options.capture} was not changed: the new session lacks answers")
            return 1
        kept = update(replayed, compared, rules, options.capture)
        say(f"{options.capture} now holds the new session{'' if kept else '; all its lines are new'}")
        return 0
    if differs and options.output:
        explain(as_text(options.capture, compared).splitlines()[-1])
    if not options.learn:
        _advise(options.capture, compared, rules)
    return 1 if differs else 0


def _advise(capture: str, compared: Sequence[Compared], rules: Rules) -> None:
    """Print how to allow differences in values that seem to change in each run (R-15)."""
    every = ((it, difference) for it in compared for difference in it.differences if looks_volatile(difference))
    found = [(it, difference) for it, difference in every if not rules.concern(it.method, it.name, difference.path)]
    if not found:
        return
    it, difference = found[0]
    total = sum(len(it.differences) for it in compared)
    one = narrowest(place_of(it.method, it.name, difference), [difference.recorded, difference.observed])
    say(
        f"differences that look new in each run (a time, an id, a random value): {len(found):,} of {total:,}."
        f" '--learn 3 --update' runs 3 times and writes what differs between the runs into {settings.place(capture)};"
        f" the capture was not changed. To allow one: --{one.by} {shlex.quote(str(one))}"
    )


def _propose(found: list[Tolerance], file: str, *, write: bool) -> None:
    """Show what to allow where runs differed, and write it to the settings file if requested."""
    if not found:
        say("the runs did not differ: there is nothing to allow")
        return
    if write:
        try:
            text = read_foreign(file).decode()
        except FileNotFoundError:
            text = ""
        changed = settings.with_tolerances(text, found)
        with output_file(os.path.realpath(file), replace=True) as output:
            output.write(changed.encode())
        say(f"{file} allows from now on:")
    else:
        say(f"the runs differed; --update would put this into {file}:")
    explain(*settings.with_tolerances("", found).splitlines())


def run_diff(options: argparse.Namespace) -> int:
    """Compare and report. Returns 1 if there is a difference."""
    rules = settings.chosen([options.old], vars(options)).rules
    paths = options.old, options.new
    with ProgressBar("reading", sum(map(size_of, paths))) as bar:
        old, new = (script_of(path, bar.advance) for path in paths)
    report = examine(old, new, rules)
    print(CHANGE_FORMATS[options.format](report), end="")
    return 1 if report.differs else 0
