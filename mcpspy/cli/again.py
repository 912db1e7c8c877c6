"""`mcpspy replay --only`: send requests of a capture again, and show each answer beside the recorded one.

A capture is not trusted. The command or the URL is the one that the user types; or the recorded one, after a question,
if a relay of this user wrote the header (`mcpspy.capture.user_key`). Secrets are not in a capture: they come from the
configuration of the user's client, or are asked for.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from getpass import getpass
from typing import TYPE_CHECKING

from mcpspy.capture.location import directory, file_name, make_directory
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.cli.output import (
    ProgressBar,
    confirmed,
    explain,
    has_colours,
    line_width,
    refuse_to_overwrite,
    say,
    write_report,
)
from mcpspy.clients.recorded import MARK, Recorded, described, recorded, refusal
from mcpspy.errors import CaptureError, UsageError
from mcpspy.replay import settings
from mcpspy.replay.again import edit, name_origin, narrowed, requests_of, told
from mcpspy.replay.run import Replayed, replay
from mcpspy.replay.script import Script, Turn, script_of
from mcpspy.replay.sessions import FINE, Compared
from mcpspy.replay.tolerance import Rules
from mcpspy.report.again import again_lines
from mcpspy.report.differences import FORMATS, as_fields, to_json
from mcpspy.text import printable, series
from mcpspy.transport.link import Link, stderr_of

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink

_SHOWN = 1_500  # characters of a request in the question
_STDERR = 20  # lines of a server that did not answer


def run(options: argparse.Namespace) -> int:
    """Send, and report. Returns 1 if an answer differs from the recorded one."""
    _refuse(options)
    capture = Capture(options.capture)
    if options.new:
        refuse_to_overwrite("-o", options.new, capture.paths)
    if capture.live:
        raise CaptureError(f"{options.capture} is still being recorded: R in 'mcpspy tui' sends it in the session")
    _refuse_what_is_not_trusted(options)
    rules = settings.chosen([options.capture], vars(options)).rules
    script = script_of(options.capture, forwarded=options.as_forwarded)
    wanted = requests_of(script, options.only)
    if options.edit:
        _edit(wanted)
    part = narrowed(script, wanted)
    server = _target(options, part, wanted)
    path = options.new or _new_path(script.header)
    with ProgressBar("replaying", len(part.messages)) as bar:
        replayed = replay(
            part, partial(_connect, server, options.header or (), part), path, read_only=False, advance=bar.advance
        )
    name_origin(replayed.path, options.capture, [turn.cause.n for turn in wanted])
    return _report(options, wanted, replayed, rules)


def _refuse(options: argparse.Namespace) -> None:
    for name in ("learn", "update", "read_only"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} belongs to a replay of the whole capture, not to --only")
    if options.server and options.url:
        raise UsageError("give a command or --url, not both")
    if options.header and options.server:
        raise UsageError("--header belongs to --url: a command has no HTTP headers")
    if options.edit and len(options.only) > 1:
        raise UsageError("--edit changes one request: give one number to --only")


def _refuse_what_is_not_trusted(options: argparse.Namespace) -> None:
    if not (options.server or options.url):
        refused = refusal(options.capture, Capture(options.capture).header)
        if refused:
            raise UsageError(f"{refused}: add '-- COMMAND' or --url URL (docs/replay.md)")


def _edit(wanted: Sequence[Turn]) -> None:
    """Let the user change the request: in the editor, or by what stdin has if it is not a terminal."""
    from mcpspy.tui.message.text import one_line, pretty
    from mcpspy.tui.widgets.programs import edited, editor_command

    turn = wanted[0]
    text = pretty(turn.cause.frame.raw.decode(errors="replace"))
    text = edited(text, editor_command(os.environ)) if sys.stdin.isatty() else sys.stdin.read()
    edit(turn, one_line(text))


def _new_path(header: Header | None) -> str:
    folder = directory(None, os.environ)
    try:
        make_directory(folder)
    except OSError as error:
        raise CaptureError(f"cannot write a capture to {folder}: {error.strerror}") from error
    return os.path.join(folder, file_name(time.time_ns(), header.name if header else "server"))


def _connect(server: Recorded, headers: Sequence[str], part: Script, path: str) -> "Link | WebLink":
    name = part.header.name if part.header else "server"
    if server.url:
        from mcpspy.transport.http_link import WebLink

        return WebLink(server.url, headers, name, path, part.size)
    return Link([*server.argv], name, path, say, part.size, server.variables(), server.cwd)


# What the requests are sent to


def _target(options: argparse.Namespace, part: Script, wanted: Sequence[Turn]) -> Recorded:
    """Return what the user typed; or what the capture names, if the user agrees."""
    if options.server or options.url:
        return Recorded(options.server, url=options.url or "")
    header = part.header
    assert header
    server = recorded(header, _ask)
    explain(*described(header, server), *_sent(part, wanted, options.header))
    if not options.yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing was sent: it needs an answer, or --yes")
        if not confirmed("Send it?"):
            raise UsageError("nothing was sent")
    return server


def _ask(word: str) -> str:
    """Let the user type the redacted value in a word of the command."""
    if not sys.stdin.isatty():
        raise UsageError(f"the command has a redacted value ({printable(word, 80)}): add '-- COMMAND'")
    return getpass(f"the redacted value in {printable(word, 80)}: ")


def _sent(part: Script, wanted: Sequence[Turn], headers: Sequence[str]) -> Iterator[str]:
    """Yield what is sent: first what the server needs, then each request in full."""
    before = [turn for turn in part.turns if turn not in wanted]
    if before:
        yield f"sends first  {told(before)}"
    for turn in wanted:
        raw = turn.cause.frame.raw.decode(errors="replace")
        shown = printable(raw, _SHOWN)
        whole = shown == printable(raw, sys.maxsize)
        cut = "" if whole else f", whose {len(raw):,} characters are not all shown:"
        yield f"then         #{turn.cause.n}{cut} {shown}"
    given = {header.partition(":")[0].strip().lower() for header in headers}
    withheld = sorted(_withheld(part) - given)
    if withheld:
        yield f"without      {series(withheld)}, whose values were not recorded: --header adds them"


def _withheld(part: Script) -> set[str]:
    """Return the names of the header fields whose values are redacted."""
    carriers = (message.http.opened.head for message in part.messages if message.sender == "client" and message.http)
    fields = (found for head in carriers for found in (head or {}).get("headers", ()))
    return {printable(str(name), 60).lower() for name, value in fields if MARK.search(str(value))}


# The report


def _report(options: argparse.Namespace, wanted: Sequence[Turn], replayed: Replayed, rules: Rules) -> int:
    compared = {it.request: it for it in replayed.compared(rules)}
    answers = [compared[turn.cause.n] for turn in wanted]
    if options.format == "text":
        write_report(_text(wanted, answers, replayed, options.output), options.output)
    elif options.format == "json":
        fields = as_fields(answers) | {"capture": replayed.path, "stderr": _stderr(answers, replayed)}
        write_report([to_json(fields) + "\n"], options.output)
    else:
        write_report([FORMATS[options.format](options.capture, answers)], options.output)
    return 0 if all(it.outcome in FINE for it in answers) else 1


def _text(wanted: Sequence[Turn], answers: Sequence[Compared], replayed: Replayed, output: str | None) -> Iterator[str]:
    colours = output is None and has_colours()
    width = line_width(0) or None
    now: Mapping[Turn | None, Turn | None] = dict(replayed.pairs)
    for turn, compared in zip(wanted, answers, strict=True):
        for line in again_lines(turn, now.get(turn), compared, None if output else width, colours=colours):
            yield f"{line}\n"
    for line in _stderr(answers, replayed):
        yield f"  stderr    {printable(line, 400)}\n"
    yield f"recorded in {printable(replayed.path, 4096)}\n"


def _stderr(answers: Sequence[Compared], replayed: Replayed) -> list[str]:
    """Return the last lines that the server wrote to stderr, if an answer is missing."""
    return stderr_of(replayed.path, _STDERR) if any(it.outcome == "missing" for it in answers) else []
