"""`mcpspy ls`: the captures of a directory, live ones first."""

import argparse
import os
import sys
import time
from textwrap import indent

import orjson

from mcpspy.capture.listing import Listed, Refused, by_client, captures, client_process, omitted
from mcpspy.capture.location import directory
from mcpspy.errors import CaptureError
from mcpspy.text import age_text, plural, printable, size_text
from mcpspy.timeline import Counts, count

_COUNTED = 16 << 20  # bytes; counting larger captures would take longer than a list should


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = "List the captures of a directory, live ones first, those of one client process together."
    parser.add_argument("directory", nargs="?", metavar="DIR", help="default: the capture directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each capture")


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    folder = directory(options.directory, os.environ)
    if options.directory and not os.path.isdir(folder):
        raise CaptureError(
            f"{folder} is not a directory; to look into one capture use 'mcpspy show {options.directory}'"
        )
    refused: Refused = {}
    found = captures(folder, refused)
    for group in by_client(found, lambda listed: listed.capture.header):
        counted = [(it, count(it.capture.records()) if it.size <= _COUNTED else None) for it in group]
        together = len(group) > 1 and not options.json
        if together:
            print(_heading(counted))
        for listed, counts in counted:
            text = _json(listed, counts) if options.json else _line(listed, counts)
            print(indent(text, "  ") if together else text)
    if not options.json:
        total = sum(listed.size for listed in found)
        summary = f"{plural(len(found), 'capture')}, {size_text(total)}, in {folder}"
        print(summary if found else f"no captures in {folder}; 'mcpspy wrap -- COMMAND' makes one")
    if refused:
        print(f"mcpspy: {printable(omitted(refused), 1000)}", file=sys.stderr)
    return 0


def _heading(counted: list[tuple[Listed, Counts | None]]) -> str:
    """What several captures of one client process have above them."""
    process = client_process(counted[0][0].capture.header)
    names = [counts.client for _, counts in counted if counts and counts.client]
    return f"{printable(names[0], 60) if names else 'client'}, process {process}: {plural(len(counted), 'capture')}"


def _json(listed: Listed, counts: Counts | None) -> str:
    header = listed.capture.header
    fields = {
        "path": os.fsencode(listed.capture.path).decode("utf-8", "replace"),
        "name": header.name,
        "transport": header.transport,
        "started": header.started,
        "live": listed.live,
        "frames": counts.frames if counts else None,
        "exchanges": counts.exchanges if counts else None,
        "errors": counts.errors if counts else None,
        "size": listed.size,
        "client": (counts.client or None) if counts else None,
        "client_process": client_process(header),
    }
    return orjson.dumps(fields).decode()


def _line(listed: Listed, counts: Counts | None) -> str:
    header = listed.capture.header
    when = "live" if listed.live else age_text(time.time() - listed.started)
    said = f"{plural(counts.frames, 'frame')}, {plural(counts.exchanges, 'exchange')}" if counts else "not counted"
    wrong = f", {plural(counts.errors, 'error')}" if counts and counts.errors else ""
    path, home = printable(listed.capture.path, 4096), os.path.expanduser("~") + os.sep
    path = f"~{os.sep}{path.removeprefix(home)}" if path.startswith(home) else path
    what = f"{printable(header.name, 24):<24}  {printable(header.transport, 5):<5}"
    return f"{when:>9}  {what}  {size_text(listed.size):>9}  {said}{wrong}\n           {path}"
