"""`mcpspy ls` and `mcpspy prune`: list the captures with their sessions, and delete old ones, never a live one."""

import argparse
import os
import time
from textwrap import indent
from typing import Any

import orjson

from mcpspy.capture.listing import Listed, Refused, captures, client_process, delete, omitted, runs
from mcpspy.capture.location import directory, iso_time
from mcpspy.capture.records import Header
from mcpspy.cli.output import line_width, path_text, say
from mcpspy.conversation.counts import COUNTED, Counts, RunTurn, client_label, count, run_label, turns
from mcpspy.errors import CaptureError, UsageError
from mcpspy.report.lines import WIDTH
from mcpspy.report.words import ARROWS
from mcpspy.text import SIZES, age_text, fitted, length_text, plural, printable, quantity, size_text

_TOOLS = 3  # maximum number of tools listed
_MARGIN = 13  # indentation of further lines of a capture, in a group


Counted = list[tuple[Listed, Counts | None]]
"""The captures of a run, each with its counts, or None if it is too large."""


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    folder = directory(options.directory, os.environ)
    if options.directory and not os.path.isdir(folder):
        raise CaptureError(
            f"{folder} is not a directory; to look into one capture use 'mcpspy show {options.directory}'"
        )
    refused: Refused = {}
    found = captures(folder, refused)
    for group in runs(found):
        counted = [(it, _counts(it)) for it in group]
        if options.json:
            objects = [_run_fields(counted)] if options.runs else [_fields(*it) for it in counted]
            print("\n".join(orjson.dumps(it).decode() for it in objects))
            continue
        heading = _run_line(counted) if options.runs else _heading(counted) if len(group) > 1 else ""
        if heading:
            print(heading)
        for listed, counts in counted:
            print(indent(_line(listed, counts), "  " if heading else ""))
    if not options.json:
        total = sum(listed.size for listed in found)
        shown = printable(folder, 4096)
        summary = f"{plural(len(found), 'capture')}, {size_text(total)}, in {shown}"
        print(summary if found else f"no captures in {shown}; 'mcpspy wrap -- COMMAND' makes one")
    if refused:
        say(omitted(refused))
    return 0


class _TooLargeError(Exception):
    """More was read than is counted."""


def _counts(listed: Listed) -> Counts | None:
    """Return the counts of a capture; None if it is too large, which a compressed file may show only at the end."""
    left = COUNTED

    def read(number: int) -> None:
        nonlocal left
        left -= number
        if left < 0:
            raise _TooLargeError

    if listed.size > COUNTED:
        return None
    try:
        return count(listed.capture.records(read=read), live=listed.live)
    except (_TooLargeError, CaptureError):
        return None


def _heading(counted: Counted) -> str:
    """Return the heading above several captures of one client process."""
    process = client_process(counted[0][0].header)
    return f"{printable(_label(counted) or 'client', 60)}, process {process}: {plural(len(counted), 'capture')}"


def _label(counted: Counted) -> str:
    return run_label((counts.client if counts else "", listed.header) for listed, counts in counted)


def _run_line(counted: Counted) -> str:
    """Return a run on one line: start, client, process, and the totals of all its captures."""
    fields = _run_fields(counted)
    began = min(listed.started for listed, _ in counted)
    when = "live" if fields["live"] else age_text(time.time() - began)
    process = f" ({fields['client_process']})" if fields["client_process"] else ""
    parts = [plural(len(fields["servers"]), "server")]
    if fields["frames"] is None:
        parts.append("not counted")
    else:
        if fields["turns"]:
            parts += [length_text(fields["duration"]), plural(len(fields["turns"]), "turn")]
        parts += [plural(fields["frames"], "frame"), plural(fields["exchanges"], "exchange")]
        parts += _wrong(fields["failed"], fields["errors"])
    client = printable(_label(counted) or "unknown client", 60) + process
    return f"{when:>9}  {client:<32}  {', '.join(parts)}"


def _run_fields(counted: Counted) -> dict[str, Any]:
    """Return a run as JSON. If a capture is too large to be counted, the run has no counts."""
    names = dict.fromkeys(listed.header.name for listed, _ in counted)
    known = [counts for _, counts in counted if counts]
    complete = len(known) == len(counted)
    found = turns((round(listed.started * 1e9), counts.spells) for listed, counts in counted if counts)
    began = min(counted, key=lambda it: it[0].started)[0]
    return {
        "client": next((counts.client for _, counts in counted if counts and counts.client), None),
        "client_process": client_process(began.header),
        "client_command": list(began.header.client) or None,
        "servers": list(names),
        "started": began.header.started,
        "live": any(listed.live for listed, _ in counted),
        "duration": round(found[-1].end / 1e9 - began.started, 6) if found and complete else None,
        "frames": sum(counts.frames for counts in known) if complete else None,
        "exchanges": sum(counts.exchanges for counts in known) if complete else None,
        "errors": sum(counts.errors for counts in known) if complete else None,
        "failed": sum(counts.failed for counts in known) if complete else None,
        "turns": [_turn_fields(turn) for turn in found] if complete else None,
        "captures": [_fields(*it) for it in counted],
    }


def _turn_fields(turn: RunTurn) -> dict[str, Any]:
    """Return a turn as JSON."""
    started, ended = (iso_time(t) for t in (turn.start, turn.end))
    return {"started": started, "ended": ended, "frames": turn.frames, "exchanges": turn.exchanges}


def _fields(listed: Listed, counts: Counts | None) -> dict[str, Any]:
    """Return a capture as JSON."""
    header = listed.header
    return {
        "path": os.fsencode(listed.capture.path).decode("utf-8", "replace"),
        "name": header.name,
        "transport": header.transport,
        "started": header.started,
        "live": listed.live,
        "frames": counts.frames if counts else None,
        "exchanges": counts.exchanges if counts else None,
        "errors": counts.errors if counts else None,
        "failed": counts.failed if counts else None,
        "size": listed.size,
        "client": (counts.client or None) if counts else None,
        "client_process": client_process(header),
        "client_command": list(header.client) or None,
    }


def _line(listed: Listed, counts: Counts | None) -> str:
    header = listed.header
    when = "live" if listed.live else age_text(time.time() - listed.started)
    said = ["not counted"]
    if counts:
        said = [plural(counts.frames, "frame"), plural(counts.exchanges, "exchange")]
        said += _wrong(counts.failed, counts.errors)
    path, room = path_text(listed.capture.path), line_width(WIDTH) - _MARGIN
    about = "".join(f"\n           {fitted(told, room)}" for told in _about(counts, header) if told)
    what = f"{printable(header.name, 24):<24}  {printable(header.transport, 5):<5}"
    return f"{when:>9}  {what}  {size_text(listed.size):>9}  {', '.join(said)}{about}\n           {path}"


def _wrong(failed: int, errors: int) -> list[str]:
    """Return what went wrong, in words: requests that failed, and errors, which are more or fewer."""
    return [*([f"{failed:,} failed"] if failed else []), *([plural(errors, "error")] if errors else [])]


def _about(counts: Counts | None, header: Header) -> tuple[str, str]:
    """Return a summary of a session (client, server, most called tools), and the last error."""
    if counts is None:
        return client_label("", header), ""
    most = sorted(counts.called.items(), key=lambda called: -called[1])
    tools = ", ".join([*(f"{name} {number:,}" for name, number in most[:_TOOLS]), *["…"] * (len(most) > _TOOLS)])
    error = f"last error {counts.last_error}" if counts.last_error else ""
    peers = f" {ARROWS['client']} ".join(filter(None, (client_label(counts.client, header), counts.server)))
    return " · ".join(filter(None, (peers, tools))), error


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
        from mcpspy.query.cache import forget_gone  # 'mcpspy ls' does not need it

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
