"""Who was waited for at each moment of a capture: the server, a person, a gate, or nobody.

The theory. Each moment from the first message to the last counts once, for the first of these that applies. Requests
that run side by side therefore do not add up.

1. `held`: a gate or a viewer holds a frame.
2. `asked`: a person is asked. The server waits for the answer to `elicitation/create` or `sampling/createMessage`, or
   for the client to come back with such an answer (`input_required`, 2026-07-28). Whether a person or a model answers
   a sampling request the capture does not tell: both count.
3. `client`: the server waits for another answer of the client's, such as that to `roots/list`.
4. `server`: a request of the client's has no answer yet. A subscription is not waited for.
5. `client`: nothing is outstanding.

A request ends with its answer, with its cancellation, with an HTTP status in place of an answer, or where records are
missing. One that gets none of these no longer counts after a thousand messages: its sender has given up silently.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from mcpspy.capture.records import Gap
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import ENDLESS, Event, Exchange, HttpUnit, Message
from mcpspy.text import duration_text
from mcpspy.wire.jsonrpc import Request

PERSONAL = ("elicitation/create", "sampling/createMessage")
"""The requests of a server that are put to a person."""
WAITED = ("server", "asked", "held", "client")
"""Whose time it may be."""
STALE = 1000
"""Messages after which a request without an answer no longer counts."""
MOST = 64
"""Requests, answers that ask, and held frames that are followed at once."""
_FIRST = {"asked": 0, "client": 1, "server": 2}  # of those that are waited for side by side
_CALLS = 100_000  # calls of which it is kept for how long they waited for a person


class _Wait(NamedTuple):
    """A request without an answer, or an answer that asks for input."""

    whom: str
    message: int
    """How many messages there were before it."""
    t: int
    exchange: Exchange | None = None
    """That of a request."""
    call: int | None = None
    """Of a request of the server's: the ordinal of the client's request that it belongs to, where that is known."""


class Times:
    """The fold; `add` each event. Times are nanoseconds."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(WAITED, 0)
        """How long each was waited for; `client` also has the time in which nothing was outstanding."""
        self.asked: dict[int, int] = {}
        """By ordinal of a request: for how long a person was asked while it ran, or before it went on."""
        self._now: int | None = None
        self._messages = 0
        self._open: OrderedDict[int, _Wait] = OrderedDict()  # requests, by ordinal
        self._rounds: OrderedDict[int, _Wait] = OrderedDict()  # answers that ask for input, by line number
        self._held = list[GateAct]()
        self._gated = False  # a gate has acted

    def add(self, event: Event) -> None:
        """Take the next event."""
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
            if message.act.waits and len(self._held) < MOST:
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
        """The request of the client's that a request of the server's belongs to: that on whose stream it came.

        Without such a stream it is the only one that has no answer yet; where there are several, nobody can tell.
        """
        carried = message.http.request.carried if message.http and message.http.request else []
        known = [it.exchange.ordinal for it in carried if it.exchange]
        running = [ordinal for ordinal, wait in self._open.items() if wait.whom == "server"]
        return known[0] if known else running[0] if len(running) == 1 else None

    def _advance(self, t: int) -> None:
        """Time has gone on to `t`, by way of the moments at which frames were let go."""
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
        if span <= 0:  # clocks of several connections may differ by a little
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
        if ordinal in self.asked or len(self.asked) < _CALLS:
            self.asked[ordinal] = self.asked.get(ordinal, 0) + span

    def _forget(self, *, silently: bool) -> None:
        """Leave out what nobody waits for any more, and what may have ended `silently`: without a message."""
        for waits in (self._open, self._rounds):
            if waits and self._messages - next(iter(waits.values())).message > STALE:
                waits.popitem(last=False)
        if silently:
            for ordinal in [ordinal for ordinal, wait in self._open.items() if _is_over(wait.exchange)]:
                del self._open[ordinal]


def waited_text(spent: Mapping[str, int]) -> str:
    """Who was waited for: `server 1.20 s (60%), client 800.0 ms (40%)`; nothing where nobody was."""
    whole = sum(spent.values())
    return ", ".join(f"{it} {duration_text(spent[it])} ({_share(spent[it], whole)})" for it in WAITED if spent[it])


def _share(part: int, whole: int) -> str:
    return "<1%" if part * 200 < whole else f"{part / whole:.0%}"


def _is_over(exchange: Exchange | None) -> bool:
    """Whether a request gets no answer any more, as far as other things than messages tell."""
    if exchange is None:
        return True
    dropped = exchange.request.act is not None and exchange.request.act.dropped
    return dropped or exchange.cancelled or exchange.refused or (exchange.lost or exchange.left) is not None


def _bound(waits: OrderedDict[int, _Wait]) -> None:
    if len(waits) > MOST:
        waits.popitem(last=False)
