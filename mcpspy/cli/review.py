"""The decisions of a user about a scrub: what is replaced, and whether the result may be written.

`scrub` and `share` have the same options, table and question.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence

from mcpspy.cli.output import confirmed, say
from mcpspy.errors import UsageError
from mcpspy.sharing.scrub import Leftover, Replaced, Scrub, ScrubOptions
from mcpspy.text import plural, printable

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
