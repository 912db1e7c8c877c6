"""When the events of a stream came, where a file knows the stream as a whole: when it began and ended.

An event came after what it answers, and before what answers it. So each is placed as early as that allows: not before
the stream, the event above it, or, being a response, the request with its id. Whatever an event led to then comes later
still, and requests pair as they did. Of the stream that a request opened the last event, as a rule its result, is
what ended it. All of these times are approximate, and the capture says so.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse
from mcpspy.wire.lines import PIECE
from mcpspy.wire.sse import Events, parse_event

_AFTER = 1  # nanosecond by which a response is placed after its request


class RequestTimes:
    """When requests were sent, by server and id; several clients may use one id."""

    def __init__(self) -> None:
        self._walls: dict[tuple[str, Id], list[int]] = {}

    def note(self, origin: str, wall: int, body: bytes) -> None:
        """Take what a body asks."""
        for message in parse(body):
            if isinstance(message, Request):
                walls = self._walls.setdefault((origin, message.id), [])
                if wall not in walls[bisect_left(walls, wall) :][:1]:
                    insort(walls, wall)

    def first(self, origin: str, event: bytes, since: int) -> int:
        """When first since then was asked what this event answers; `since` if nothing was."""
        data = parse_event(event).data
        if not data:
            return since
        answered = [message.id for message in parse(data) if isinstance(message, Result | Error) and message.id]
        found = [since]
        for walls in (self._walls.get((origin, answer), []) for answer in answered):
            found += [wall + _AFTER for wall in walls[bisect_left(walls, since) :][:1]]
        return max(found)


def decoded(raw: bytes, encoding: str, most: int) -> bytes | None:
    """A body without its codings; None where they cannot be undone, or hide more than `most` bytes."""
    decoder = Decoder(encoding)
    if decoder.plain:
        return raw
    parts, size = [], 0
    for part in decoder.feed(raw):
        parts.append(part)
        size += len(part)
        if size > most:
            return None
    decoder.end()
    return None if decoder.fault else b"".join(parts)


def blocks(raw: bytes) -> Iterator[bytes]:
    """The events of a stream, each with what ends it, one at a time: three bytes may be one."""
    pieces: list[bytes] = []
    for piece, more, cut in _framed(raw):
        pieces.append(piece)
        if not more:
            yield b"".join(pieces) + (b"" if cut else b"\n")
            pieces.clear()


def _framed(raw: bytes) -> Iterator[tuple[bytes, bool, bool]]:
    events = Events()
    for start in range(0, len(raw), PIECE):
        yield from events.feed(raw[start : start + PIECE])
    yield from events.end()


def placed(
    events: Iterable[bytes], origin: str, since: int, until: int, asked: RequestTimes, *, to_a_request: bool
) -> Iterator[tuple[int, bytes]]:
    """Each event of a stream and its time; `to_a_request` says that a request opened the stream, and no GET."""
    wall = since
    coming = iter(events)
    event = next(coming, None)
    while event is not None:
        following = next(coming, None)
        wall = max(wall, asked.first(origin, event, since))
        if following is None and to_a_request:
            wall = until
        yield min(wall, until), event
        event = following
