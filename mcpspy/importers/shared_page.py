"""Extracts the capture from a page of `mcpspy share`: gzip in base64, in an element of its own.

The page comes from someone else, so nothing in it is trusted. It is read in pieces, none of its scripts runs, and the
size of the unpacked data is limited. The capture is extracted byte for byte, so it is not recorded again and nothing is
redacted again.
"""

import binascii
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from mcpspy.capture.format import MAGIC
from mcpspy.capture.reader import parse_header
from mcpspy.capture.user_key import without_proof
from mcpspy.errors import CaptureError
from mcpspy.importers.captures import Captures, iso
from mcpspy.recording.copy import write_copy
from mcpspy.text import size_text

OPENING = b'<script type="application/gzip;base64" id="capture">'
"""The text before the capture in a page."""

MOST = 256 << 20
"""Maximum size of the unpacked capture in bytes; `mcpspy share` writes no page of that size."""

_CHUNK = 1 << 18  # bytes at once; a multiple of four, because base64 is decoded in groups of four
_HEADER = 1 << 20  # maximum size of a header in bytes


def record(file: BinaryIO, captures: Captures) -> None:
    """Write the capture of the page to a file of its own; if it is damaged, set the fault of the account."""
    account = captures.account
    account.read = 1
    try:
        pieces = _unpacked(file, captures)
        first, newline, rest = _head(pieces).partition(b"\n")
        header = parse_header(first)
        path = captures.new_path(iso(header.started), header.name)
        write_copy(chain([without_proof(first), newline, rest], pieces), path)
    except (_DamagedPageError, CaptureError, ValueError) as error:
        account.fault = f"the capture in it {error}" if isinstance(error, CaptureError) else str(error)
        return
    account.paths.append(path)


def recognised(file: BinaryIO) -> bool:
    """Return whether a file that begins like HTML is a page of `mcpspy share`."""
    file.seek(0)
    return _find(file)


class _DamagedPageError(Exception):
    """The page does not contain a complete capture."""


def _find(file: BinaryIO) -> bool:
    """Go to the first byte of the capture; return False if there is none."""
    place, before = file.tell(), b""
    while chunk := file.read(_CHUNK):
        at = (before + chunk).find(OPENING)
        if at >= 0:
            file.seek(place - len(before) + at + len(OPENING))
            return True
        place += len(chunk)
        before = (before + chunk)[-len(OPENING) :]
    return False


def _head(pieces: Iterator[bytes]) -> bytes:
    """Return the first bytes of the capture, with all of its header."""
    head = b""
    for piece in pieces:
        head += piece
        if b"\n" in piece or len(head) > _HEADER:
            break
    if not head.startswith(MAGIC):
        raise CaptureError("is not a capture: its first line is not a capture header")
    return head


def _unpacked(file: BinaryIO, captures: Captures) -> Iterator[bytes]:
    """Yield the bytes of the capture in small pieces, whatever their total size."""
    if not _find(file):
        raise _DamagedPageError("it carries no capture")
    unpacker, size = zlib.decompressobj(wbits=31), 0
    for packed in _decoded(file):
        captures.account.advance(len(packed) * 4 // 3)
        if unpacker.eof and packed:
            raise _DamagedPageError("the capture in it is damaged: there is data after its end")
        rest, full = packed, False
        while (rest or full) and not unpacker.eof:
            try:
                piece = unpacker.decompress(rest, _CHUNK)
            except zlib.error:
                raise _DamagedPageError("the capture in it is damaged") from None
            rest, full = unpacker.unconsumed_tail, len(piece) == _CHUNK
            size += len(piece)
            if size > MOST:
                raise _DamagedPageError(f"the capture in it has more than {size_text(MOST)}")
            yield piece
    if unpacker.unused_data:
        raise _DamagedPageError("the capture in it is damaged: there is data after its end")
    if not unpacker.eof:
        raise _DamagedPageError("the capture in it is cut off")


def _decoded(file: BinaryIO) -> Iterator[bytes]:
    """Yield the decoded base64, up to the end of its element."""
    rest, ended = b"", False
    while not ended and (chunk := file.read(_CHUNK)):
        text, closing, _ = chunk.partition(b"<")
        ended = bool(closing)
        rest += b"".join(text.split())
        whole = len(rest) // 4 * 4
        try:
            yield binascii.a2b_base64(rest[:whole], strict_mode=True)
        except binascii.Error:
            raise _DamagedPageError("the capture in it is damaged") from None
        rest = rest[whole:]
    if rest or not ended:
        raise _DamagedPageError(f"the capture in it is {'damaged' if ended else 'cut off'}")
