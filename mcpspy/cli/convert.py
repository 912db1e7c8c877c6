"""`mcpspy export` and `mcpspy import`: convert captures to formats of other programs, and from them."""

import argparse
import os
import sys
from itertools import chain, count

from mcpspy.capture.reader import Capture
from mcpspy.cli.output import ProgressBar, say, size_of
from mcpspy.cli.targets import capture_paths, is_file_of, parsed_filter
from mcpspy.errors import CaptureError, UsageError
from mcpspy.exporters import FORMATS, export, holds
from mcpspy.exporters.source import ExportSource
from mcpspy.output_file import output_file
from mcpspy.text import plural, printable

_PARQUET = "parquet"


def run(options: argparse.Namespace) -> int:
    """Write the exports, and print the path of each file written."""
    if options.format == _PARQUET:
        return _run_parquet(options)
    kind = FORMATS[options.format]
    sources = [_source(path, options.filter) for path in capture_paths(options.captures)]
    targets = _targets(sources, options.format, options.output)
    for path in targets:
        if path is not None and os.path.lexists(path) and not options.force:
            raise UsageError(f"{path} exists; --force replaces it")
        if path is not None and any(is_file_of(path, source.capture) for source in sources):
            raise UsageError(f"{path} is a capture that is exported here; the export needs another name")
    passes = kind.passes if options.filter is None else kind.filtered_passes
    on_terminal = options.output is None and sys.stdout.isatty()  # a bar would appear within the text
    total = sum(size_of(source.capture.path) for source in sources) * passes
    with ProgressBar("exporting", total) as bar:
        for source in sources:
            source.read = None if on_terminal else bar.advance
        for path, group in targets.items():
            portions = export(options.format, group)
            if path is None:
                sys.stdout.buffer.writelines(portions)
                sys.stdout.buffer.flush()
                continue
            with output_file(path, replace=options.force) as file:
                file.writelines(portions)
    for path in targets:
        if path is not None:
            print(printable(path, 4096))
    return 0


def _run_parquet(options: argparse.Namespace) -> int:
    """Add new captures to a directory of tables."""
    if options.output is None:
        raise UsageError("--format parquet needs a directory: -o DIR")
    if options.filter is not None:
        raise UsageError("--format parquet takes no --filter: tables are whole, and queries choose rows")
    from mcpspy.cli.sql import built
    from mcpspy.query.cache import scratch

    with scratch() as folder:
        captures = built(options.captures, folder)
        from mcpspy.query import lake  # needs the extra; `built` reports if it is missing

        added = lake.add(captures, os.path.abspath(options.output), again=options.force)
    unchanged = len(captures) - added
    print(f"{printable(options.output, 4096)}: {plural(added, 'capture')} written, {unchanged:,} unchanged")
    return 0


def _source(path: str, text: str | None) -> ExportSource:
    capture = Capture(path)
    return ExportSource(capture, None if text is None else parsed_filter(text, capture.header.started))


def _targets(sources: list[ExportSource], name: str, output: str | None) -> dict[str | None, list[ExportSource]]:
    """Return output file -> sources; None is stdout. Creates the directory if it does not exist."""
    suffix = FORMATS[name].suffix
    if output is None:
        return {None: sources}
    one_file = len(sources) == 1 or (FORMATS[name].joins and output.endswith(suffix[suffix.rindex(".") :]))
    if one_file and not os.path.isdir(output) and not output.endswith(os.sep):
        return {output: sources}
    fits = [source for source in sources if holds(name, source)]
    if not fits:
        return {output: sources}  # refused later, with the reason
    for source in sources:
        if source not in fits:
            say(f"skipped: {source.capture.path} is a stdio session, and {name} holds HTTP only")
    try:
        os.makedirs(output, mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the directory {output}: {error.strerror}") from error
    found: dict[str | None, list[ExportSource]] = {}
    for source in fits:
        names = (f"{source.name}{number}{suffix}" for number in chain([""], (f"-{n}" for n in count(2))))
        found[next(path for it in names if (path := os.path.join(output, it)) not in found)] = [source]
    return found


def run_import(options: argparse.Namespace) -> int:
    """Create the captures and print their paths."""
    from mcpspy.importers.forms import bring  # 'mcpspy export' does not need it

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
