"""The previews of the rows of one capture, each made when its row is first drawn.

A row that is drawn again has the same preview, so previews are cached for as many rows as a person scrolls over.
Decoding some hundred kilobytes takes a millisecond, so a larger message shows its start, undecoded.
"""

from collections.abc import Callable, Iterator

from mcpspy.conversation.model import HttpUnit
from mcpspy.conversation.preview import preview_of_large
from mcpspy.timeline import Row

_DECODED = 1 << 16  # the largest frame that is decoded for its preview, in bytes
_WHOLE = 1 << 20  # the largest record of such a frame: each byte may be escaped
_KEPT = 5000


class Previews:
    """The text that rows show after method and name.

    `read` returns the rows on a line, decoded from about the given number of first bytes; `pieces` yields the bytes of
    the frame on a line, piece by piece.
    """

    def __init__(self, read: Callable[[int, int], list[Row]], pieces: Callable[[int], Iterator[bytes]]) -> None:
        self._read, self._pieces = read, pieces
        self._made: dict[tuple[int, str | None], str] = {}  # by line number and method
        self._heads: dict[int, str] = {}

    def of(self, row: Row) -> str:
        """Return the preview of a message, whose row has no content."""
        n = row.n
        address = (n, row.method)  # the method of a response comes from its request
        if address not in self._made:
            if len(self._made) == _KEPT:
                self._made.clear()
            self._made[address] = self._make(n) if row.size <= _DECODED else self._begin(n)
        return self._made[address]

    def _make(self, n: int) -> str:
        found = self._read(n, _WHOLE)
        return found[0].preview if found else ""

    def _begin(self, n: int) -> str:
        return preview_of_large(next(self._pieces(n), b""))

    def note(self, unit: HttpUnit) -> None:
        """Remember the text of a head that resumes a stream: only the fold knows after which event it resumes."""
        if unit.http.resumes and unit.frame is None:
            self._heads[unit.n] = unit.text

    def head(self, row: Row) -> str:
        """Return the text of a row that is not a message."""
        return self._heads.get(row.n, row.text or "")
