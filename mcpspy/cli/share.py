"""`mcpspy share`: write a capture as one HTML page that works offline, without secrets and personal data."""

import argparse
import os

from mcpspy.capture.reader import Capture
from mcpspy.cli.output import ProgressBar, refuse_to_overwrite, say, size_of
from mcpspy.cli.review import agreed, refuse_without_terminal, scrub_options
from mcpspy.cli.targets import existing_path, parsed_filter
from mcpspy.errors import UsageError
from mcpspy.output_file import output_file
from mcpspy.sharing.page.writer import is_too_large, readings, refuse_too_large, scrubbed, unscrubbed, write_page
from mcpspy.sharing.scrub import Scrub
from mcpspy.text import plural, printable, size_text


def run(options: argparse.Namespace) -> int:
    """Write the page. Returns 1 if the user declines."""
    path = existing_path(options.capture)
    if options.raw and (options.replace or options.keep or options.only_secrets):
        raise UsageError("--raw replaces nothing: no --replace, --keep or --only-secrets with it")
    if os.path.isdir(path):
        raise UsageError(f"{path} is a directory; share takes one capture")
    capture = Capture(path)
    file: str = options.file or os.path.splitext(os.path.basename(path))[0] + ".html"
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
