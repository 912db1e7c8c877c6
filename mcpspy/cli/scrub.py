"""`mcpspy scrub`: a capture without secrets and personal data, and whether captures hold any."""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from mcpspy.capture.reader import Capture
from mcpspy.cli.arguments import choice
from mcpspy.cli.named_captures import named_captures, refuse_to_overwrite, write_report
from mcpspy.cli.output import say
from mcpspy.cli.progress import ProgressBar, size_of
from mcpspy.errors import UsageError
from mcpspy.process.workers import Advance, cores, mapped
from mcpspy.recording.copy import write_copy
from mcpspy.report import waivers
from mcpspy.sharing.scrub import Leftover, Replaced, Scrub, ScrubOptions
from mcpspy.sharing.scrub.categories import RULES
from mcpspy.sharing.scrub.findings import FORMATS, ScrubChecked, check, without_waived
from mcpspy.text import plural, printable

SMALL = 1 << 20
"""Bytes that one process has checked before others have started."""
_SHOWN = 30  # rows of each table
_HEAD = 6  # characters of what looks random that are shown


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Write a copy of a capture without secrets, e-mail addresses, home directories and user names; or, with "
        "--check, exit 1 if captures hold any. Record numbers stay, and equal values get equal labels."
    )
    parser.add_argument("captures", nargs="+", metavar="CAPTURE", help="with --check also directories")
    parser.add_argument("-o", dest="file", metavar="FILE", help="write the new capture to FILE")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument(
        "--replace", action="append", default=[], metavar="REGEX", help="replace also what matches; repeatable"
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="POINTER",
        help="keep what stands there in messages; repeatable",
    )
    parser.add_argument(
        "--only-secrets", action="store_true", help="keep e-mail addresses, home directories, user names"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; report what would be replaced, and where")
    choice(parser, "--format", tuple(FORMATS), "with --check: format of the report", "FORMAT")
    parser.add_argument("--output", metavar="FILE", help="with --check: write the report to FILE")
    parser.add_argument("--waivers", metavar="FILE", help="with --check: accepted places, with reasons (TOML)")


def run(options: argparse.Namespace) -> int:
    """Scrub one capture, or check several; returns 1 where `--check` finds something or a waiver is stale."""
    wanted = ScrubOptions(options.only_secrets, tuple(map(_pattern, options.replace)), tuple(options.keep))
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


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--replace {text!r} is not a regular expression: {error}") from None


# The copy


def _scrub(named: str, options: argparse.Namespace, wanted: ScrubOptions) -> int:
    if os.path.isdir(named):
        raise UsageError(f"{named} is a directory; scrub takes one capture, scrub --check also directories")
    path = next(named_captures([named]))
    file: str = options.file
    refuse_to_overwrite("-o", file, Capture(path).paths)
    if os.path.lexists(file) and not options.force:
        raise UsageError(f"{file} exists; --force replaces it")
    if not options.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("scrub asks before it writes, and this is not a terminal; --yes writes without asking")
    with ProgressBar("reading", size_of(path)) as bar:
        scrub = Scrub(path, wanted, bar.advance)
    for line in _table(scrub.replaced, scrub.leftovers):
        print(line)
    if scrub.live:
        say(f"{path} is still being recorded: this is what it holds now")
    if scrub.damaged:
        say(f"{path} has {plural(scrub.damaged, 'damaged line')}, whose content is left out")
    if not options.yes and not _agreed(file):
        say("nothing was written")
        return 1
    write_copy(scrub.lines(), file, replace=options.force)
    print(f"written: {printable(file, 4096)}")
    return 0


def _agreed(file: str) -> bool:
    try:
        return input(f"Write {printable(file, 1000)}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def _table(replaced: Sequence[Replaced], leftovers: Sequence[Leftover]) -> Iterator[str]:
    """What is replaced and what is left, for the user to look at."""
    if not replaced:
        yield "nothing to replace was found"
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


def _where(left: Leftover) -> str:
    return printable(left.where, 60)


def _columns(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


# The check


def _checked(path: str, advance: Advance, *, wanted: ScrubOptions) -> ScrubChecked:
    return check(path, wanted, advance)


def _check(options: argparse.Namespace, wanted: ScrubOptions) -> int:
    accepted = waivers.read(options.waivers, RULES) if options.waivers else ()
    paths = list(named_captures(options.captures))
    if options.output:
        refuse_to_overwrite("--output", options.output, [*paths, *filter(None, [options.waivers])])
    size = sum(map(size_of, paths))
    with ProgressBar("checking", size) as bar:
        found = mapped(partial(_checked, wanted=wanted), paths, bar.advance, cores() if size > SMALL else 1)
    captures, stale, expired = without_waived(accepted, found, datetime.now(tz=UTC).date())
    write_report(FORMATS[options.format](captures), options.output)
    for waiver in expired:
        say(f"the waiver has expired on {waiver.expires}: {waiver}")
    for waiver in stale:
        say(f"the waiver is stale, nothing is found any more: {waiver}")
    return int(bool(stale) or any(checked.findings for checked in captures))
