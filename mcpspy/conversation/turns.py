"""Turns: the parts of a run between its pauses.

The theory. A person asks a client for something, the client exchanges messages with its servers, and then it waits for
the person. So a pause of five minutes in all captures of a run separates two turns. Pings neither end nor begin a turn.
A response belongs to the turn of its request, however late it comes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mcpspy.conversation import bounds
from mcpspy.conversation.model import Message
from mcpspy.wire.jsonrpc import Error, Request, Result

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
