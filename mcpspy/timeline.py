"""The fold from records to rows, which people and programs read.

A row is one message, one line of stderr, the end of a stream, a gap, a signal, or the end of the capture.
`streamed_rows` yields the row of a request before the response is known, and findings when they are made. `final_rows`
reads the records twice, so that each row is final. From the first pass it keeps only a few bytes per request
(`mcpspy.conversation.exchanges`) and the findings.
"""

import json
import signal as signals
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from orjson import Fragment

from mcpspy.capture.records import End, Frame, Gap, Gates, Header, Open, Record, Signal
from mcpspy.conversation.context import declares
from mcpspy.conversation.conversation import Conversation, events_of
from mcpspy.conversation.exchanges import Exchanges
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Event, Exchange, HttpUnit, Message, StreamEnd, kind_of, sender_of
from mcpspy.conversation.outcomes import Outcome, decoded, has_failed
from mcpspy.conversation.preview import preview, preview_of_large
from mcpspy.rules import Finding, LocatedFinding, Severity, worst
from mcpspy.rules.judge import Fold, JudgedEvent, JudgedEvents, judged_events
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Id, Invalid, Request

SPOKEN = frozenset(("request", "notification", "result", "error"))
"""The kinds of rows that have a method."""

_EXACT = ("refused", "broken", "timed-out", "server-exit", "abandoned", "in-doubt")
_REVISION_NAMES = {None: None} | {revision: revision.value for revision in Revision}  # `value` of an enum is slow


@dataclass(slots=True)
class Row:
    """One line of the timeline. Times are nanoseconds since the capture started."""

    n: int
    t: int
    kind: str
    """A value that `kind_of` returns."""
    sender: str
    channel: int | None = None
    part: int = 0
    id: Id | None = None
    method: str | None = None
    """For a response, the method of its request."""
    name: str | None = None
    """The tool, prompt or resource concerned."""
    revision: str | None = None
    status: str | None = None
    """For requests and responses: ok, error, tool-error, not-decoded, pending, held, dropped, unanswered, cancelled."""
    outcome: str | None = None
    """What came of the request: one of `conversation.outcomes.OUTCOMES`. Of requests, responses, HTTP requests."""
    expected: str | None = None
    """Why a failing outcome is normal: a key of `conversation.outcomes.EXPECTED`."""
    request: int | None = None
    response: int | None = None
    latency: int | None = None
    size: int = 0
    """Bytes of the frame."""
    raw: bytes = b""
    """The frame; only its first bytes if it is too large to be decoded."""
    tail: bytes = b""
    """The last bytes of a frame that is too large to be decoded."""
    text: str | None = None
    """The text to show if there is no JSON message."""
    value: Any = None
    """The decoded message; None if there is none."""
    refused: str | None = None
    """Why a strict parser refuses the frame."""
    exchange: Exchange | None = field(default=None, repr=False)
    session: str | None = None
    """The session id, if the transport has one."""
    extensions: tuple[str, ...] = ()
    """The extensions and experiments that the message declares for its sender."""
    http: dict[str, Any] | None = None
    """Over HTTP: method, target, and the status of the response."""
    act: GateAct | None = None
    """What a gate did to the frame."""
    stream: StreamEnd | None = field(default=None, repr=False)
    """For the end of a stream: what is known of the stream."""
    findings: tuple[Finding, ...] = ()
    """The findings of the row; for a streamed row, only those that were made before it was yielded."""

    @property
    def failed(self) -> bool:
        """Whether the request of the row has failed."""
        return has_failed(self.outcome, self.expected)

    @property
    def counts_as_failed(self) -> bool:
        """Whether it is the row of a failed request and not of a response, so that each failed request counts once."""
        return self.failed and (self.kind == "request" or self.exchange is None)

    @property
    def bad(self) -> bool:
        """Whether it looks like an error: its request has failed, or it is an error that answers no request."""
        return self.failed or (self.outcome is None and self.kind == "error")

    @property
    def exact_status(self) -> str:
        """Its outcome if it has no status, or a less exact one; else its status; empty if it has neither."""
        return (self.outcome if self.outcome in _EXACT or not self.status else self.status) or ""

    @property
    def severity(self) -> Severity | None:
        """The worst severity of its findings; None if it has none."""
        return worst(self.findings)

    @property
    def preview(self) -> str:
        """A short text about the content of the message, shown beside the method and the name; it may be empty."""
        if self.value is None and self.raw and self.kind in SPOKEN:
            return preview_of_large(self.raw)
        return preview(self.kind, self.method, self.value)


Streamed = Row | Finding | GateAct | Outcome
"""The output of `streamed_rows`: rows, findings about earlier rows, what a gate did to held frames, and outcomes."""


class Ending(Fold):
    """The fold of how a capture ends: whether it has an end record, and which requests got no response."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the end record was read, or a row shows why it was not. A relay that is killed writes none."""
        self.pending: Sequence[Exchange] = ()
        """The exchanges without a response, oldest first."""

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        self.ended = self.ended or type(event) is End or (type(event) is Gap and event.is_rest)

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:  # noqa: ARG002 (the end of a fold)
        """Finish."""
        self.pending = pending


def streamed_rows(records: Iterable[Record], *folds: Fold, live: bool = False) -> Iterator[Streamed]:
    """Yield the rows with their findings, and later findings about earlier rows when they are made.

    The outcome for a frame that a gate held is yielded when the frame is released. With `live`, the records are those
    of a live capture so far, so what is missing may still come.
    """
    events = JudgedEvents(*folds)
    for record in records:
        yield from _with_findings(events.feed(record))
    yield from _with_findings(events.end(live=live))


def _with_findings(events: Iterable[JudgedEvent]) -> Iterator[Streamed]:
    """Yield the rows of one record with their findings, then the findings about earlier rows, then releases."""
    row: Row | None = None
    later: list[Streamed] = []
    for event in events:
        if isinstance(event, LocatedFinding):
            finding = event.finding
            if row and (finding.frame, finding.part) == (row.n, row.part):
                row.findings += (finding,)
            else:
                later.append(finding)
        elif isinstance(event, GateAct | Outcome):
            later.append(event)
        else:
            if row:
                yield row
            row = row_of(event)
    if row:
        yield row
    yield from later


def rows_alone(record: Record, channel: Open | None) -> Iterator[Row]:
    """Yield the rows of a single record, without the rest of the capture: responses are not paired with requests."""
    conversation = Conversation()
    if channel:
        list(conversation.feed(channel))
    yield from map(row_of, conversation.feed(record))


class _Outcomes(Fold):
    """The fold of what makes a row final: few bytes per request, and the findings."""

    def __init__(self) -> None:
        self._exchanges, self._times = Exchanges(), array("q")  # times of the responses, by the ordinal of the request
        self._found: dict[tuple[int, int], tuple[Finding, ...]] = {}
        self._acts: dict[int, GateAct] = {}

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        if type(event) is LocatedFinding:
            address = event.finding.frame, event.finding.part
            self._found[address] = (*self._found.get(address, ()), event.finding)
            return
        self._exchanges.outcomes.add(event)
        if type(event) is Message:
            self._exchanges.add(event)
            if event.exchange and event.exchange.response is event:
                self._times[event.exchange.ordinal] = event.t
            elif event.exchange:
                self._times.append(0)
            if event.act:
                self._acts[event.n] = event.act
        elif type(event) is HttpUnit and event.act:
            self._acts[event.n] = event.act

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:
        """Finish."""
        self._exchanges.end(pending, live=live)

    def complete(self, row: Row) -> Row:
        """Add to a row what was found in the first pass."""
        exchange, exchanges = row.exchange, self._exchanges
        if exchange and exchange.ordinal < len(exchanges.requests):
            ordinal = exchange.ordinal
            if row.kind == "request":
                row.status = exchanges.status(ordinal)
                row.response = exchanges.responses[ordinal] or None
                row.latency = self._times[ordinal] - row.t - exchanges.held(ordinal) if row.response else None
            row.outcome, row.expected = decoded(exchanges.outcomes.code(ordinal))
        elif row.http and not row.part:
            row.outcome, row.expected = decoded(self._exchanges.outcomes.line_code(row.n))
        row.findings = self._found.get((row.n, row.part), ())
        row.act = self._acts.get(row.n, row.act)
        return row


def final_rows(records: Callable[[], Iterable[Record]], *folds: Fold, live: bool) -> Iterator[Row]:
    """Yield the rows of a capture, each final; `records` is called twice. Folds get the events of the first pass.

    In a `live` capture a request may still be pending.
    """
    outcomes = _Outcomes()
    deque(judged_events(records(), outcomes, *folds, live=live), 0)
    yield from map(outcomes.complete, map(row_of, events_of(records())))


def row_of(event: Event) -> Row:
    """Return the row of one event, as far as it is known when the event is made."""
    if isinstance(event, Message):
        return _message_row(event)
    row = Row(event.n, event.t, kind_of(event), sender_of(event))
    if isinstance(event, HttpUnit):
        row.channel, row.text, row.http, row.session = event.ch, event.text, event.http.summary, event.session.name
        row.act = event.act
        if event.frame:
            _add_frame(row, event.frame)
    elif isinstance(event, StreamEnd):
        row.channel, row.text, row.session, row.stream = event.ch, event.text, event.session.name, event
        row.http = event.http.summary if event.http else None
    elif not isinstance(event, Frame):
        row.text = _record_text(event)
    else:
        row.channel, row.text = event.ch, event.raw.decode(errors="replace")
        _add_frame(row, event)
    return row


def _add_frame(row: Row, frame: Frame) -> None:
    row.raw, row.size = frame.raw, frame.size
    if frame.omitted:
        row.tail = frame.omitted.tail


def _message_row(message: Message) -> Row:
    body, exchange, frame = message.body, message.exchange, message.frame
    source = exchange or message
    status: str | None = None
    outcome = expected = request = response = latency = None
    if exchange:
        outcome, expected = exchange.outcome, exchange.expected
        request = exchange.request.n
        if type(body) is Request:
            status = "pending"
        else:
            status, response, latency = exchange.status, message.n, exchange.latency
    return Row(  # by position: by name takes twice as long
        message.n,
        message.t,
        kind_of(message),
        message.sender,
        message.ch,
        message.part,
        message.id,
        source.method,
        source.name,
        _REVISION_NAMES[message.revision],
        status,
        outcome,
        expected,
        request,
        response,
        latency,
        frame.size,
        frame.raw,
        frame.omitted.tail if frame.omitted else b"",
        body.reason if type(body) is Invalid else None,
        None if frame.omitted else body.value,
        body.refused,
        exchange,
        message.session.name,
        declares(message),
        message.http.summary if message.http else None,
        message.act,
    )


def _record_text(record: Gap | Signal | Gates | End) -> str:
    """Return the text of a row for a record that is not a frame."""
    if isinstance(record, Gap):
        return f"{record.lost} lost: {record.why}"
    if isinstance(record, Signal):
        return _signal_text(record)
    return _gates_text(record) if isinstance(record, Gates) else _end_text(record)


def _signal_text(signal: Signal) -> str:
    try:
        name = signals.Signals(signal.signal).name
    except ValueError:
        name = str(signal.signal)
    if signal.to == "group":
        return f"{name} to the process group" + (", forwarded to the server" if signal.forwarded else "")
    return f"{name} to mcpspy, {'' if signal.forwarded else 'not '}forwarded to the server"


def _gates_text(gates: Gates) -> str:
    names = ", ".join(str(gate.get("name", "?")) for gate in gates.gates) or "none in force"
    return f"{names} (set by {'the gate file' if gates.by == 'file' else 'a viewer'})"


def _end_text(end: End) -> str:
    if end.signal is not None:
        return f"the server was killed by signal {end.signal}"
    if end.code is None:
        return end.why or "the recording ended"
    return end.why or f"the server exited with code {end.code}"


def row_fields(row: Row, header: Header) -> dict[str, Any]:
    """Return the members of a row's JSON object except message and text, for orjson to encode (`docs/json.md`)."""
    return {
        "n": row.n,
        "part": row.part,
        "t": row.t / 1e9,
        "time": wall_time(header, row.t),
        "from": row.sender,
        "channel": row.channel,
        "transport": header.transport,
        "kind": row.kind,
        "id": None if row.id is None else _id_json(row.id),
        "method": text_json(row.method),
        "name": text_json(row.name),
        "revision": row.revision,
        "session": text_json(row.session),
        "status": row.status,
        "outcome": row.outcome,
        "failed": row.failed,
        "expected": row.expected,
        "request": row.request,
        "response": row.response,
        "latency": None if row.latency is None else row.latency / 1e9,
        "size": row.size,
        **(act_fields(row.act) if row.act else {}),
        **({"extensions": [text_json(name) for name in row.extensions]} if row.extensions else {}),
        "http": row.http and {name: text_json(text) for name, text in row.http.items()},
        **({"stream": _stream_fields(row.stream)} if row.stream else {}),
        "findings": [finding_fields(finding) for finding in row.findings],
    }


def to_json(row: Row, header: Header) -> bytes:
    """Return a row as the compact JSON object that `show --json` prints; `docs/json.md` describes it."""
    fields = row_fields(row, header)
    message = message_json(row)
    if message is None:
        fields["text"] = row.raw.decode(errors="replace") if row.raw else row.text
        if row.tail:
            fields["tail"] = row.tail.decode(errors="replace")
    else:
        fields["message"] = Fragment(message)
    return orjson.dumps(fields)


def _stream_fields(stream: StreamEnd) -> dict[str, Any]:
    """Return what is known of a stream that has ended."""
    opened = stream.opened
    name = opened.role if stream.http is None else "WebSocket" if opened.role == "ws" else "answer"
    times = {"lasted": stream.lasted / 1e9, "idle": stream.idle / 1e9}
    return {"name": name, "how": text_json(stream.how), **times, "unanswered": list(stream.waiting)}


def act_fields(act: GateAct) -> dict[str, Any]:
    """Return what a gate did: its name, what was forwarded, and for how many seconds the frame was held."""
    forwarded = None if act.waits else act.how
    held = {"held": act.held / 1e9} if act.held is not None else {"held": None} if act.waits else {}
    return {"gate": text_json(act.gate), "forwarded": forwarded} | held


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome that no row shows, as an object of its own."""
    return {
        "kind": "outcome",
        "n": outcome.n,
        "part": outcome.part,
        "outcome": outcome.outcome,
        "failed": outcome.failed,
        "expected": outcome.expected,
    }


def finding_fields(finding: Finding) -> dict[str, Any]:
    """Return a finding as programs read it (`docs/json.md`)."""
    fields: dict[str, Any] = asdict(finding)
    for name in ("concerns", "count", "also"):  # reports that count findings write this themselves
        del fields[name]
    return fields | {"message": text_json(finding.message), "pointer": text_json(finding.pointer)}


def wall_time(header: Header, t: int) -> str:
    """Return the time `t` nanoseconds after the capture's start, in UTC, with microseconds."""
    moment = datetime.fromisoformat(header.started).astimezone(UTC) + timedelta(microseconds=t // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def message_json(row: Row) -> bytes | None:
    """Return the row's message as JSON on one line, verbatim if possible; None if it is not JSON."""
    if row.value is None:
        return None
    if row.refused is None and row.raw.lstrip()[:1] != b"[":
        return row.raw.replace(b"\n", b" ").replace(b"\r", b" ")  # only between tokens: strings escape them
    try:
        return json.dumps(row.value, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None


def _id_json(number: Id) -> Any:
    """Return an id with its original digits; an id that is not JSON (NaN) becomes a string."""
    if number.kind != "string":
        try:
            orjson.loads(number.token)
            return Fragment(number.token)
        except orjson.JSONDecodeError:
            pass
    return text_json(number.token)


def text_json(text: Any) -> Any:
    """Return a value that orjson can encode: text that is not ASCII as JSON, because it may have lone surrogates."""
    if not isinstance(text, str) or text.isascii():
        return text
    return Fragment(json.dumps(text))
