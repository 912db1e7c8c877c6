"""`mcpspy why`: what failed in captures, and why."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

import orjson

from mcpspy.capture.reader import Capture
from mcpspy.cli.output import ProgressBar, has_colours, line_width, size_of
from mcpspy.cli.targets import newest_capture, parsed_filter, readable_paths
from mcpspy.process.workers import cores, mapped
from mcpspy.report.lines import WIDTH
from mcpspy.report.problems import Explained, explain, explained_fields, why_lines
from mcpspy.timeline import final_rows

_SMALL = 1 << 18  # bytes that one process reads as fast as several


def run_why(options: argparse.Namespace) -> int:
    """Explain the captures. Returns 1 if there are problems."""
    named = readable_paths(options.captures or [newest_capture()])
    every = _explained(list({os.path.realpath(path): path for path in named}.values()))
    if options.filter is not None:
        every = [_matching(explained, options.filter) for explained in every]
    if options.json:
        sys.stdout.buffer.write(orjson.dumps(explained_fields(every)) + b"\n")
    else:
        for line in why_lines(every, line_width(WIDTH), colour=has_colours()):
            print(line)
    return int(any(explained.problems for explained in every))


def _explained(paths: Sequence[str]) -> list[Explained]:
    """Explain captures with a progress bar, on all processors if there is enough to read."""
    size = sum(map(size_of, paths))
    with ProgressBar("reading", size) as bar:
        return mapped(explain, paths, bar.advance, cores() if size > _SMALL else 1)


def _matching(explained: Explained, text: str) -> Explained:
    """Return the same with only the problems that have a row that matches a filter."""
    capture = Capture(explained.path)
    wanted = parsed_filter(text, capture.header.started)
    numbers = {n for problem in explained.problems for n in problem.rows}
    rows = final_rows(capture.records, live=explained.live) if numbers else ()
    matching = {row.n for row in rows if row.n in numbers and wanted(row)}
    return replace(explained, problems=tuple(it for it in explained.problems if matching.intersection(it.rows)))
