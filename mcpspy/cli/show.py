"""`mcpspy show`: a capture as a timeline, for people or as JSON."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from mcpspy.capture.reader import Capture
from mcpspy.conversation.session import ENDLESS, Exchange
from mcpspy.errors import FilterError
from mcpspy.filters import Filter, parse
from mcpspy.rules import Finding
from mcpspy.text import printable, size_text
from mcpspy.timeline import Row, final_rows, finding_fields, judged, to_json, wall_time

_ARROWS = {"client": "→", "server": "←", "mcpspy": "·"}
_MARKS = {"error": "✗", "warning": "!", "info": "·"}
_SEVERITIES = {"error": "31", "warning": "33", "info": "90"}
_COLOURS = {"error": "31", "tool-error": "31", "invalid": "35", "gap": "33"} | dict.fromkeys(
    ("stderr", "http", "event", "signal", "end", "undecoded"), "90"
)


def run(options: argparse.Namespace) -> int:
    """Print the capture."""
    capture = Capture(options.capture)
    wanted = None if options.filter is None else _filter(options.filter, capture.header.started)
    if options.json:
        _print_json(capture, _choice(wanted), follow=options.follow)
        return 0
    live = capture.live
    print(_title(capture, live=live), flush=True)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    found: Iterable[Row | Finding]
    if wanted and not options.follow:
        found = final_rows(capture.records, live=live)  # how an exchange ended is known of its request too
    else:
        found = judged(capture.follow() if options.follow else capture.records())
    pending = _print_lines(found, _choice(wanted), colour=colour, flush=options.follow)
    for exchange in pending:
        state = "still pending" if live and not options.follow else exchange.status.replace("pending", "no answer")
        if exchange.in_doubt:
            where = "by a frame that was not decoded" if exchange.undecoded else "where records are missing"
            state = f"perhaps answered {where}"
        print(f"#{exchange.request.n} {printable(exchange.method, 60)}: {state}")
    return 0


def _filter(text: str, started: str) -> Filter:
    """The filter that the command line gives; what cannot be understood is pointed at."""
    try:
        return parse(text, started)
    except FilterError as error:
        before = len(printable(text[: error.column - 1], 2000))
        print(f"  {printable(text, 2000)}\n  {' ' * before}^", file=sys.stderr)
        raise


def _choice(wanted: Filter | None) -> Callable[[Row | Finding], bool]:
    """Whether to print a row; or what was found about one later: if that was printed, or such findings are wanted."""
    printed: set[tuple[int, int]] = set()

    def choose(found: Row | Finding) -> bool:
        if wanted is None:
            return True
        if isinstance(found, Finding):
            alone = Row(found.frame, 0, "", "", findings=(found,))
            return (found.frame, found.part) in printed or wanted.decide(alone, ("rule", "severity")) is True
        if wanted(found):
            printed.add((found.n, found.part))
            return True
        return False

    return choose


def _print_json(capture: Capture, choose: Callable[[Row | Finding], bool], *, follow: bool) -> None:
    out = sys.stdout.buffer
    found = judged(capture.follow()) if follow else final_rows(capture.records, live=capture.live)
    for row in filter(choose, found):
        if isinstance(row, Finding):
            line = orjson.dumps({"kind": "finding", "n": row.frame} | finding_fields(row))
        else:
            line = to_json(row, capture.header)
        out.write(line + b"\n")
        if follow:
            out.flush()
    out.flush()


def _title(capture: Capture, *, live: bool) -> str:
    header = capture.header
    state = " · live" if live else ""
    command = " ".join(header.argv) or header.url or ""
    title = f"{printable(header.name, 60)} · {printable(header.transport, 5)} · {printable(command, 200)}"
    title += f"\nstarted {wall_time(header, 0)}{state}"
    if header.imported is None:
        return title
    parts = (("approximate", header.imported.approximate), ("missing", header.imported.missing))
    limits = "".join(f" · {what}: {printable(', '.join(names), 100)}" for what, names in parts if names)
    return f"{title}\nimported from {printable(header.imported.form, 60)}{limits}"


def _print_lines(
    found: Iterable[Row | Finding], choose: Callable[[Row | Finding], bool], *, colour: bool, flush: bool
) -> list[Exchange]:
    """Print the rows and what is found of them; returns the exchanges that have no answer."""
    pending: dict[int, Exchange] = {}

    def put(text: str, code: str | None) -> None:
        print(f"\x1b[{code}m{text}\x1b[0m" if colour and code else text, flush=flush)

    for row in found:
        if not isinstance(row, Finding) and row.exchange and row.kind != "request":
            pending.pop(row.exchange.ordinal, None)
        if not choose(row):
            continue
        if isinstance(row, Finding):
            put(finding_line(row), _SEVERITIES[row.severity])
            continue
        put(line(row), _COLOURS.get(row.status or "") or _COLOURS.get(row.kind))
        for finding in row.findings:
            put(finding_line(finding), _SEVERITIES[finding.severity])
        if row.kind == "request" and row.exchange and row.method != ENDLESS:
            pending[row.exchange.ordinal] = row.exchange
    return list(pending.values())


def line(row: Row) -> str:
    """A row as one line: number, seconds, direction, what it is, how it went."""
    start = f"#{row.n:<5} {row.t / 1e9:9.3f} {_ARROWS[row.sender]} "
    large = f"({size_text(row.size)}, not decoded)" if row.tail else ""
    if row.kind in ("stderr", "http", "event", "gap", "signal", "end"):
        return f"{start}{row.kind}: {printable(row.text or '', 160)} {large}".rstrip()
    if row.kind == "undecoded":
        return f"{start}{large}: {_excerpt(row.raw)} … {_excerpt(row.tail[-100:])}"
    if row.kind == "invalid":
        return f"{start}invalid: {printable(row.text or '', 60)}: {_excerpt(row.raw)}"
    subject = printable(row.method or "(no request seen)", 60) + (f" {printable(row.name, 60)}" if row.name else "")
    number = "" if row.id is None else f"id {printable(str(row.id), 40)}"
    outcome = large or (_outcome(row) if row.kind in ("result", "error") else row.revision or "")
    return f"{start}{subject:<36} {number:<6} {outcome}".rstrip()


def finding_line(finding: Finding) -> str:
    """A finding as one line, below the row that it is about or a later one."""
    where = f" ({printable(finding.pointer, 100)})" if finding.pointer else ""
    start = f"       {_MARKS[finding.severity]} #{finding.frame} {finding.blame}: {printable(finding.message, 300)}"
    return f"{start}{where}  [{finding.rule}]"


def _excerpt(raw: bytes) -> str:
    return printable(raw[:400].decode(errors="replace"), 100)


def _scalar(value: Any) -> str:
    """A value that should be text or a number; an object or array in its place may be nested without end."""
    return "…" if isinstance(value, dict | list) else str(value)


def _outcome(row: Row) -> str:
    text = row.status or row.kind
    if row.kind == "error" and isinstance(row.value["error"], dict):
        error = row.value["error"]
        text = f"error {printable(_scalar(error.get('code')), 12)} {printable(_scalar(error.get('message')), 80)}"
    if row.latency is not None:
        text += f"  {row.latency / 1e6:.1f} ms"
    status = row.http["status"] if row.http else None
    return f"{text}  {row.size} B" + (f"  HTTP {status}" if status not in (None, 200) else "")
