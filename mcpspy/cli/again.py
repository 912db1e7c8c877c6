"""`mcpspy replay --only`: send requests of a capture again, and show each answer beside the recorded one.

A capture is not trusted. The command or the URL is the one that the user types; or the recorded one, after a question,
if a relay of this user wrote the header (`mcpspy.capture.user_key`). Secrets are not in a capture: they come from the
configuration of the user's client, or are asked for.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from getpass import getpass
from typing import TYPE_CHECKING

from mcpspy.capture.location import PACKED, directory, file_name, make_directory, shown
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.cli.access import access_of, access_to_url
from mcpspy.cli.output import (
    ProgressBar,
    answered_yes,
    explain_whole,
    has_colours,
    is_typed,
    line_width,
    say,
    write_report,
)
from mcpspy.cli.targets import refuse_new
from mcpspy.clients.recorded import MARK, Recorded, described, recorded, trusted
from mcpspy.errors import CaptureError, UsageError
from mcpspy.network.access import Access
from mcpspy.replay import settings
from mcpspy.replay.again import QUESTION, edit, name_origin, narrowed, not_comparable, repeats_names, requests_of
from mcpspy.replay.issued_values import rewritten
from mcpspy.replay.run import Replayed, replay, writing
from mcpspy.replay.script import Script, Turn, script_of
from mcpspy.replay.sessions import FINE, Compared
from mcpspy.replay.tolerance import Rules
from mcpspy.report.again import again_lines
from mcpspy.report.differences import FORMATS, as_fields, to_json
from mcpspy.text import printable, series
from mcpspy.transport.link import Link, stderr_of
from mcpspy.tui.message.text import json_mistake, one_line, pretty

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink

_STDERR = 20  # lines of a server that did not answer


def run(options: argparse.Namespace) -> int:
    """Send, and report. Returns 1 if an answer differs from the recorded one."""
    _refuse(options)
    access = access_to_url(options) if options.server or options.url else access_of(options)
    rules = settings.chosen([options.capture], vars(options)).rules
    if Capture(options.capture).live:
        raise CaptureError(f"{options.capture} is still being recorded: R in 'mcpspy tui' sends it in the session")
    header = None if options.server or options.url else _trusted(options.capture)
    script = script_of(options.capture, forwarded=options.as_forwarded)
    wanted = requests_of(script, options.only)
    if options.edit:
        _edit(wanted)
    part = narrowed(script, wanted)
    server = _server(options, header, part, wanted)
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        path = options.new or _new_path(script.header)
        packed = path.endswith(PACKED)
        connect = partial(_connect, server, options.header or (), access, part)
        with ProgressBar("replaying", len(part.messages)) as bar:
            first = os.path.join(folder, "new.jsonl") if packed else path
            replayed = replay(part, connect, first, read_only=False, advance=bar.advance)
        path = path if packed else replayed.path
        try:
            name_origin(replayed.path, options.capture, [turn.cause.n for turn in wanted], path)
        except (CaptureError, OSError) as error:  # the answer is worth more
            say(f"{path} does not say which requests it repeats: {error}")
        return _report(options, wanted, replayed, path, rules)


def _refuse(options: argparse.Namespace) -> None:
    for name in ("learn", "update", "read_only"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} belongs to a replay of the whole capture, not to --only")
    if options.server and options.url:
        raise UsageError("give a command or --url, not both")
    refuse_new(options.new, options.capture)
    if options.output and not os.path.isdir(os.path.dirname(options.output) or "."):
        raise UsageError(f"cannot write {options.output}: there is no such directory")


def _trusted(path: str) -> Header:
    try:
        return trusted(path)
    except UsageError as error:
        what = f"{shown(path)}: {error}, so the server that it names is not used"
        raise UsageError(f"{what}: add '-- COMMAND' or --url URL (docs/replay.md)") from None


def _edit(wanted: Sequence[Turn]) -> None:
    """Let the user change the request: in the editor, or by what stdin has if it is not a terminal."""
    from mcpspy.tui.widgets.programs import edited, editor_command

    if len(wanted) > 1:
        raise UsageError(f"--edit changes one request; here are {len(wanted)}")
    typed = is_typed()
    text = edited(pretty(_text_of(wanted[0])), editor_command(os.environ)) if typed else _typed_json()
    edit(wanted[0], one_line(text))


def _typed_json() -> str:
    """Return the JSON value on stdin. What follows it stays there, for the answer to the question."""
    text = ""
    for line in sys.stdin or ():
        text += line
        if json_mistake(text) is None:
            break
    return text


def _text_of(turn: Turn) -> str:
    """Return the text of a request as it is sent; in a batch, that of its part."""
    return rewritten(turn.cause, {}).decode(errors="replace")


def _new_path(header: Header | None) -> str:
    folder = directory(None, os.environ)
    try:
        make_directory(folder)
    except OSError as error:
        raise CaptureError(f"cannot write a capture to {folder}: {error.strerror}") from error
    return os.path.join(folder, file_name(time.time_ns(), header.name if header else "server"))


def _connect(server: Recorded, headers: Sequence[str], access: Access, part: Script, path: str) -> "Link | WebLink":
    name = part.header.name if part.header else "server"
    if server.url:
        from mcpspy.transport.http_link import WebLink

        return WebLink(server.url, headers, name, path, part.size, access)
    return Link([*server.argv], name, path, say, part.size, server.variables(), server.cwd, server.written)


# What is sent, and to what


def _server(options: argparse.Namespace, header: Header | None, part: Script, wanted: Sequence[Turn]) -> Recorded:
    """Return what the user typed, or what the capture names; show it with all that is sent, and ask.

    With a server that the user typed, calls of tools that only read need no answer.
    """
    asks = not options.yes
    if header is None:
        server = Recorded(options.server, url=options.url or "")
        asks = asks and (bool(writing(part)) or any(repeats_names(_text_of(turn)) for turn in part.turns))
    else:
        server = recorded(header)
        if options.header and not server.url:
            raise UsageError("--header belongs to --url: a command has no HTTP headers")
        explain_whole(described(header, server))
        server = server.complete(_ask)
    explain_whole(_sent(part, wanted, options.header or (), over_http=bool(server.url)))
    if asks and not answered_yes(QUESTION):
        raise UsageError("nothing was sent: it needs the answer y, or --yes")
    return server


def _ask(where: str) -> str:
    """Let the user type a redacted value of the command."""
    if not is_typed():
        raise UsageError(f"the command has a redacted value ({printable(where, 400)}): add '-- COMMAND'")
    try:
        return getpass(f"the redacted value in '{printable(where, 400)}': ")
    except EOFError:
        raise UsageError("nothing was sent: the redacted value was not typed") from None


def _sent(part: Script, wanted: Sequence[Turn], headers: Sequence[str], *, over_http: bool) -> Iterator[str]:
    """Yield what is sent: what the server needs first, each request in full, and the answers that may be given."""
    for turn in part.turns:
        if turn not in wanted:
            yield f"sends first  #{turn.cause.n} {_text_of(turn)}"
    for turn in wanted:
        first, *more = pretty(_text_of(turn)).split("\n")
        yield f"then sends   #{turn.cause.n} {first}"
        yield from (f"             {line}" for line in more)
    for message in part.asked:
        answer = message.exchange.response if message.exchange else None
        if answer:
            said = rewritten(answer, {}).decode(errors="replace")
            yield f"answers      #{message.n} {message.method} with {said}"
    given = {header.partition(":")[0].strip().lower() for header in headers}
    withheld = sorted(_withheld(part) - given) if over_http else []
    if withheld:
        yield f"without      {series(withheld)}, whose values were not recorded: --header adds them"


def _withheld(part: Script) -> set[str]:
    """Return the names of the header fields whose values are redacted."""
    carriers = (message.http.opened.head for message in part.messages if message.sender == "client" and message.http)
    fields = (found for head in carriers for found in (head or {}).get("headers", ()))
    return {printable(str(name), 60).lower() for name, value in fields if MARK.search(str(value))}


# The report


def _report(options: argparse.Namespace, wanted: Sequence[Turn], replayed: Replayed, path: str, rules: Rules) -> int:
    """Print the report; `path` is that of the new capture."""
    answers = _compared(wanted, replayed, rules)
    if options.format == "text":
        write_report(_text(wanted, answers, replayed, path, options.output), options.output)
    elif options.format == "json":
        fields = as_fields(answers) | {"capture": path, "stderr": _stderr(answers, replayed)}
        write_report([to_json(fields) + "\n"], options.output)
    else:
        write_report([FORMATS[options.format](options.capture, answers)], options.output)
    return 0 if all(it.outcome in FINE for it in answers) else 1


def _compared(wanted: Sequence[Turn], replayed: Replayed, rules: Rules) -> list[Compared]:
    """Return the comparison of each request; if that is impossible, the outcome is `changed`, with the reason."""
    requests = [old for old, _ in replayed.pairs if old and old.exchange]  # the comparison begins with these, in order
    found = dict(zip(requests, replayed.compared(rules), strict=False))
    answers = []
    for turn in wanted:
        it = found[turn]
        why = not_comparable(turn)
        answers.append(replace(it, outcome="changed", reason=why) if why and it.outcome in FINE else it)
    return answers


def _text(
    wanted: Sequence[Turn], answers: Sequence[Compared], replayed: Replayed, path: str, output: str | None
) -> Iterator[str]:
    colours = output is None and has_colours()
    width = line_width(0) or None
    now: Mapping[Turn | None, Turn | None] = dict(replayed.pairs)
    for turn, compared in zip(wanted, answers, strict=True):
        for line in again_lines(turn, now.get(turn), compared, None if output else width, colours=colours):
            yield f"{line}\n"
    for line in _stderr(answers, replayed):
        yield f"  stderr    {printable(line, 400)}\n"
    yield f"recorded in {printable(path, 4096)}\n"


def _stderr(answers: Sequence[Compared], replayed: Replayed) -> list[str]:
    """Return the last lines that the server wrote to stderr, if an answer is missing."""
    return stderr_of(replayed.path, _STDERR) if any(it.outcome == "missing" for it in answers) else []
