"""What is known of a message beyond its own frame, and the lines that a pane shows of it above the message.

The context (its request or response, the HTTP heads, the called tool) is read from the capture when a message is
selected, and is not stored. In a merge, the context comes from the message's own session and has the line numbers of
that session; times are those of the merge.

The arguments of a tool call are compared with the schema of the tool. The schema comes from a peer, so it may have any
form. `mcpspy.spec.peer_schemas` validates the arguments: it neither fetches anything nor hangs. Here it may not even
start a worker process, because the user is waiting.

The lines show kind and outcome, findings, the arguments beside the tool's schema, and the HTTP heads. Some can be
unfolded to show further lines. Every captured text is passed through `printable`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.records import Close, Frame, Header, Open, Record
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.outcomes import EXPECTED
from mcpspy.json_values import excerpt, member, steps_of
from mcpspy.moments import moment, moment_text
from mcpspy.report.words import ARGUMENTS, MARKS, WAYS
from mcpspy.rules import RULES, Finding
from mcpspy.spec.peer_schemas import Budget, Foreign, Validity
from mcpspy.text import duration_text, fitted_name, plural, printable, size_text
from mcpspy.timeline import Row
from mcpspy.tui.message.document import Piece, SummaryLine
from mcpspy.tui.model.merged import Merged
from mcpspy.wire.http_head import Head, title

_PAGES = 20  # maximum pages of listings searched for a tool
_STDERR_LINES = 20  # maximum lines of stderr shown with a message
_WITHOUT_END = ("server-exit", "unanswered")  # outcomes of requests that were open until the session ended


@dataclass(frozen=True, slots=True)
class Around:
    """The context of the messages in one row."""

    request: Open | None = None
    """Over HTTP: the request that contained the message, or whose response contained it."""
    response: Open | None = None
    """Over HTTP: the response to that request, if it is known."""
    tool: dict[str, Any] | None = None
    """For a call: the tool's latest definition listed before the call, else a definition listed after it."""
    listed: int = 0
    """The line number of that listing."""
    found: tuple[Finding, ...] = ()
    """For a response: the findings of its request."""
    stderr: tuple[tuple[int, str], ...] = ()
    """The lines that the server wrote to stderr between a request and its response, with their line numbers."""
    changed: Frame | None = None
    """The start of the frame, if something else was forwarded."""
    session: OpenCapture | None = field(default=None, repr=False)
    """The session of the row."""
    model: OpenCapture | Merged | None = field(default=None, repr=False)
    """The session or the merge in which the row was selected."""
    place: int = 0
    """The place of the row in the model."""

    def partner(self) -> tuple[list[Row], "Around"] | None:
        """Return the response to a request, or the request of a response, with its own context."""
        model = self.model
        other = model.partner(self.place) if model else None
        return (model.messages(other), around(model, other)) if model and other is not None else None

    def size(self, n: int) -> int | None:
        """Return the size in bytes of the frame on line `n` of the session; None if there is no frame."""
        return self.session.index.frame_size(n) if self.session else None

    def pieces(self, n: int) -> Iterator[bytes]:
        """Return all bytes of the frame on line `n` of the session, exactly as received, in pieces."""
        return self.session.index.pieces(n) if self.session else iter(())


def around(model: OpenCapture | Merged, place: int) -> Around:
    """Return the context of the row at a place."""
    session, there = model.of(place) if isinstance(model, Merged) else (model, place)
    row, partner = session.line(there), session.partner(there)
    record = session.index.record(row.n, 1)
    opened = [_opened(session, record)]
    if partner is not None:
        opened.append(_opened(session, session.index.record(session.line(partner).n, 1)))
    listed, tool = (
        _tool(session, row.n, row.name or "") if row.method == "tools/call" and row.kind == "request" else (0, None)
    )
    since = row.request if row.kind in ("result", "error") else row.n if row.outcome in _WITHOUT_END else None
    found = session.findings.of(row.request) if row.request and row.request == since else ()
    stderr = _stderr(session, since, None if since == row.n else row.t) if since else ()
    changed = record if isinstance(record, Frame) and record.by else None
    return Around(*_heads(session, opened), tool, listed, found, stderr, changed, session, model, place)


def _stderr(session: OpenCapture, since: int, until: int | None) -> tuple[tuple[int, str], ...]:
    """Return the last lines of stderr after the row on line `since`, up to the time `until` or the end."""

    def time(n: int) -> int:
        return session.time_of(n) or 0

    first = bisect_left(session.stderr, time(since), key=time)
    last = len(session.stderr) if until is None else bisect_right(session.stderr, until, key=time)
    places = ((n, session.index.row_of(n)) for n in session.stderr[max(first, last - _STDERR_LINES) : last])
    return tuple((n, session.line(place).text or "") for n, place in places if place is not None)


def _opened(session: OpenCapture, record: Record) -> Open | None:
    """Return the `open` record of a record's channel."""
    if isinstance(record, Open):
        return record
    return session.index.channel(record.ch) if isinstance(record, Frame | Close) else None


def _heads(session: OpenCapture, channels: list[Open | None]) -> tuple[Open | None, Open | None]:
    """Return the request and the response among some channels, or that they answer."""
    request = response = None
    for opened in channels:
        if opened and opened.role == "response":
            response = response or opened
            asked = session.index.channel(opened.answers) if opened.answers is not None else None
            request = request or asked
        elif opened and opened.role == "request":
            request = request or opened
    return request, response


def _tool(session: OpenCapture, n: int, name: str) -> tuple[int, dict[str, Any] | None]:
    """Return the line of the listing that applies to a call on line `n`, and the tool's definition; 0 if none.

    This is the listing that a finding refers to; else the newest one before the call that has the tool; else the newest
    one.
    """
    named = [it.related[-1] for it in session.findings.of(n) if it.rule == "tools/arguments" and it.related]
    before = (line for line in reversed(session.announced.tool_pages) if line < n)
    use = session.announced.tools.get(name)
    for line in [*named[:1], *islice(before, _PAGES), *([use.listed] if use else [])]:
        tool = _definition(session, line, name)
        if tool is not None:
            return line, tool
    return 0, None


def _definition(session: OpenCapture, n: int, name: str) -> dict[str, Any] | None:
    """Return a tool's definition in a listing; None if it is missing, or the listing is too large to be decoded."""
    place = session.index.row_of(n)
    for row in session.messages(place) if place is not None else ():
        tools = member(row.value, "result", "tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and tool.get("name") == name:
                return tool
    return None


Mark = Literal["fits", "wrong", "missing", "undeclared", "absent", "unknown"]

_MOST_ARGUMENTS = 200  # maximum arguments shown
_CHOICES = 6  # maximum values of an enumeration, and alternatives, shown
_TYPE_NAME = 40  # maximum characters of a type's name
_TYPE_LEVELS = 4  # maximum nesting of arrays and alternatives
_RANGES = (("", "minimum", "maximum"), (" characters", "minLength", "maxLength"), (" items", "minItems", "maxItems"))


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument that is given, declared, or both."""

    name: str
    mark: Mark
    """absent: declared, neither required nor given; unknown: the schema cannot be evaluated."""
    type: str = ""
    """As declared: `string`, `integer | null`, `"a" | "b"`, `string[]`."""
    required: bool = False
    value: str | None = None
    """The given value as JSON, shortened; None if it is not given."""
    fault: str = ""
    """Why the value is invalid; empty if it is not."""
    description: str = ""
    limits: str = ""
    """Other declared constraints: `1 to 14`, `date`, `default 3`."""


def arguments(given: Any, schema: Any) -> list[Argument]:
    """Return the declared arguments in their order, then the others; `given` is `params.arguments` of the call."""
    given = given if isinstance(given, dict) else {}
    declared = member(schema, "properties")
    declared = declared if isinstance(declared, dict) else {}
    required = member(schema, "required")
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    names = dict.fromkeys([*declared, *required, *given])
    faults = _Faults(given, schema)
    return [_argument(name, given, declared, name in required, faults) for name in islice(names, _MOST_ARGUMENTS)]


def _argument(
    name: str, given: dict[str, Any], declared: dict[str, Any], required: bool, faults: "_Faults"
) -> Argument:
    about = declared.get(name)
    value = excerpt(given[name]) if name in given else None
    description = member(about, "description")
    fault = faults.of(name) if name in given else ""
    if name not in given:
        mark: Mark = "missing" if required else "absent"
    elif fault:
        mark = "wrong"
    elif name not in declared:
        mark = "undeclared"
    else:
        mark = "fits" if faults.known else "unknown"
    text = description if isinstance(description, str) else ""
    return Argument(name, mark, type_text(about), required, value, fault, text, limits_text(about))


class _Faults:
    """The validation error of each argument."""

    def __init__(self, given: dict[str, Any], schema: Any) -> None:
        alone = schema | {"required": []} if isinstance(schema, dict) else {}
        whole = _ask(schema, given) if isinstance(schema, dict) else None
        self.known = whole is not None and whole.outcome in (Validity.VALID, Validity.INVALID)
        self._given, self._schema = given, alone
        self._wrong = whole is not None and whole.outcome is Validity.INVALID

    def of(self, name: str) -> str:
        """Return why an argument is invalid; empty if it is valid, or if that is unknown."""
        if not self._wrong:
            return ""
        found = _ask(self._schema, {name: self._given[name]})
        here = steps_of(found.pointer)[:1] == (name,)
        refused = not found.pointer and self._schema.get("additionalProperties") is False
        return found.message or "refused" if found.outcome is Validity.INVALID and (here or refused) else ""


def _ask(schema: dict[str, Any], instance: Any) -> Any:
    return Foreign(schema, Budget(0)).judge(instance)


def type_text(schema: Any, levels: int = _TYPE_LEVELS) -> str:
    """Return the type that a schema declares, in a few words; empty if it declares none."""
    if not isinstance(schema, dict):
        return "never" if schema is False else ""
    choices, kind, reference = schema.get("enum"), schema.get("type"), schema.get("$ref")
    if isinstance(choices, list):
        return _either([excerpt(choice, 20) for choice in choices[:_CHOICES]], len(choices))
    if "const" in schema:
        return excerpt(schema["const"], 20)
    if kind == "array" and levels:
        return f"{type_text(schema.get('items'), levels - 1) or 'any'}[]"
    if isinstance(kind, list):
        return _either([str(name)[:_TYPE_NAME] for name in kind[:_CHOICES]], len(kind))
    if isinstance(kind, str):
        return kind[:_TYPE_NAME]
    if isinstance(reference, str):
        return reference.rpartition("/")[2][:_TYPE_NAME]
    for word in ("anyOf", "oneOf"):
        several = schema.get(word)
        if isinstance(several, list) and levels:
            return _either([type_text(one, levels - 1) or "any" for one in several[:_CHOICES]], len(several))
    return ""


def limits_text(schema: Any) -> str:
    """Return the constraints of a schema other than the type, in a few words."""
    if not isinstance(schema, dict):
        return ""
    found = [str(schema["format"])[:_TYPE_NAME]] if isinstance(schema.get("format"), str) else []
    for unit, least, most in _RANGES:
        low, high = (excerpt(schema[name], 20) if name in schema else "" for name in (least, most))
        if low or high:
            bounds = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
            found.append(f"{bounds}{unit}")
    if "default" in schema:
        found.append(f"default {excerpt(schema['default'], 20)}")
    return ", ".join(found)


def _either(texts: list[str], number: int) -> str:
    return " | ".join([*texts, *(["…"] if number > len(texts) else [])])


_SEVERITY_COLOURS = {"error": "warning", "warning": "number", "info": "label"}
_MARK_WORDS = {"wrong": "wrong", "missing": "missing", "undeclared": "not declared"}
_MARK_COLOURS = {"fits": "string", "wrong": "warning", "missing": "warning", "undeclared": "number"}
_ARGUMENT_NAME, _ARGUMENT_VALUE = 24, 40  # maximum columns of argument names and characters of values
_LONGEST_TEXT = 500  # maximum characters of a text whose length a peer determines


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
            SummaryLine([(f"#{n} ", "label"), (printable(text, _LONGEST_TEXT), "plain")], inside=True)
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
    yield _plain(f"{row.t / 1e9:.6f} s · {moment_text(moment(header.started, row.t))}")
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
        yield _plain(f"declares {printable(', '.join(row.extensions), _LONGEST_TEXT)}")
    for fault in (row.refused, row.text if row.kind == "invalid" else None):
        if fault:
            yield _plain(printable(fault, 300), "warning")
    for finding in row.findings:
        yield from _found(finding)


def _acted(act: GateAct) -> SummaryLine:
    """Return a line about what a gate did to a frame, and what was forwarded instead."""
    edited = act.sent.decode(errors="replace") if act.how == "edited" and act.sent is not None else None
    sent = f" · forwarded as {printable(edited, _LONGEST_TEXT)}" if edited is not None else ""
    return _plain(f"{printable(str(act), _LONGEST_TEXT)}{sent}", "number")


def _forwarded(frame: Frame) -> SummaryLine:
    """Return a line about what was forwarded instead of a frame."""
    if frame.sent is not None:
        text = f"forwarded as {printable(frame.sent.decode(errors='replace'), _LONGEST_TEXT)}"
    else:
        text = "dropped" if frame.dropped else "sent by mcpspy"
    return _plain(f"{text} · {printable(frame.by or '', _LONGEST_TEXT)}", "number")


def _found(finding: Finding) -> Iterator[SummaryLine]:
    """Yield a finding: message, position and responsible side; below it the rule's explanation and a link."""
    where = f" at {printable(finding.pointer, 200)}" if finding.pointer else ""
    related = f", see {', '.join(f'#{n}' for n in finding.related[:5])}" if finding.related else ""
    text = f"{MARKS[finding.severity]} {printable(finding.message, _LONGEST_TEXT)}{where}{related}"
    pieces = [(text, _SEVERITY_COLOURS[finding.severity]), (f" · {finding.blame} · {finding.rule}", "label")]
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
            name = fitted_name(row.name or "the tool", _ARGUMENT_NAME)
            yield _plain(f"no listing of {name} to compare the arguments with")
        return
    given = member(row.value, "params", "arguments")
    found = arguments(given, around.tool.get("inputSchema"))
    if not found:
        return
    when = "listed later" if around.listed > row.n else "listed"
    pieces: list[Piece] = [(plural(len(found), "argument"), "key"), (f" as {when} in #{around.listed}", "label")]
    for mark, what in _MARK_WORDS.items():
        number = sum(it.mark == mark for it in found)
        if number:
            pieces.append((f" · {number} {what}", _MARK_COLOURS[mark]))
    yield SummaryLine(pieces, "arguments")
    names = max((len(printable(it.name, _ARGUMENT_NAME)) for it in found), default=0)
    types = max((len(_type(it)) for it in found), default=0)
    for argument in found:
        yield SummaryLine(_argument_line(argument, names, types), inside=True)


def _type(argument: Argument) -> str:
    declared = printable(argument.type, _ARGUMENT_VALUE)
    return ", ".join(filter(None, (declared, "required" if argument.required else "")))


def _argument_line(argument: Argument, names: int, types: int) -> list[Piece]:
    colour = _MARK_COLOURS.get(argument.mark, "label")
    pieces = [
        (f"{ARGUMENTS[argument.mark]} ", colour),
        (f"{printable(argument.name, _ARGUMENT_NAME):{names}} ", "key"),
        (f"{_type(argument):{types}} ", "label"),
    ]
    if argument.value is not None:
        pieces.append((f"{printable(argument.value, _ARGUMENT_VALUE)} ", "plain"))
    if argument.fault:
        pieces.append((f"{printable(argument.fault, _LONGEST_TEXT)} ", "warning"))
    elif argument.mark in ("missing", "undeclared"):
        pieces.append((f"{_MARK_WORDS[argument.mark]} ", colour))
    if argument.limits:
        pieces.append((f"({printable(argument.limits, _LONGEST_TEXT)}) ", "label"))
    if argument.description:
        pieces.append((printable(argument.description, _LONGEST_TEXT), "label"))
    return pieces


def _head(opened: Open | None, which: str) -> Iterator[SummaryLine]:
    """Yield an HTTP head as received; after each changed line comes the forwarded one."""
    if opened is None or opened.head is None:
        return
    head, sent = opened.head, opened.sent or {}
    pieces: list[Piece] = [(f"HTTP {which} ", "label"), (printable(title(head), _LONGEST_TEXT), "key")]
    if opened.by:
        pieces.append((f" · changed: {_by(opened.by)}", "number"))
    yield SummaryLine(pieces, f"head of the {which}", folded=True)
    if "target" in sent:
        yield _changed("target", sent["target"], opened.by)
    changed = {str(name).lower(): value for name, value in _fields(sent)}
    for name, value in _fields(head):
        yield SummaryLine(
            [(f"{printable(name, _LONGEST_TEXT)}: ", "key"), (printable(str(value), _LONGEST_TEXT), "string")],
            inside=True,
        )
        if name.lower() in changed:
            yield _changed(name, changed.pop(name.lower()), opened.by)
    for name, value in changed.items():
        yield _changed(name, value, opened.by)


def _changed(name: str, value: object, by: str | None) -> SummaryLine:
    """Return a line about what was forwarded instead of a line of a head; None means it was dropped."""
    text = "dropped" if value is None else f"forwarded as {printable(str(value), _LONGEST_TEXT)}"
    return SummaryLine([(f"  ↳ {printable(name, _LONGEST_TEXT)} {text} · {_by(by or '')}", "number")], inside=True)


def _by(names: str) -> str:
    """Return who changed a head; a record has the names separated by commas."""
    return printable(", ".join(names.split(",")), _LONGEST_TEXT)


def _fields(head: Head) -> Iterator[tuple[str, object]]:
    """Yield the fields of a head in a capture, which may contain anything."""
    found = head.get("headers")
    for pair in found if isinstance(found, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), pair[1]


def _plain(text: str, kind: str = "label") -> SummaryLine:
    return SummaryLine([(text, kind)])
