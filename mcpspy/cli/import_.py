"""`mcpspy import FILE`: convert recordings of other programs to captures."""

import argparse
import os

from mcpspy.cli.output import ProgressBar, say
from mcpspy.errors import CaptureError
from mcpspy.importers.forms import bring
from mcpspy.text import plural, printable


def run_import(options: argparse.Namespace) -> int:
    """Create the captures and print their paths."""
    size = os.path.getsize(options.file) if os.path.isfile(options.file) else 0
    with ProgressBar("importing", size) as bar:
        account = bring(options.file, os.environ, options.folder, bar.advance)
    for path in account.paths:
        print(printable(path, 4096))
    if account.left_out:
        say(f"{options.file}: {account.left_out}; it is left out")
    read = plural(account.read, account.unit)
    lost = f"{account.lost:,} of them damaged" if account.lost else ""
    if account.fault:
        kept = "everything before that is imported" if account.paths else "nothing is imported"
        raise CaptureError(f"{options.file} cannot be read to its end: {account.fault}; {kept}")
    if not account.paths:
        raise CaptureError(f"nothing in {options.file} ({', '.join(filter(None, [read, lost]))}) is MCP")
    if lost:
        say(f"{options.file} has {read}, {lost} and left out")
    return 0
