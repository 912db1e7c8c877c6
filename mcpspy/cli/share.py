"""`mcpspy scrub` and `mcpspy share`: a capture without secrets and personal data, as a capture or as an HTML page.

Both have the same options, the same table of what is replaced, and the same question to the user. `scrub --check` only
looks, at several captures. `mcpspy cut` makes a small capture of a large one, and replaces nothing.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from mcpspy.capture.location import stem
from mcpspy.capture.reader import Capture
from mcpspy.cli.output import ProgressBar, confirmed, refuse_to_overwrite, say, say_unused, size_of, write_report
from mcpspy.cli.targets import capture_paths, existing_path, parsed_filter
from mcpspy.errors import UsageError
from mcpspy.output_file import output_file
from mcpspy.process.workers import Advance, cores, mapped
from mcpspy.recording.copy import write_copy
from mcpspy.report import waivers
from mcpspy.report.checked import Checked, ReportOptions
from mcpspy.report.findings import PLACE_FORMATS
from mcpspy.sharing.cut import cut_lines, cut_rows
from mcpspy.sharing.page.writer import is_too_large, readings, refuse_too_large, scrubbed, unscrubbed, write_page
from mcpspy.sharing.scrub import Leftover, Replaced, Scrub, ScrubOptions
from mcpspy.sharing.scrub.scrub import check
from mcpspy.sharing.scrub.values import RULES
from mcpspy.text import plural, printable, size_text

_SHOWN = 30  # rows of each table
_HEAD = 6  # characters shown of a value that looks random


def scrub_options(options: argparse.Namespace) -> ScrubOptions:
    """Return the settings from those options. Raises UsageError for an invalid regular expression."""
    return ScrubOptions(options.only_secrets, tuple(map(_pattern, options.replace)), tuple(options.keep))


def refuse_without_terminal(command: str, *, yes: bool) -> None:
    """Raise UsageError if a command has to ask the user and there is no terminal."""
    if not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{command} asks before it writes, and this is not a terminal; --yes writes without asking")


def agreed(scrub: Scrub, path: str, file: str, *, yes: bool) -> bool:
    """Print what a scrub of the capture at `path` replaces and leaves, and ask whether to write `file`."""
    for line in _table(scrub.replaced, scrub.leftovers):
        print(line)
    if scrub.live:
        say(f"{path} is still being recorded: this is what it holds now")
    if scrub.damaged:
        say(f"{path} has {plural(scrub.damaged, 'damaged line')}, whose content is left out")
    if yes or confirmed(f"Write {file}?"):
        return True
    say("nothing was written")
    return False


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--replace {text!r} is not a regular expression: {error}") from None


def _table(replaced: Sequence[Replaced], leftovers: Sequence[Leftover]) -> Iterator[str]:
    """Yield the lines of the tables of replaced and of remaining values."""
    if not replaced:
        yield "found nothing to replace"
    else:
        rows = [(it.kind, it.label, f"{it.count:,}", f"#{it.first}") for it in replaced[:_SHOWN]]
        yield from _columns(("replaced", "by", "times", "first"), rows)
        if len(replaced) > _SHOWN:
            yield f"… and {plural(len(replaced) - _SHOWN, 'more label')}"
    if leftovers:
        yield ""
        left = [
            (
                f"{printable(it.text[:_HEAD], _HEAD)}…",
                str(it.length),
                f"{it.count:,}",
                f"#{it.n} {printable(it.where, 60)}",
            )
            for it in leftovers[:_SHOWN]
        ]
        yield from _columns(("left, looks random", "length", "times", "first"), left)
        if len(leftovers) > _SHOWN:
            yield f"… and {len(leftovers) - _SHOWN:,} more"
        yield "If one of these is a secret, use --replace REGEX."
    yield ""


def _columns(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


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


def run_cut(options: argparse.Namespace) -> int:
    """Write the small capture."""
    path = existing_path(options.capture)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a directory; cut takes one capture")
    wanted = {
        name: value
        for name, value in (("filter", options.filter), ("from", options.first), ("to", options.last))
        if value is not None
    }
    if not wanted:
        raise UsageError("cut needs --filter EXPR, --from N or --to N: which rows to keep")
    capture, file = Capture(path), options.file
    matches = parsed_filter(options.filter or "", capture.header.started)
    first, last = options.first or 0, sys.maxsize if options.last is None else options.last
    refuse_to_overwrite("-o", file, capture.paths)
    if os.path.lexists(file) and not options.force:
        raise UsageError(f"{file} exists; --force replaces it")
    if live := capture.live:
        say(f"{path} is still being recorded: this is what it holds now")
    with ProgressBar("reading", 4 * size_of(path)) as bar:
        rows = cut_rows(
            lambda: capture.records(read=bar.advance), lambda row: first <= row.n <= last and matches(row), live=live
        )
        if not rows:
            raise UsageError(f"no row of {path} matches: nothing was written")
        write_copy(cut_lines(capture, rows, wanted, bar.advance), file, replace=options.force)
    print(f"written: {printable(file, 4096)} ({size_text(os.path.getsize(file))} of {size_text(size_of(path))})")
    return 0


def run(options: argparse.Namespace) -> int:
    """Write the page. Returns 1 if the user declines."""
    path = existing_path(options.capture)
    if options.raw and (options.replace or options.keep or options.only_secrets):
        raise UsageError("--raw replaces nothing: no --replace, --keep or --only-secrets with it")
    if os.path.isdir(path):
        raise UsageError(f"{path} is a directory; share takes one capture")
    capture = Capture(path)
    file: str = options.file or os.path.basename(stem(path)) + ".html"
    refuse_to_overwrite("-o", file, capture.paths)
    if os.path.lexists(file) and not options.force:
        raise UsageError(f"{file} exists; --force replaces it")
    chosen = None if options.filter is None else parsed_filter(options.filter, capture.header.started)
    if chosen is None and is_too_large(capture):
        refuse_too_large(capture, None)
    if options.raw:
        say("--raw: the page holds all that was recorded, also secrets")
        shared = unscrubbed(path, chosen)
    else:
        wanted = scrub_options(options)
        refuse_without_terminal("share", yes=options.yes)
        with ProgressBar("reading", size_of(path)) as bar:
            scrub = Scrub(path, wanted, bar.advance)
        if not agreed(scrub, path, file, yes=options.yes):
            return 1
        shared = scrubbed(path, scrub, chosen)
    total = size_of(path) * readings(shared)
    with output_file(file, replace=options.force) as output, ProgressBar("writing", total) as bar:
        rows = write_page(shared, output, bar.advance)
    size = size_text(os.path.getsize(file))
    print(f"written: {printable(file, 4096)} ({size}, {plural(rows, 'row')})")
    return 0
