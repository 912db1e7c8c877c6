"""From a capture to its page: the lines that are shared, what is computed from them, and both put into the page.

The lines are first written to a file of their own, in a directory that only the user can read. Everything that the page
shows is computed from that file. Both parts are compressed as they are produced, so memory grows with the open
exchanges and not with the capture.
"""

import binascii
import os
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple, NoReturn

from mcpspy.capture.reader import Capture
from mcpspy.errors import UsageError
from mcpspy.filters import Filter
from mcpspy.importers.shared_page import OPENING
from mcpspy.recording.copy import write_copy
from mcpspy.sharing.page.contents import Contents
from mcpspy.sharing.page.sources import page
from mcpspy.sharing.scrub import Scrub
from mcpspy.sharing.selection import LINE_LEFT_OUT, raw_lines, selected, shown_filter, wanted_lines, whole_lines
from mcpspy.text import size_text

MOST_BYTES = 64 << 20
"""Maximum size of a capture in a page, in bytes."""

MOST_ROWS = 100_000
"""Maximum number of rows in a page."""

_SESSION = OPENING.replace(b"capture", b"session")
_CLOSING = b"</script>\n"
_GROUP = 57 << 10  # bytes that are encoded as base64 at once; a multiple of three
_CHUNK = 1 << 20  # bytes read at once
_LEVEL = 6  # of the compression: 9 takes three times as long to save one per cent


class Shared(NamedTuple):
    """What is put into a page."""

    path: str
    """The path of the capture."""
    lines: Callable[[], Iterator[bytes]]
    """Its shared lines, each with its newline, or in larger pieces; called as often as they are needed."""
    about: dict[str, Any]
    """What the page gets in addition to the capture: `scrubbed`, `raw`, `replaced`."""
    wanted: Filter | None = None
    """The filter for the shared rows; None for all rows."""


def scrubbed(path: str, scrub: Scrub, wanted: Filter | None) -> Shared:
    """Return a capture to share after a scrub of it."""
    replaced = [{"kind": it.kind, "label": it.label, "count": it.count} for it in scrub.replaced]
    file = scrub.text(os.path.basename(path))
    return Shared(path, scrub.lines, {"scrubbed": True, "raw": False, "replaced": replaced, "file": file}, wanted)


def unscrubbed(path: str, wanted: Filter | None) -> Shared:
    """Return a capture to share as it was recorded; the page states that."""
    return Shared(path, partial(raw_lines, path), {"scrubbed": False, "raw": True, "replaced": []}, wanted)


def write_page(shared: Shared, output: BinaryIO, read: Callable[[int], None] = lambda _: None) -> int:
    """Write the page of a capture; return the number of its rows.

    `read` is called with the number of bytes that were read, in total `readings` times the size of the capture.

    Raises UsageError if there is more to share than a browser can open, and CaptureError if the capture cannot be read.
    """
    capture = Capture(shared.path)
    live = capture.live
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "capture.jsonl")
        about = {"file": os.path.basename(shared.path), "filter": None, **shared.about}
        if shared.wanted:
            rows = wanted_lines(lambda: capture.records(read=read), shared.wanted, live=live)
            write_copy(selected(lambda: whole_lines(shared.lines()), rows), copy)
            about["filter"] = shown_filter(shared.wanted, copy) if about["scrubbed"] else str(shared.wanted)
        else:
            write_copy(shared.lines(), copy)
        contents = Contents(Capture(copy), live, about, MOST_ROWS, read)
        frame = page()
        output.write(frame.before.encode())
        if os.path.getsize(copy) > MOST_BYTES:
            refuse_too_large(capture, shared.wanted)
        _embed(output, _SESSION, contents.json())
        if contents.rows > MOST_ROWS:
            refuse_too_large(capture, shared.wanted)
        with open(copy, "rb") as file:
            _embed(output, OPENING, iter(lambda: file.read(_CHUNK), b""))
        output.write(frame.after.encode())
    return contents.rows


def readings(shared: Shared) -> int:
    """Return how often a capture is read while its page is written."""
    return 5 if shared.wanted else 3


def is_too_large(capture: Capture) -> bool:
    """Return whether a capture is larger than a page may be; the number of its rows is known only after reading it."""
    return capture.size > MOST_BYTES


def refuse_too_large(capture: Capture, wanted: Filter | None) -> NoReturn:
    """Raise UsageError for a capture that is too large for a page, with a filter that keeps its newest part."""
    times, sizes = array("q"), array("q")
    for record in capture.records(largest=1):
        times.append(record.t)
        sizes.append(getattr(record, "size", 0) + _OVERHEAD)
    bound = f"a page carries at most {size_text(MOST_BYTES)} and {MOST_ROWS:,} rows"
    start, rows, budget = len(times), MOST_ROWS * 3 // 4, MOST_BYTES * 3 // 4 - len(times) * len(LINE_LEFT_OUT)
    if budget < 0:
        lines = f"each of its {len(times):,} records takes space, even if a filter leaves it out"
        raise UsageError(f"{capture.path} is too long to be shared: {bound}, and {lines}")
    while start and rows and budget > sizes[start - 1]:
        start, rows, budget = start - 1, rows - 1, budget - sizes[start - 1]
    last = len(times) - start < _FEW
    term = "size:<100kb" if last else f"time:>={-(-times[start] // 10**8) / 10:.1f}"
    fits = f"({wanted}) {term}" if wanted else term
    kept = "leaves the large frames out" if last else "keeps the newest part"
    raise UsageError(f"{capture.path} is too large to be shared: {bound}; --filter {fits!r} {kept}")


_FEW = 5  # with fewer records than this, the newest part is not worth sharing
_OVERHEAD = 150  # bytes of a record without its frame


def _embed(output: BinaryIO, opening: bytes, pieces: Iterable[bytes]) -> None:
    """Write an element that contains some bytes: gzip in base64."""
    packer, rest = zlib.compressobj(_LEVEL, wbits=31), b""
    output.write(opening)
    for piece in pieces:
        rest += packer.compress(piece)
        whole = len(rest) // _GROUP * _GROUP
        output.write(binascii.b2a_base64(rest[:whole], newline=False))
        rest = rest[whole:]
    output.write(binascii.b2a_base64(rest + packer.flush(), newline=False))
    output.write(_CLOSING)
