"""`mcpspy prune`: delete old captures, never a live one."""

import argparse
import os
import re
import time

from mcpspy.capture.listing import Listed, captures, delete
from mcpspy.capture.location import directory
from mcpspy.errors import CaptureError, UsageError
from mcpspy.text import printable
from mcpspy.units import age_text, plural, size_text

_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def run(options: argparse.Namespace) -> int:
    """Delete, or with `--dry-run` say what would be."""
    if options.older is None and options.keep is None:
        raise UsageError("prune needs to know what is old: --older 30d, --keep 2GB, or both")
    folder = directory(options.directory, os.environ)
    if options.directory and not os.path.isdir(folder):
        raise CaptureError(f"{folder} is not a directory")
    older = None if options.older is None else _quantity(options.older, _AGES, "--older", "90m, 12h, 30d, 8w")
    keep = None if options.keep is None else _quantity(options.keep, _SIZES, "--keep", "500MB, 2GB")
    found = captures(folder)
    freed = number = 0
    for listed in _old(found, older, keep):
        if options.dry_run or delete(listed):
            verb = "would delete" if options.dry_run else "deleted"
            age = age_text(time.time() - listed.started)
            print(f"{verb} {printable(listed.capture.path, 4096)} ({size_text(listed.size)}, {age})")
            freed += listed.size
            number += 1
    left = sum(listed.size for listed in found) - freed
    verb = "would be deleted" if options.dry_run else "deleted"
    print(
        f"{plural(number, 'capture')} {verb}, {size_text(freed)};"
        f" {plural(len(found) - number, 'capture')} left, {size_text(left)}"
    )
    return 0


def _old(found: list[Listed], older: float | None, keep: float | None) -> list[Listed]:
    """The captures to delete, oldest first; live ones count for `keep` but are never among them."""
    candidates = sorted((listed for listed in found if not listed.live), key=lambda listed: listed.started)
    total = sum(listed.size for listed in found)
    old: list[Listed] = []
    for listed in candidates:
        aged = older is not None and time.time() - listed.started > older
        if aged or (keep is not None and total > keep):
            old.append(listed)
            total -= listed.size
    return old


def _quantity(text: str, units: dict[str, int], option: str, examples: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    unit = match[2] if match else ""
    factor = units.get(unit, units.get(unit.upper(), units.get(unit.lower())))
    if not match or factor is None:
        raise UsageError(f"{option} cannot be {text!r}; it is a number with a unit, such as {examples}")
    return float(match[1]) * factor
