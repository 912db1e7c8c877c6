"""The lines that a pane shows above a message. Some lines can be unfolded to show further lines.

They show kind and outcome, findings, the arguments beside the tool's schema, and the HTTP heads. Every captured text is
passed through `printable`.
"""

from collections.abc import Iterator

from mcpspy.capture.records import Frame, Header, Open
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.outcomes import EXPECTED
from mcpspy.json_values import member
from mcpspy.report.words import ARGUMENTS, MARKS, WAYS
from mcpspy.rules import RULES, Finding
from mcpspy.text import duration_text, plural, printable, size_text
from mcpspy.timeline import Row, wall_time
from mcpspy.tui.message.arguments import Argument, arguments
from mcpspy.tui.message.context import Around
from mcpspy.tui.message.document import Piece, SummaryLine
from mcpspy.wire.http_head import Head, title

_SEVERE = {"error": "warning", "warning": "number", "info": "label"}
_COUNTED = {"wrong": "wrong", "missing": "missing", "undeclared": "not declared"}
_COLOURS = {"fits": "string", "wrong": "warning", "missing": "warning", "undeclared": "number"}
_NAME, _VALUE = 24, 40  # maximum columns of argument names and characters of values
_LONG = 500  # maximum characters of a text whose length a peer determines


def entries(rows: list[Row], header: Header, around: Around, *, brief: bool = False) -> list[SummaryLine]:
    """Return the lines about the messages of one frame; the last is blank. `brief`: only one line for each message."""
    if brief:
        return [_in_one(row) for row in rows]
    found = [entry for row in rows for entry in _about(row, header)]
    if around.found:
        found.append(_plain(f"the request #{rows[0].request} has:"))
        found += [entry for finding in around.found for entry in _found(finding)]
    if around.stderr:
        when = "since the request" if rows[0].kind == "request" else "during the call"
        found.append(SummaryLine([("stderr ", "key"), (when, "label")], "stderr"))
        found += [
            SummaryLine([(f"#{n} ", "label"), (printable(text, _LONG), "plain")], inside=True)
            for n, text in around.stderr
        ]
    if rows and rows[0].act:
        found.append(_acted(rows[0].act))
    elif around.changed:
        found.append(_forwarded(around.changed))
    if rows:
        found += [*_arguments(rows[0], around), *_head(around.request, "request"), *_head(around.response, "response")]
        found.append(SummaryLine([]))
    return found


def _subject(row: Row) -> list[Piece]:
    subject = " ".join(part for part in (row.method, row.name) if part) or row.kind  # the message itself is below
    part = f" part {row.part + 1}" if row.part else ""
    return [(f"#{row.n}{part} ", "label"), (printable(subject, 300), "key")]


def _in_one(row: Row) -> SummaryLine:
    outcome = [row.kind, row.exact_status, duration_text(row.latency) if row.latency is not None else None]
    found = [("".join(MARKS[finding.severity] for finding in row.findings), "warning")] if row.findings else []
    said = f" · {' · '.join(filter(None, outcome))} "
    return SummaryLine([*_subject(row), (said, "warning" if row.bad else "label"), *found])


def _about(row: Row, header: Header) -> Iterator[SummaryLine]:
    yield SummaryLine(_subject(row))
    facts = [row.kind, WAYS[row.sender]]
    if row.id is not None:
        facts.append(f"id {printable(str(row.id), 100)}")
    if row.size:
        facts.append(size_text(row.size))
    yield _plain(" · ".join(facts))
    yield _plain(f"{row.t / 1e9:.6f} s · {wall_time(header, row.t)}")
    outcome = [row.revision, row.exact_status]
    other = row.response if row.kind == "request" else row.request
    if other:
        outcome.append(f"{'answered by' if row.kind == 'request' else 'answers'} #{other}")
    if row.latency is not None:
        outcome.append(duration_text(row.latency))
    text = " · ".join(filter(None, outcome))
    if text:
        yield _plain(text, "warning" if row.bad else "label")
    if row.expected:
        yield _plain(f"no failure: {EXPECTED[row.expected]}")
    if row.extensions:
        yield _plain(f"declares {printable(', '.join(row.extensions), _LONG)}")
    for fault in (row.refused, row.text if row.kind == "invalid" else None):
        if fault:
            yield _plain(printable(fault, 300), "warning")
    for finding in row.findings:
        yield from _found(finding)


def _acted(act: GateAct) -> SummaryLine:
    """Return a line about what a gate did to a frame, and what was forwarded instead."""
    edited = act.sent.decode(errors="replace") if act.how == "edited" and act.sent is not None else None
    sent = f" · forwarded as {printable(edited, _LONG)}" if edited is not None else ""
    return _plain(f"{printable(str(act), _LONG)}{sent}", "number")


def _forwarded(frame: Frame) -> SummaryLine:
    """Return a line about what was forwarded instead of a frame."""
    if frame.sent is not None:
        text = f"forwarded as {printable(frame.sent.decode(errors='replace'), _LONG)}"
    else:
        text = "dropped" if frame.dropped else "sent by mcpspy"
    return _plain(f"{text} · {printable(frame.by or '', _LONG)}", "number")


def _found(finding: Finding) -> Iterator[SummaryLine]:
    """Yield a finding: message, position and responsible side; below it the rule's explanation and a link."""
    where = f" at {printable(finding.pointer, 200)}" if finding.pointer else ""
    related = f", see {', '.join(f'#{n}' for n in finding.related[:5])}" if finding.related else ""
    text = f"{MARKS[finding.severity]} {printable(finding.message, _LONG)}{where}{related}"
    pieces = [(text, _SEVERE[finding.severity]), (f" · {finding.blame} · {finding.rule}", "label")]
    yield SummaryLine(pieces, f"finding {finding.rule}", folded=True)
    rule = RULES.get(finding.rule)
    if rule:
        yield SummaryLine([(f"{finding.severity}: {rule.explanation}", "plain")], inside=True)
        for title, text in rule.advice(finding.blame):
            yield SummaryLine([(f"{title}: ", "label"), (text, "plain")], inside=True)
    yield SummaryLine([(finding.spec, "string")], inside=True)


def _arguments(row: Row, around: Around) -> Iterator[SummaryLine]:
    """Yield the arguments of a call, each with its declaration in the tool's schema."""
    if row.method != "tools/call" or row.kind != "request":
        return
    if around.tool is None:
        if around.session and row.value is not None:
            yield _plain(f"no listing of {printable(row.name or 'the tool', _NAME)} to compare the arguments with")
        return
    given = member(row.value, "params", "arguments")
    found = arguments(given, around.tool.get("inputSchema"))
    if not found:
        return
    when = "listed later" if around.listed > row.n else "listed"
    pieces: list[Piece] = [(plural(len(found), "argument"), "key"), (f" as {when} in #{around.listed}", "label")]
    for mark, what in _COUNTED.items():
        number = sum(it.mark == mark for it in found)
        if number:
            pieces.append((f" · {number} {what}", _COLOURS[mark]))
    yield SummaryLine(pieces, "arguments")
    names = max((len(printable(it.name, _NAME)) for it in found), default=0)
    types = max((len(_type(it)) for it in found), default=0)
    for argument in found:
        yield SummaryLine(_argument(argument, names, types), inside=True)


def _type(argument: Argument) -> str:
    declared = printable(argument.type, _VALUE)
    return ", ".join(filter(None, (declared, "required" if argument.required else "")))


def _argument(argument: Argument, names: int, types: int) -> list[Piece]:
    colour = _COLOURS.get(argument.mark, "label")
    pieces = [
        (f"{ARGUMENTS[argument.mark]} ", colour),
        (f"{printable(argument.name, _NAME):{names}} ", "key"),
        (f"{_type(argument):{types}} ", "label"),
    ]
    if argument.value is not None:
        pieces.append((f"{printable(argument.value, _VALUE)} ", "plain"))
    if argument.fault:
        pieces.append((f"{printable(argument.fault, _LONG)} ", "warning"))
    elif argument.mark in ("missing", "undeclared"):
        pieces.append((f"{_COUNTED[argument.mark]} ", colour))
    if argument.limits:
        pieces.append((f"({printable(argument.limits, _LONG)}) ", "label"))
    if argument.description:
        pieces.append((printable(argument.description, _LONG), "label"))
    return pieces


def _head(opened: Open | None, which: str) -> Iterator[SummaryLine]:
    """Yield an HTTP head as received; after each changed line comes the forwarded one."""
    if opened is None or opened.head is None:
        return
    head, sent = opened.head, opened.sent or {}
    pieces: list[Piece] = [(f"HTTP {which} ", "label"), (printable(title(head), _LONG), "key")]
    if opened.by:
        pieces.append((f" · changed: {_by(opened.by)}", "number"))
    yield SummaryLine(pieces, f"head of the {which}", folded=True)
    if "target" in sent:
        yield _changed("target", sent["target"], opened.by)
    changed = {str(name).lower(): value for name, value in _fields(sent)}
    for name, value in _fields(head):
        yield SummaryLine(
            [(f"{printable(name, _LONG)}: ", "key"), (printable(str(value), _LONG), "string")], inside=True
        )
        if name.lower() in changed:
            yield _changed(name, changed.pop(name.lower()), opened.by)
    for name, value in changed.items():
        yield _changed(name, value, opened.by)


def _changed(name: str, value: object, by: str | None) -> SummaryLine:
    """Return a line about what was forwarded instead of a line of a head; None means it was dropped."""
    text = "dropped" if value is None else f"forwarded as {printable(str(value), _LONG)}"
    return SummaryLine([(f"  ↳ {printable(name, _LONG)} {text} · {_by(by or '')}", "number")], inside=True)


def _by(names: str) -> str:
    """Return who changed a head; a record has the names separated by commas."""
    return printable(", ".join(names.split(",")), _LONG)


def _fields(head: Head) -> Iterator[tuple[str, object]]:
    """Yield the fields of a head in a capture, which may contain anything."""
    found = head.get("headers")
    for field in found if isinstance(found, list) else ():
        if isinstance(field, list) and len(field) == 2:
            yield str(field[0]), field[1]


def _plain(text: str, kind: str = "label") -> SummaryLine:
    return SummaryLine([(text, kind)])
