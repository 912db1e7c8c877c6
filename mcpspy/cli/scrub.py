"""`mcpspy scrub`: remove secrets and personal data from a capture, or check captures for them."""

import argparse
import os
from datetime import UTC, datetime
from functools import partial

from mcpspy.capture.reader import Capture
from mcpspy.cli.output import ProgressBar, refuse_to_overwrite, say_unused, size_of, write_report
from mcpspy.cli.review import agreed, refuse_without_terminal, scrub_options
from mcpspy.cli.targets import capture_paths, existing_path
from mcpspy.errors import UsageError
from mcpspy.process.workers import Advance, cores, mapped
from mcpspy.recording.copy import write_copy
from mcpspy.report import waivers
from mcpspy.report.checked import Checked, ReportOptions
from mcpspy.report.findings import PLACE_FORMATS
from mcpspy.sharing.scrub import Scrub, ScrubOptions
from mcpspy.sharing.scrub.categories import RULES
from mcpspy.sharing.scrub.scrub import check
from mcpspy.text import printable

SMALL = 1 << 20
"""Up to this size of all captures, in bytes, one process is faster than starting more processes."""


def run_scrub(options: argparse.Namespace) -> int:
    """Scrub one capture, or check several. Returns 1 if `--check` finds something or a waiver is stale."""
    wanted = scrub_options(options)
    if options.check:
        if options.file or options.force or options.yes:
            raise UsageError("scrub --check writes no capture: it takes no -o, --force or --yes, but --output")
        return _check(options, wanted)
    if options.output or options.waivers or options.format != "text":
        raise UsageError("--output, --waivers and --format belong to scrub --check")
    if len(options.captures) != 1:
        raise UsageError("scrub takes one capture and -o FILE; scrub --check takes several")
    if not options.file:
        raise UsageError("scrub needs -o FILE, the name of the new capture; --check only looks")
    return _scrub(options.captures[0], options, wanted)


# The copy


def _scrub(named: str, options: argparse.Namespace, wanted: ScrubOptions) -> int:
    if os.path.isdir(named):
        raise UsageError(f"{named} is a directory; scrub takes one capture, scrub --check also directories")
    path = existing_path(named)
    file: str = options.file
    refuse_to_overwrite("-o", file, Capture(path).paths)
    if os.path.lexists(file) and not options.force:
        raise UsageError(f"{file} exists; --force replaces it")
    refuse_without_terminal("scrub", yes=options.yes)
    with ProgressBar("reading", size_of(path)) as bar:
        scrub = Scrub(path, wanted, bar.advance)
    if not agreed(scrub, path, file, yes=options.yes):
        return 1
    write_copy(scrub.lines(), file, replace=options.force)
    print(f"written: {printable(file, 4096)}")
    return 0


# The check


def _checked(path: str, advance: Advance, *, wanted: ScrubOptions) -> Checked:
    return check(path, wanted, advance)


def _check(options: argparse.Namespace, wanted: ScrubOptions) -> int:
    accepted = waivers.read(options.waivers, RULES) if options.waivers else ()
    paths = list(capture_paths(options.captures))
    if options.output:
        refuse_to_overwrite("--output", options.output, [*paths, *filter(None, [options.waivers])])
    size = sum(map(size_of, paths))
    with ProgressBar("checking", size) as bar:
        found = mapped(partial(_checked, wanted=wanted), paths, bar.advance, cores() if size > SMALL else 1)
    waived = waivers.apply(accepted, found, datetime.now(tz=UTC).date())
    write_report(PLACE_FORMATS[options.format].write(waived.captures, ReportOptions(rules=RULES)), options.output)
    say_unused(waived)
    return int(bool(waived.stale) or any(checked.findings for checked in waived.captures))
