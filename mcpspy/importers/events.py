"""The times of the events of a stream, if a file only has the start and the end of the stream.

An event came after the message that it answers, and before any message that answers it. So each event gets the earliest
possible time: not before the stream, the event above it, or, for a response, the request with its id. Then messages
that the event caused are later, and requests are paired as they were. In a stream that a request opened, the last event
is usually the response, so it gets the end of the stream. All these times are approximate, and the capture says so.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from mcpspy.capture import scan
from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse
from mcpspy.wire.lines import PIECE
from mcpspy.wire.sse import Events, parse_event

_AFTER = 1  # nanosecond between a request and its response


class RequestTimes:
    """When requests were sent, by server and id; several clients may use the same id."""

    def __init__(self) -> None:
        self._walls: dict[tuple[str, Id], list[int]] = {}

    def note(self, origin: str, wall: int, body: bytes) -> None:
        """Store the time of the requests in a body."""
        for message in parse(body) if len(body) <= scan.LARGEST else ():
            if isinstance(message, Request):
                walls = self._walls.setdefault((origin, message.id), [])
                if wall not in walls[bisect_left(walls, wall) :][:1]:
                    insort(walls, wall)

    def first(self, origin: str, event: bytes, since: int) -> int:
        """Return when the request that this event answers was first sent after `since`; `since` if there was none."""
        data = parse_event(event).data
        if not data or len(data) > scan.LARGEST:
            return since
        answered = [message.id for message in parse(data) if isinstance(message, Result | Error) and message.id]
        found = [since]
        for walls in (self._walls.get((origin, answer), []) for answer in answered):
            found += [wall + _AFTER for wall in walls[bisect_left(walls, since) :][:1]]
        return max(found)


def decoded(raw: bytes, encoding: str, most: int) -> bytes | None:
    """Return a body without its content codings; None if decoding fails or gives more than `most` bytes."""
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
    """Yield the events of a stream with their terminators, one at a time, because three bytes may be one event."""
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
    """Yield each event of a stream with its time; `to_a_request` is True unless a GET opened the stream."""
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
