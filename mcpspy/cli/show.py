"""`mcpspy show`: print a capture as a timeline, for people or as JSON.

With `--gate`, a mark shows which frames match the gates of a file. The frames pass through a gate that never acts, so a
mark shows where a relay with this file would have acted. The settings `chance`, `after` and `times` are ignored.
"""

import argparse
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.capture.reader import Capture
from mcpspy.cli.gates import compiled
from mcpspy.cli.output import has_colours, line_width, say
from mcpspy.cli.targets import newest_capture, parsed_filter, refuse_to_follow
from mcpspy.conversation.context import Declarations
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Message
from mcpspy.conversation.outcomes import Outcome
from mcpspy.errors import UsageError
from mcpspy.filters import KEYS, Filter
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import PASS, Facts, Gate
from mcpspy.moments import moment, moment_text, use_utc
from mcpspy.problems.fold import Problems
from mcpspy.report.lines import WIDTH, act_line, colour_of, finding_line, line, outcome_line
from mcpspy.report.messages import message_lines
from mcpspy.report.problems import summary_line
from mcpspy.report.words import coloured
from mcpspy.rules import Finding
from mcpspy.text import printable
from mcpspy.timeline import (
    Ending,
    Row,
    Streamed,
    act_fields,
    final_rows,
    finding_fields,
    outcome_fields,
    row_of,
    streamed_rows,
    to_json,
)

if TYPE_CHECKING:
    from mcpspy.gate.gate import Verdict

_FRAMES = frozenset(("request", "notification", "result", "error", "invalid"))
"""The kinds of rows that are frames and pass through gates."""


class _Watching(DeclaredGate):
    """A gate that only notes whether it would act."""

    def __init__(self, gate: dict[str, Any]) -> None:
        super().__init__({"name": gate["name"], "when": gate["when"], "action": {"drop": True}})
        self.name: str = gate["name"]
        self.acted = False

    def decide(self, frame: bytes, facts: Facts, t: int) -> "Verdict":
        self.acted = super().decide(frame, facts, t) is not PASS
        return PASS


class GateMarks:
    """The names of the gates that match the frames of one capture. Rows must be passed in order."""

    def __init__(self, gates: Sequence[dict[str, Any]]) -> None:
        self._watching = [_Watching(gate) for gate in gates]
        self._gate = Gate(self._watching, say)
        self._facts: dict[tuple[str, Hashable], Facts] = {}
        self._n = 0
        self._names: list[str] = []

    def watch(self, found: Iterable[Streamed]) -> Iterator[Streamed]:
        """Yield everything unchanged, and pass the frames of the rows to the gates."""
        for it in found:
            if isinstance(it, Row) and it.n != self._n:  # the messages of a batch are one frame
                self._n, self._names = it.n, self._match(it)
            yield it

    def of(self, row: Row) -> list[str]:
        """Return the names of the gates that match the frame of the latest row."""
        return self._names if row.n == self._n else []

    def _match(self, row: Row) -> list[str]:
        if row.kind not in _FRAMES or row.sender == "mcpspy":
            return []
        key = row.sender, row.session
        if key not in self._facts:
            self._facts[key] = self._gate.facts(row.sender, "lines", row.session)
        for gate in self._watching:
            gate.acted = False  # a frame that is too long is not passed to any gate
        self._gate.decide(row.raw, self._facts[key], row.t)
        return [gate.name for gate in self._watching if gate.acted]


_GROUP = 16
"""Rows that are formatted together: with more, the first ones have left the processor's caches."""
_GROUP_BYTES = 1 << 16
"""Bytes of frames that are kept for that; decoded, they take many times as much memory."""


def run(options: argparse.Namespace) -> int:
    """Print the capture."""
    if options.json and options.long:
        raise UsageError("--json prints whole messages: it cannot be used with --long")
    if options.utc:
        use_utc()
    if options.capture is None:
        options.capture = newest_capture()
    capture = Capture(options.capture)
    if options.follow:
        refuse_to_follow(options.capture)
    wanted = None if options.filter is None else parsed_filter(options.filter, capture.header.started)
    choice = _Choice(wanted)
    marks = GateMarks(compiled(options.gate, capture.header.transport) or ()) if options.gate else None
    if options.json:
        _print_json(capture, choice.wants, marks, follow=options.follow)
        return 0
    live = capture.live
    print(title(capture, live=live), flush=True)
    colour = has_colours()
    found: Iterable[Streamed]
    ending, problems = Ending(), Problems(capture.header)
    if wanted and not options.follow:
        # the request of an exchange shows its outcome too
        found = final_rows(capture.records, ending, live=live)
    else:
        records = capture.follow() if options.follow else capture.records()
        found = streamed_rows(records, ending, problems, live=live and not options.follow)
    declarations = Declarations()
    found = marks.watch(found) if marks else found
    out = _Lines(colour=colour, long=options.long, flush=options.follow)
    _print_lines(found, choice.wants if wanted else None, marks, declarations, out)
    if declarations.sides:
        print(f"extensions: {printable(', '.join(declarations.told()), 2000)}")
    if not ending.ended and (options.follow or not live):
        print("the capture has no end: mcpspy was killed while it recorded")
    for exchange in ending.pending if live and not options.follow else ():
        if exchange.outcome == "pending" and choice.printed(exchange.request):
            print(f"#{exchange.request.n} {printable(exchange.method, 60)}: still pending")
    summary = "" if wanted else summary_line(problems.made(), problems.failed, [capture.path])
    if summary:
        print(coloured(summary, "error" if colour else None))
    return 0


class _Choice:
    """The rows and findings to print: all, or those that match a filter."""

    def __init__(self, wanted: Filter | None) -> None:
        self._wanted = wanted
        self._printed: set[tuple[int, int]] = set()  # the addresses of printed rows, if there is a filter

    def wants(self, found: Streamed) -> bool:
        """Return whether to print a row, or what is found later about an earlier row.

        A finding or an outcome is printed if its row was printed, or if it matches. What a gate did to a held frame is
        printed if its row was printed.
        """
        if self._wanted is None:
            return True
        if isinstance(found, GateAct):
            return (found.n, 0) in self._printed
        if isinstance(found, Outcome):
            return (found.n, found.part) in self._printed or self._matches(found, self._wanted)
        if isinstance(found, Finding):
            alone = Row(found.frame, 0, "", "", findings=(found,))
            printed = (found.frame, found.part) in self._printed
            return printed or self._wanted.decide(alone, ("rule", "severity")) is True
        if self._wanted(found):
            self._printed.add((found.n, found.part))
            return True
        return False

    def _matches(self, found: Outcome, wanted: Filter) -> bool:
        """Return whether the row of a request matches now, as far as its outcome tells."""
        if found.exchange is None:
            row = Row(found.n, 0, "", "", outcome=found.outcome, expected=found.expected)
            return wanted.decide(row, ("status",)) is True
        row = row_of(found.exchange.request)
        row.status = found.exchange.status
        return wanted.decide(row, KEYS.keys() - {"rule", "severity", "latency"}) is True

    def printed(self, message: Message) -> bool:
        """Return whether the row of a message was printed."""
        return self._wanted is None or (message.n, message.part) in self._printed


def _print_json(capture: Capture, choose: Callable[[Streamed], bool], marks: GateMarks | None, *, follow: bool) -> None:
    out = sys.stdout.buffer
    found: Iterable[Streamed]
    found = streamed_rows(capture.follow()) if follow else final_rows(capture.records, live=capture.live)
    for row in filter(choose, marks.watch(found) if marks else found):
        if isinstance(row, Finding):
            line = orjson.dumps({"kind": "finding", "n": row.frame} | finding_fields(row))
        elif isinstance(row, GateAct):
            line = orjson.dumps({"kind": "release", "n": row.n} | act_fields(row))
        elif isinstance(row, Outcome):
            line = orjson.dumps(outcome_fields(row))
        else:
            line = to_json(row, capture.header)
            if marks:
                line = line[:-1] + b',"gates":' + orjson.dumps(marks.of(row)) + b"}"
        out.write(line + b"\n")
        if follow:
            out.flush()
    out.flush()


def title(capture: Capture, *, live: bool) -> str:
    """Return the text above the timeline."""
    header = capture.header
    state = " · live" if live else ""
    command = " ".join(header.argv) or header.url or ""
    lines = f"{printable(header.name, 60)} · {printable(header.transport, 5)} · {printable(command, 200)}"
    client = f" · client {printable(' '.join(header.client), 100)}" if header.client else ""
    lines += f"\nstarted {moment_text(moment(header.started))}{state}{client}"
    if header.imported is None:
        return lines
    parts = (("approximate", header.imported.approximate), ("missing", header.imported.missing))
    limits = "".join(f" · {what}: {printable(', '.join(names), 100)}" for what, names in parts if names)
    return f"{lines}\nimported from {printable(header.imported.form, 60)}{limits}"


class _Lines:
    """Prints lines to stdout."""

    def __init__(self, *, colour: bool, long: bool, flush: bool) -> None:
        self.flush = flush
        self._colour = colour
        self._long = long
        self._width = line_width(WIDTH)
        self._wrapped = self._width if sys.stdout.isatty() else None

    def put(self, text: str, look: str | None) -> None:
        """Print a line in a colour."""
        sys.stdout.write(f"{coloured(text, look)}\n" if self._colour else f"{text}\n")
        if self.flush:
            sys.stdout.flush()

    def row(self, row: Row, names: str) -> None:
        """Print a row with the names of its gates, its findings and, with `--long`, its content."""
        look, extra = colour_of(row) if self._colour else None, f"  gate {names}" if names else ""
        told = line(row, self._width, extra=extra, colours=self._colour and look is None)
        self.put(told, look)
        for finding in row.findings:
            self.put(finding_line(finding), finding.severity)
        if self._long:
            for text in message_lines(row, told, self._wrapped, colours=self._colour):
                sys.stdout.write(f"{text}\n")
            if self.flush:
                sys.stdout.flush()


def _print_lines(
    found: Iterable[Streamed],
    choose: Callable[[Streamed], bool] | None,
    marks: GateMarks | None,
    declarations: Declarations,
    out: _Lines,
) -> None:
    """Print the rows and their findings, or those that `choose` selects, and note the extensions that rows declare."""
    size = 1 if out.flush or marks else _GROUP  # `marks` knows only the latest row
    for row in _read_ahead(found, size):
        if type(row) is Row and row.extensions:
            declarations.add(row.n, row.sender, row.extensions)
        if choose and not choose(row):
            continue
        if isinstance(row, Finding):
            out.put(finding_line(row), row.severity)
        elif isinstance(row, GateAct):
            out.put(act_line(row), "dim")
        elif isinstance(row, Outcome):
            if told := outcome_line(row):
                out.put(told, "error" if row.failed else "dim")
        else:
            out.row(row, printable(", ".join(marks.of(row)), 200) if marks else "")


def _read_ahead(found: Iterable[Streamed], size: int) -> Iterator[Streamed]:
    """Yield the same, read in groups of at most this size; an error is raised after what was read before it.

    Formatting some rows at once is faster than formatting each as soon as it is found, because the code that judges and
    the code that formats take turns in the processor's caches less often.
    """
    rows = iter(found)
    more, failure = True, None
    while more:
        group: list[Streamed] = []
        try:
            more = _fill(group, rows, size)
        except BaseException as error:  # also Ctrl-C: what was read before is printed first
            more, failure = False, error
        yield from group
    if failure:
        raise failure


def _fill(group: list[Streamed], rows: Iterator[Streamed], size: int) -> bool:
    """Add the next group to an empty list. Return whether it is full, so that more may follow."""
    weight = 0
    for row in rows:
        group.append(row)
        weight += row.size if type(row) is Row else 0
        acted = isinstance(row, GateAct) or (type(row) is Row and row.act)  # a later record may change the act
        if acted or len(group) >= size or weight > _GROUP_BYTES:
            return True
    return False
