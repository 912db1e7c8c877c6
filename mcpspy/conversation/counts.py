"""What lists show of sessions and runs: number of frames, both peers, tools called, the last error, turns.

A turn is a part of a run between its pauses. A person asks a client for something, the client exchanges messages with
its servers, and then it waits for the person. So a pause of five minutes in all captures of a run separates two turns.
Pings neither end nor begin a turn. A response belongs to the turn of its request, however late it comes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.capture.location import program_name
from mcpspy.capture.records import Frame, Header, Record
from mcpspy.conversation import bounds
from mcpspy.conversation.conversation import decided_events
from mcpspy.conversation.model import Event, Exchange, HttpUnit, Message, kind_of
from mcpspy.conversation.outcomes import Outcome, OutcomeTable
from mcpspy.conversation.preview import INTRODUCE, introduction, preview
from mcpspy.wire.jsonrpc import Error, Invalid, Request, Result

PAUSE = 300_000_000_000
"""Nanoseconds without a message that separate two turns."""


@dataclass(slots=True)
class Spell:
    """Messages of one capture without a pause between them. Times are nanoseconds since the capture started."""

    n: int
    """The line of the first message."""
    start: int
    end: int
    frames: int = 0
    exchanges: int = 0


class RunTurn(NamedTuple):
    """Messages of a run without a pause between them. Times are nanoseconds from the origin that the caller uses."""

    start: int
    end: int
    frames: int
    exchanges: int
    first: tuple[int, int]
    """Its first message: the index of its capture in the run, and its line there."""


def add_message(spells: list[Spell], message: Message) -> None:
    """Add a message of a capture to the capture's spells."""
    if message.method == "ping":
        return
    n, t = message.n, message.t
    last = spells[-1] if spells else None
    begins = not last or (t - last.end >= PAUSE and not isinstance(message.body, Result | Error))
    if not last or (begins and len(spells) < bounds.SPELLS):
        last = Spell(n, t, t)
        spells.append(last)
    last.end = max(last.end, t)
    last.frames += message.part == 0
    last.exchanges += isinstance(message.body, Request)


def turns(captures: Iterable[tuple[int, Iterable[Spell]]]) -> list[RunTurn]:
    """Return the turns of a run; each capture is given by its start, in nanoseconds, and its spells."""
    spells = [(start + it.start, start + it.end, which, it) for which, (start, of) in enumerate(captures) for it in of]
    found: list[RunTurn] = []
    for start, end, which, spell in sorted(spells, key=lambda it: it[:3]):
        last = found[-1] if found else None
        if last and start - last.end < PAUSE:
            frames, exchanges = last.frames + spell.frames, last.exchanges + spell.exchanges
            found[-1] = last._replace(end=max(last.end, end), frames=frames, exchanges=exchanges)
        else:
            found.append(RunTurn(start, end, spell.frames, spell.exchanges, (which, spell.n)))
    return found


_NAMELESS = frozenset(
    "mcp mcpclient client exampleclient mcpexampleclient myclient testclient mcptypescriptclient".split()
)
"""Names that SDKs and their examples give to a client, without spaces and signs."""


def client_label(introduced: str, header: Header) -> str:
    """Return the name of a client for a list; `introduced` is how it introduced itself, or an empty string.

    If that does not tell clients apart, as `mcp 0.1.0` does not, the name is that of its program.
    """
    program = program_name(header.client)
    name, _, version = introduced.rpartition(" ")
    letters = "".join(filter(str.isalpha, name if any(map(str.isdigit, version)) else introduced)).lower()
    if not program or (letters and letters not in _NAMELESS):
        return introduced
    return f"{program} ({introduced})" if introduced else program


def run_label(captures: Iterable[tuple[str, Header]]) -> str:
    """Return the name of the client of a run, by how it introduced itself in each capture, and by the headers."""
    known = list(captures)
    spoken = [capture for capture in known if capture[0]]
    return next((label for capture in spoken or known if (label := client_label(*capture))), "")


COUNTED = 16 << 20
"""Bytes: lists do not count larger captures, which would take too long."""
_TOLD = 100  # characters of a name


@dataclass(slots=True)
class Counts:
    """The summary of a capture that `ls` shows."""

    frames: int = 0
    exchanges: int = 0
    """The number of requests, answered or not."""
    errors: int = 0
    """The number of requests answered by an error or a tool error, and of frames that are not messages."""
    failed: int = 0
    """The number of requests that have failed (`mcpspy.conversation.outcomes`)."""
    client: str = ""
    """Name and version of the client, from its first introduction."""
    server: str = field(default="", compare=False)
    """Name and version of the server, from its first introduction."""
    called: dict[str, int] = field(default_factory=dict, compare=False)
    """The number of calls by tool; if there are very many tools, only of the first ones."""
    last_error: str = field(default="", compare=False)
    """The line and the text of the last error."""
    spells: list[Spell] = field(default_factory=list, compare=False)
    """The messages without pings, divided by pauses."""

    def add(self, event: Event) -> None:
        """Count one more event of a conversation. `failed` comes from an `OutcomeTable`, which counts it."""
        if isinstance(event, Message):
            self.frames += event.part == 0
            add_message(self.spells, event)
            if isinstance(event.body, Request):
                self._request(event, event.body)
            elif isinstance(event.body, Invalid):
                self._error(event, event.body.reason)
            elif event.exchange:
                self._response(event, event.exchange)
        else:
            self.frames += isinstance(event, HttpUnit | Frame)

    def _request(self, message: Message, body: Request) -> None:
        self.exchanges += 1
        if message.method == "tools/call" and message.name:
            name = message.name[:_TOLD]
            if name in self.called or len(self.called) < bounds.CALLED_TOOLS:
                self.called[name] = self.called.get(name, 0) + 1
        elif not self.client and message.method in INTRODUCE:
            self.client = introduction(body.value)

    def _response(self, message: Message, exchange: Exchange) -> None:
        if exchange.status in ("error", "tool-error"):
            told = preview(kind_of(message), message.method, message.body.value)
            self._error(message, " ".join(filter(None, (message.method, (message.name or "")[:_TOLD], told))))
        elif not self.server and message.method in INTRODUCE:
            self.server = introduction(message.body.value)

    def _error(self, message: Message, told: str) -> None:
        self.errors += 1
        self.last_error = f"#{message.n} {told[: 3 * _TOLD]}"


def count(records: Iterable[Record], *, live: bool = False) -> Counts:
    """Return the summary of a capture; a `live` one may continue, so nothing is missing."""
    counts, outcomes = Counts(), OutcomeTable()
    for event in decided_events(records, live=live):
        outcomes.add(event)
        if not isinstance(event, Outcome):
            counts.add(event)
    counts.failed = outcomes.failed
    return counts
