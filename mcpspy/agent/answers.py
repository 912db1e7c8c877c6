"""What all answers share: addresses, size limits, cursors, and leaving out empty members."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.agent.clean import safe, size_of
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError

Answer = dict[str, Any]

LARGEST = 8000
"""The largest answer, in bytes of JSON."""


def address(session: str, n: int) -> str:
    """Return the address of a frame, which never changes: `3d345f#17`."""
    return f"{session}#{n}"


def split_address(text: str) -> tuple[str, int]:
    """Split an address into capture and line number. Raises UsageError."""
    session, mark, number = text.strip().rpartition("#")
    if not mark or not number.isdecimal() or len(number) > 9:
        raise UsageError(f"{safe(text, 60)!r} is not an address; one looks like 3d345f#17, as read_timeline gives them")
    return session, int(number)


def facts(**known: Any) -> Answer:
    """Return the members of an answer, without None and empty values. A trailing underscore is removed from names."""
    return {name.rstrip("_"): it for name, it in known.items() if it is not None and it not in ("", [], {}, ())}


def milliseconds(nanoseconds: int | None) -> float | None:
    """Return a latency in milliseconds, with three digits after the decimal point."""
    return None if nanoseconds is None else round(nanoseconds / 1e6, 3)


def progress(capture: OpenCapture) -> Answer:
    """Return how much of a capture has been read. Empty if all of it."""
    if capture.complete or capture.index.live or capture.progress >= 1:
        return {}
    part = int(capture.progress * 100)
    return {"read": f"{part} % of the capture was read so far; ask again for the rest"}


def cursor_at(key: Iterable[object], place: int) -> str:
    """Return the cursor for the next page of an answer. `key` identifies the question."""
    return f"{place}-{_sum(key):08x}"


def place_of(text: str | None, key: Iterable[object]) -> int:
    """Return the place that a cursor encodes, or 0. Raises UsageError if it belongs to another question."""
    if not text:
        return 0
    place, _, mark = text.partition("-")
    if not place.isdecimal() or len(place) > 12 or mark != f"{_sum(key):08x}":
        raise UsageError(
            f"the cursor {safe(text, 40)!r} does not belong to this question; repeat the question without a cursor, or "
            "with the same arguments as before"
        )
    return int(place)


def fitting(found: Iterable[Any], room: int, most: int) -> Iterator[Any]:
    """Yield as many of the first elements as fit into the space left, but at least one."""
    for count, it in enumerate(found):
        room -= size_of(it) + 1
        if count >= most or (room < 0 and count):
            return
        yield it


def _sum(key: Iterable[object]) -> int:
    return zlib.crc32("\0".join(map(str, key)).encode(errors="replace"))
