"""The state of each request of a capture, in a few bytes.

A capture may have millions of requests, and the status of each changes until its response has come. So only small
numbers are kept, in arrays.
"""

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcpspy.conversation.context import ASKED
from mcpspy.conversation.model import Exchange, Message
from mcpspy.conversation.outcomes import OutcomeTable
from mcpspy.json_values import member
from mcpspy.wire.jsonrpc import Notification, Request

if TYPE_CHECKING:
    from mcpspy.conversation.gate_acts import GateAct

STATUSES = ("ok", "error", "tool-error", "pending", "unanswered", "cancelled", "not-decoded", "held", "dropped")
_STATUS = {status: number for number, status in enumerate(STATUSES)}
_PENDING, _UNANSWERED = bytes([_STATUS["pending"]]), bytes([_STATUS["unanswered"]])
_ANY_INPUT = 1  # the response is `input_required`
_INPUT = {method: 2 << number for number, method in enumerate(ASKED)}
_FLOAT = 1e300  # numbers below this are progress, others are nonsense


class Exchanges:
    """The state of each request, by its ordinal: line numbers, status, and the inputs that its response requests.

    The line numbers are those of the request, of its response, and of the response that the request continues.
    """

    def __init__(self) -> None:
        self.requests, self.responses, self.continued = array("I"), array("I"), array("I")
        self.statuses, self.inputs = bytearray(), bytearray()
        self.outcomes = OutcomeTable()
        """The outcomes of all requests, also of HTTP requests without a JSON-RPC request."""
        self.acts: dict[int, GateAct] = {}
        """By ordinal: what a gate did to the request."""
        self.progress: dict[int, tuple[float, float | None]] = {}
        """By ordinal: the progress of a request without a response, and the total, if it is known."""

    def add(self, message: Message) -> tuple[int, ...]:
        """Add the next message; return the line numbers of earlier requests that it changes."""
        exchange = message.exchange
        if exchange is None:
            self._note_progress(message)
            return self.set(message.session.with_id_of(message.cancels)) if message.cancels else ()
        if type(message.body) is Request:
            self.requests.append(message.n)
            self.responses.append(0)
            self.continued.append(exchange.continues or 0)
            self.inputs.append(0)
            self.statuses.append(_STATUS["pending"])
            if message.act:
                self.acts[exchange.ordinal] = message.act
            return ()
        self.responses[exchange.ordinal] = message.n
        if self.progress:
            self.progress.pop(exchange.ordinal, None)
        if exchange.inputs is not None:
            self.inputs[exchange.ordinal] = _ANY_INPUT | sum(_INPUT[it] for it in exchange.inputs if it in _INPUT)
        self.statuses[exchange.ordinal] = _STATUS[exchange.status]
        return (exchange.request.n,)

    def _note_progress(self, message: Message) -> None:
        if message.link is None or message.method != "notifications/progress" or self.responses[message.link]:
            return
        assert isinstance(message.body, Notification)
        params = message.body.params
        done, total = member(params, "progress"), member(params, "total")
        if _is_number(done):
            self.progress[message.link] = float(done), float(total) if _is_number(total) else None

    def set(self, exchanges: Iterable[Exchange]) -> tuple[int, ...]:
        """Store the current statuses of exchanges; return the line numbers of the requests."""
        changed = []
        for exchange in exchanges:
            self.statuses[exchange.ordinal] = _STATUS[exchange.status]
            changed.append(exchange.request.n)
        return tuple(changed)

    def end(self, pending: Iterable[Exchange], *, live: bool) -> list[int]:
        """Store the final statuses of exchanges without a response; return the line numbers of the requests."""
        if not live:  # `pending` does not include those of forgotten sessions
            self.statuses = self.statuses.replace(_PENDING, _UNANSWERED)
            self.outcomes.end()
        changed = []
        for exchange in pending:
            self.statuses[exchange.ordinal] = _STATUS[exchange.final_status(live=live)]
            changed.append(exchange.request.n)
        return changed

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.requests)

    def status(self, ordinal: int) -> str:
        """Return the status of an exchange."""
        found = STATUSES[self.statuses[ordinal]]
        if self.acts and found in ("pending", "unanswered") and ordinal in self.acts:
            return self.acts[ordinal].status or found
        return found

    def requested(self, ordinal: int) -> frozenset[str] | None:
        """Return the known methods that the response to a request requires; None if it is not `input_required`."""
        flags = self.inputs[ordinal]
        return frozenset(method for method, flag in _INPUT.items() if flags & flag) if flags else None

    def held(self, ordinal: int) -> int:
        """Return for how many nanoseconds a gate held the request of an exchange."""
        act = self.acts.get(ordinal) if self.acts else None
        return act.held or 0 if act else 0


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a float can hold."""
    return type(value) in (int, float) and abs(value) < _FLOAT
