"""What answers have in common: addresses, bounds, cursors, and facts without the empty ones."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.agent.clean import safe, size_of
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError

Answer = dict[str, Any]

LARGEST = 8000
"""Bytes of an answer as JSON."""


def address(session: str, n: int) -> str:
    """The permanent address of a frame: `3d345f#17`."""
    return f"{session}#{n}"


def split_address(text: str) -> tuple[str, int]:
    """The capture and the line of an address. Raises UsageError."""
    session, mark, number = text.strip().rpartition("#")
    if not mark or not number.isdecimal() or len(number) > 9:
        raise UsageError(f"{safe(text, 60)!r} is not an address; one looks like 3d345f#17, as read_timeline gives them")
    return session, int(number)


def facts(**known: Any) -> Answer:
    """What is known: without what is None, empty or, for lists and texts, nothing. Names lose a last underscore."""
    return {name.rstrip("_"): it for name, it in known.items() if it is not None and it not in ("", [], {}, ())}


def milliseconds(nanoseconds: int | None) -> float | None:
    """A latency to three digits after the point."""
    return None if nanoseconds is None else round(nanoseconds / 1e6, 3)


def progress(capture: OpenCapture) -> Answer:
    """How much of a capture was read, where that is not all of it."""
    if capture.complete or capture.index.live or capture.progress >= 1:
        return {}
    part = int(capture.progress * 100)
    return {"read": f"{part} % of the capture was read so far; ask again for the rest"}


def cursor_at(key: Iterable[object], place: int) -> str:
    """A cursor for a question: where the answer goes on."""
    return f"{place}-{_sum(key):08x}"


def place_of(text: str | None, key: Iterable[object]) -> int:
    """The place that a cursor stands for, 0 without one. Raises UsageError for one that is not of this question."""
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
    """The first of what was found, as many as there is room for; one at least."""
    for count, it in enumerate(found):
        room -= size_of(it) + 1
        if count >= most or (room < 0 and count):
            return
        yield it


def _sum(key: Iterable[object]) -> int:
    return zlib.crc32("\0".join(map(str, key)).encode(errors="replace"))
