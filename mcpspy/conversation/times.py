"""Who was waited for at each moment of a capture: the server, a person, a gate, or the client.

The theory. Each moment from the first message to the last counts once, for the first entry of this list that applies.
So the times of parallel requests do not add up.

1. `held`: a gate or a viewer holds a frame.
2. `asked`: a person is asked. The server waits for the response to `elicitation/create` or `sampling/createMessage`, or
   for the client to retry with such an answer (`input_required`, 2026-07-28). The capture does not show whether a
   person or a model answers a sampling request: both count.
3. `client`: the server waits for another response of the client, such as that to `roots/list`.
4. `server`: a request of the client has no response yet. Subscriptions do not count.
5. `client`: nothing is outstanding.

A request ends with its response, with its cancellation, with an HTTP status in place of a response, or where records
are missing. A request without any of these no longer counts after a thousand messages: its sender has given up.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from mcpspy.capture.records import Gap
from mcpspy.conversation import bounds
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import ENDLESS, Event, Exchange, HttpUnit, Message
from mcpspy.text import duration_text
from mcpspy.wire.jsonrpc import Request

PERSONAL = ("elicitation/create", "sampling/createMessage")
"""The requests of a server that a person answers."""
WAITED = ("server", "asked", "held", "client")
"""The possible answers to the question who was waited for."""
_FIRST = {"asked": 0, "client": 1, "server": 2}  # priority among parallel waits


class _Wait(NamedTuple):
    """A request without a response, or a response that requests input."""

    whom: str
    message: int
    """The number of messages before it."""
    t: int
    exchange: Exchange | None = None
    """The exchange of a request."""
    call: int | None = None
    """For a request of the server: the ordinal of the client's request that it belongs to, if that is known."""


class Times:
    """The fold: `add` each event. Times are nanoseconds."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(WAITED, 0)
        """How long each was waited for; `client` includes the time in which nothing was outstanding."""
        self.asked: dict[int, int] = {}
        """By ordinal of a request: for how long a person was asked while it ran, or before it continued."""
        self._now: int | None = None
        self._messages = 0
        self._open: OrderedDict[int, _Wait] = OrderedDict()  # requests, by ordinal
        self._rounds: OrderedDict[int, _Wait] = OrderedDict()  # responses that request input, by line number
        self._held = list[GateAct]()
        self._gated = False  # a gate has acted

    def add(self, event: Event) -> None:
        """Add the next event."""
        if isinstance(event, Message):
            self._advance(event.t)
            self._messages += 1
            if self._open or self._rounds:
                self._forget(silently=event.http is not None or self._gated)
            self._take(event)
        elif isinstance(event, HttpUnit) and self._open:
            self._advance(event.t)
            self._forget(silently=True)
        elif isinstance(event, Gap):
            self._advance(event.t)
            self._open.clear()
            self._rounds.clear()

    def _take(self, message: Message) -> None:
        exchange = message.exchange
        if message.act:
            self._gated = True
            if message.act.waits and len(self._held) < bounds.WAITS:
                self._held.append(message.act)
        if message.cancels:
            self._open.pop(message.cancels.ordinal, None)
        elif exchange is None:
            return
        elif isinstance(message.body, Request):
            self._begin(message, exchange)
        else:
            self._open.pop(exchange.ordinal, None)
            if exchange.inputs is not None:
                whom = "asked" if exchange.inputs.intersection(PERSONAL) else "client"
                self._rounds[message.n] = _Wait(whom, self._messages, message.t)
                _bound(self._rounds)

    def _begin(self, message: Message, exchange: Exchange) -> None:
        asked = self._rounds.pop(exchange.continues, None) if exchange.continues else None
        if asked and asked.whom == "asked":
            self._add_asked(exchange.ordinal, max(message.t - asked.t, 0))
        if exchange.method == ENDLESS:
            return
        whom, call = "server", None
        if message.side == "server":
            whom, call = "asked" if exchange.method in PERSONAL else "client", self._call(message)
        self._open[exchange.ordinal] = _Wait(whom, self._messages, message.t, exchange, call)
        _bound(self._open)

    def _call(self, message: Message) -> int | None:
        """Return the client's request that a request of the server belongs to: the one on whose stream it came.

        Without such a stream it is the only request without a response. If there are several, the result is `None`.
        """
        carried = message.http.request.carried if message.http and message.http.request else []
        known = [it.exchange.ordinal for it in carried if it.exchange]
        running = [ordinal for ordinal, wait in self._open.items() if wait.whom == "server"]
        return known[0] if known else running[0] if len(running) == 1 else None

    def _advance(self, t: int) -> None:
        """Advance the time to `t`, with a step at each moment at which a frame was released."""
        self._now = t if self._now is None else self._now
        if self._held:
            for end in sorted(act.t + act.held for act in self._held if act.held is not None):
                if end <= t:
                    self._spend(end)
            self._held = [act for act in self._held if act.waits or act.t + (act.held or 0) > t]
        self._spend(t)

    def _spend(self, t: int) -> None:
        """Count the time until `t`, in which nothing changes."""
        span = t - (self._now or 0)
        if span <= 0:  # the clocks of connections may differ slightly
            return
        whom = self._whom()
        self.spent[whom] += span
        self._now = t
        if whom == "asked":
            for call in {wait.call for wait in self._open.values() if wait.whom == "asked"}:
                if call is not None:
                    self._add_asked(call, span)

    def _whom(self) -> str:
        now = self._now or 0
        if self._held and any(act.waits or act.t + (act.held or 0) > now for act in self._held):
            return "held"
        if not self._open and not self._rounds:
            return "client"
        return min((wait.whom for wait in chain(self._open.values(), self._rounds.values())), key=_FIRST.__getitem__)

    def _add_asked(self, ordinal: int, span: int) -> None:
        if ordinal in self.asked or len(self.asked) < bounds.ASKED_CALLS:
            self.asked[ordinal] = self.asked.get(ordinal, 0) + span

    def _forget(self, *, silently: bool) -> None:
        """Remove waits that are too old, and with `silently` those that may have ended without a message."""
        for waits in (self._open, self._rounds):
            if waits and self._messages - next(iter(waits.values())).message > bounds.STALE:
                waits.popitem(last=False)
        if silently:
            for ordinal in [ordinal for ordinal, wait in self._open.items() if _is_over(wait.exchange)]:
                del self._open[ordinal]


def waited_text(spent: Mapping[str, int]) -> str:
    """Return who was waited for: `server 1.20 s (60%), client 800.0 ms (40%)`; empty if there was no time."""
    whole = sum(spent.values())
    return ", ".join(f"{it} {duration_text(spent[it])} ({_share(spent[it], whole)})" for it in WAITED if spent[it])


def _share(part: int, whole: int) -> str:
    return "<1%" if part * 200 < whole else f"{part / whole:.0%}"


def _is_over(exchange: Exchange | None) -> bool:
    """Return whether a request gets no response any more, by signs other than messages."""
    if exchange is None:
        return True
    dropped = exchange.request.act is not None and exchange.request.act.dropped
    return dropped or exchange.cancelled or exchange.refused or (exchange.lost or exchange.left) is not None


def _bound(waits: OrderedDict[int, _Wait]) -> None:
    if len(waits) > bounds.WAITS:
        waits.popitem(last=False)
