"""What is known of each line of a capture, in columns of a few bytes per line.

A capture may have millions of rows, and any of them may be needed at any time. So only small numbers are kept for each
row, in arrays: indexes into tables of texts, and line numbers. The lines of a request and of its response refer to
their exchange, which has the status (`mcpspy.conversation.exchanges`). A line with a batch has the kind `batch`, and
entries only for its first message.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from mcpspy.capture.records import Frame
from mcpspy.conversation.exchanges import STATUSES, Exchanges
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Event, Exchange, HttpUnit, Message, StreamEnd, kind_of, sender_of
from mcpspy.conversation.outcomes import Outcome, decoded
from mcpspy.spec.revisions import Revision
from mcpspy.timeline import Row
from mcpspy.wire.jsonrpc import Id, Invalid

KINDS = (
    "",
    *"request notification result error invalid undecoded stderr http event end-of-stream".split(),
    *"gap signal gates end batch".split(),
)
_SENDERS = ("client", "server", "mcpspy")
_REVISIONS = (None, *Revision)
_REVISION_NAMES = (None, *(revision.value for revision in Revision))
_KIND = {kind: number for number, kind in enumerate(KINDS)}
_SENDER = {sender: number for number, sender in enumerate(_SENDERS)}
_REVISION = {revision: number for number, revision in enumerate(_REVISIONS)}
_BATCH = _KIND["batch"]
_NAME = 500  # characters of a method or name that are kept
_IS_PLAIN = bytes(kind not in ("", "batch", "invalid") for kind in KINDS).ljust(256, b"\0")
_OF_SESSION = (Message, HttpUnit, StreamEnd)  # as a tuple: a union would be built again for each event
_SEVERAL = 2  # for one line, `itemgetter` would return no tuple
_NO_STATUS = len(STATUSES)
_LARGEST = 2**32 - 1  # bytes of a frame; a larger size is stored as this


_AnyRow = TypeVar("_AnyRow", bound=Row)


class Columns:
    """What is known of each line, by line number. Call `extend` for a line before you `add` its event."""

    def __init__(self) -> None:
        self.exchanges = Exchanges()
        self.names: set[str] = set()
        """Names of tools, prompts and resources, at most two."""
        self._kind, self._sender, self._revision = bytearray(), bytearray(), bytearray()
        self._method, self._name, self._session, self._size = array("I"), array("I"), array("I"), array("I")
        self._exchange = array("I")  # its ordinal plus one
        self._t, self._id = array("Q"), array("q")
        self._texts: list[str | None] = [None]  # methods, names and sessions, once each
        self._places: dict[str | None, int] = {None: 0, "": 0}
        self._acts: dict[int, GateAct] = {}
        self._ids: dict[int, str] = {}  # by line number: ids that are not small numbers
        text, number = self._texts.__getitem__, int
        self._gathered: dict[str, tuple[Sequence[int], Callable[[int], Any]]] = {
            "kind": (self._kind, KINDS.__getitem__),
            "sender": (self._sender, _SENDERS.__getitem__),
            "revision": (self._revision, _REVISION_NAMES.__getitem__),
            "method": (self._method, text),
            "name": (self._name, text),
            "session": (self._session, text),
            "size": (self._size, number),
            "t": (self._t, number),
            "status": (self._exchange, self._decoded_status),
            "latency": (self._exchange, lambda code: None if code < 0 else code),
        }

    def extend(self, lines: int) -> None:
        """Make room for line numbers up to `lines`."""
        more = lines + 1 - len(self._kind)
        for flags in (self._kind, self._sender, self._revision):
            flags.extend(bytes(more))
        for column in (self._method, self._name, self._session, self._size, self._exchange, self._t, self._id):
            column.frombytes(bytes(more * column.itemsize))

    def add(self, event: Event | Outcome) -> tuple[int, ...]:
        """Add the next event; return the line numbers of earlier requests that it changes."""
        n = self.exchanges.outcomes.add(event)
        if isinstance(event, Outcome):
            return (n,)
        n = event.n
        if isinstance(event, Message) and event.part:
            self._kind[n] = _BATCH
            return self.exchanges.add(event)
        self._t[n] = event.t
        self._kind[n], self._sender[n] = _KIND[kind_of(event)], _SENDER[sender_of(event)]
        if isinstance(event, _OF_SESSION):
            self._session[n] = self._place(event.session.name)
            if event.act:
                self._acts[n] = event.act
        frame = event if isinstance(event, Frame) else event.frame if isinstance(event, _OF_SESSION) else None
        if frame:
            self._size[n] = min(frame.size, _LARGEST)
        return self._add_message(event) if isinstance(event, Message) else ()

    def end(self, pending: Iterable[Exchange], *, live: bool) -> list[int]:
        """End the capture; return the line numbers of the requests without a response."""
        return self.exchanges.end(pending, live=live)

    def time(self, n: int) -> int | None:
        """Return the time of line `n`, or None if nothing is known of it."""
        return self._t[n] if self._kind[n] else None

    def kind(self, n: int) -> str:
        """Return the kind of line `n`, or an empty string if nothing is known of it."""
        return KINDS[self._kind[n]]

    def partner(self, n: int) -> int:
        """Return the line of the response to a request, or of the request that a response answers, else 0."""
        if not self._exchange[n]:
            return 0
        ordinal = self._exchange[n] - 1
        request = self.exchanges.requests[ordinal]
        return self.exchanges.responses[ordinal] if n == request else request

    def continues(self, n: int) -> int:
        """Return the line of the `input_required` response that the request on line `n` continues, else 0."""
        ordinal = self._exchange[n] - 1
        return self.exchanges.continued[ordinal] if ordinal >= 0 and self.exchanges.requests[ordinal] == n else 0

    def act(self, n: int) -> GateAct | None:
        """Return what a gate did to the frame on line `n`."""
        return self._acts.get(n)

    def inputs(self, n: int) -> frozenset[str] | None:
        """Return the known methods that the response on line `n` requests, or None if it is not `input_required`."""
        ordinal = self._exchange[n] - 1
        answers = ordinal >= 0 and self.exchanges.responses[ordinal] == n
        return self.exchanges.requested(ordinal) if answers else None

    def at(self, n: int, make: type[_AnyRow]) -> _AnyRow:
        """Return the row on line `n`, without its content and its findings; its kind may be `batch`, or empty."""
        status = request = response = latency = None
        if self._exchange[n]:
            ordinal, exchanges = self._exchange[n] - 1, self.exchanges
            status = exchanges.status(ordinal)
            outcome, expected = decoded(exchanges.outcomes.code(ordinal))
            if exchanges.responses[ordinal]:
                response = exchanges.responses[ordinal]
                request = exchanges.requests[ordinal]
                latency = abs(self._t[response] - self._t[request] - exchanges.held(ordinal))
        else:
            outcome, expected = decoded(self.exchanges.outcomes.line_code(n))
        number, texts, kind = self._id[n], self._texts, KINDS[self._kind[n]]
        method = texts[self._method[n]]
        row = make(  # by position: by name takes twice as long
            n,
            self._t[n],
            kind,
            _SENDERS[self._sender[n]],
            None,
            0,
            Id("number", str(number - 1)) if number else self._large_id(n),
            method,
            texts[self._name[n]],
            _REVISION_NAMES[self._revision[n]],
            status,
            outcome,
            expected,
            request,
            response,
            latency,
            self._size[n],
        )
        if kind == "invalid":
            row.method, row.text = None, method
        row.session, row.act = texts[self._session[n]], self._acts.get(n) if self._acts else None
        return row

    def gather(self, name: str, lines: Sequence[int]) -> tuple[Sequence[int | None], Callable[[int], Any]] | None:
        """Return a member of the rows on several lines: numbers, and the function that decodes them.

        The value of `status` has three parts: status, outcome, and why that is expected. None for other names.

        The number is `None` for a line that is not known yet, is a batch or is not a message, and for an exchange that
        a gate changed. In these cases the caller has to read the row.
        """
        column = self._gathered.get(name)
        if column is None or len(lines) < _SEVERAL:
            return None
        get: Callable[[Sequence[int]], tuple[int, ...]] = itemgetter(*lines)
        array_, value = column
        codes: Sequence[int | None] = get(array_)
        if name == "status":
            codes = list(map(self._status_code, lines, get(array_)))
        elif name == "latency":
            codes = list(map(self._latency_code, get(array_)))
        plain = bytes(get(self._kind)).translate(_IS_PLAIN)
        if not all(plain):
            codes = [code if known else None for code, known in zip(codes, plain, strict=True)]
        return codes, value

    def _status_code(self, n: int, ordinal: int) -> int | None:
        """Return the number for status and outcome of a line, by the ordinal of its exchange plus one."""
        exchanges = self.exchanges
        if not ordinal:
            return _NO_STATUS << 8 | exchanges.outcomes.line_code(n)
        if ordinal - 1 in exchanges.acts:
            return None
        return exchanges.statuses[ordinal - 1] << 8 | exchanges.outcomes.code(ordinal - 1)

    def _decoded_status(self, code: int) -> tuple[str | None, str | None, str | None]:
        status = code >> 8
        return None if status == _NO_STATUS else STATUSES[status], *decoded(code & 0xFF)

    def _latency_code(self, ordinal: int) -> int | None:
        """Return the latency of an exchange, by its ordinal plus one; -1 for none."""
        exchanges = self.exchanges
        if not ordinal or ordinal - 1 in exchanges.acts:
            return None if ordinal else -1
        response = exchanges.responses[ordinal - 1]
        return abs(self._t[response] - self._t[exchanges.requests[ordinal - 1]]) if response else -1

    def _add_message(self, message: Message) -> tuple[int, ...]:
        n, body = message.n, message.body
        self._revision[n] = _REVISION[message.revision]
        self._method[n] = self._place(body.reason if isinstance(body, Invalid) else message.method)
        self._name[n] = self._place(message.name)
        if message.name and len(self.names) < _SEVERAL:
            self.names.add(message.name)
        if message.id:
            self._add_id(n, str(message.id))
        if message.exchange:
            self._exchange[n] = message.exchange.ordinal + 1
        return self.exchanges.add(message)

    def _place(self, text: str | None) -> int:
        """Return the index of a text in the table; add a new text."""
        text = text[:_NAME] if text else None
        place = self._places.setdefault(text, len(self._texts))
        if place == len(self._texts):
            self._texts.append(text)
        return place

    def _add_id(self, n: int, number: str) -> None:
        if len(number) < 19 and number.isascii() and number.isdigit() and str(int(number)) == number:
            self._id[n] = int(number) + 1
        else:
            self._ids[n] = number

    def _large_id(self, n: int) -> Id | None:
        """Return the id on line `n` if it is not a small number."""
        text = self._ids.get(n)
        if text is None:
            return None
        if text.startswith('"'):
            return Id("string", text[1:-1])
        kind = "null" if text == "null" else "other" if text.startswith(("t", "f", "[", "{")) else "number"
        return Id(kind, text)
