"""`mcpspy prune`: delete old captures, never a live one."""

import argparse
import os
import time

from mcpspy.capture.listing import Listed, captures, delete
from mcpspy.capture.location import directory
from mcpspy.errors import CaptureError, UsageError
from mcpspy.query.cache import forget_gone
from mcpspy.text import SIZES, age_text, plural, printable, quantity, size_text

_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def run_prune(options: argparse.Namespace) -> int:
    """Delete, or with `--dry-run` list what would be deleted."""
    if options.older is None and options.keep is None:
        raise UsageError("prune needs to know what is old: --older 30d, --keep 2GB, or both")
    folder = directory(options.directory, os.environ)
    if options.directory and not os.path.isdir(folder):
        raise CaptureError(f"{folder} is not a directory")
    older = None if options.older is None else quantity(options.older, _AGES, "--older", "90m, 12h, 30d, 8w")
    keep = None if options.keep is None else quantity(options.keep, SIZES, "--keep", "500MB, 2GB")
    found = captures(folder)
    freed = number = 0
    for listed in _old(found, older, keep):
        if options.dry_run or delete(listed):
            verb = "would delete" if options.dry_run else "deleted"
            age = age_text(time.time() - listed.started)
            print(f"{verb} {printable(listed.capture.path, 4096)} ({size_text(listed.size)}, {age})")
            freed += listed.size
            number += 1
    if not options.dry_run:
        forget_gone()  # deletes the tables that 'mcpspy sql' keeps of deleted captures
    left = sum(listed.size for listed in found) - freed
    verb = "would be deleted" if options.dry_run else "deleted"
    print(
        f"{plural(number, 'capture')} {verb}, {size_text(freed)};"
        f" {plural(len(found) - number, 'capture')} left, {size_text(left)}"
    )
    return 0


def _old(found: list[Listed], older: float | None, keep: float | None) -> list[Listed]:
    """Return the captures to delete, oldest first. Live captures count for `keep` but are never deleted."""
    candidates = sorted((listed for listed in found if not listed.live), key=lambda listed: listed.started)
    total = sum(listed.size for listed in found)
    old: list[Listed] = []
    for listed in candidates:
        aged = older is not None and time.time() - listed.started > older
        if aged or (keep is not None and total > keep):
            old.append(listed)
            total -= listed.size
    return old
