"""The previews of rows of one capture, each made when its row is first drawn.

The theory. A row that is drawn again shows the same words, so they are kept for as many rows as anybody scrolls over.
Decoding takes a millisecond for some hundred kilobytes, so a larger message shows how it begins, undecoded.
"""

from collections.abc import Callable, Iterator

from mcpspy.conversation.columns import Known
from mcpspy.conversation.model import HttpUnit
from mcpspy.conversation.preview import preview_of_large
from mcpspy.timeline import Row

_DECODED = 1 << 16  # bytes of a frame that is decoded for its preview
_WHOLE = 1 << 20  # bytes of its record at most: each byte may be escaped there
_KEPT = 5000


class Previews:
    """What rows show beside method and name.

    `read` gives the rows on a line, out of about so many first bytes; `pieces` gives the bytes there, piece by piece.
    """

    def __init__(self, read: Callable[[int, int], list[Row]], pieces: Callable[[int], Iterator[bytes]]) -> None:
        self._read, self._pieces = read, pieces
        self._made: dict[tuple[int, str | None], str] = {}  # by line number and method
        self._heads: dict[int, str] = {}

    def of(self, n: int, known: Known) -> str:
        """The preview of the message on line `n`."""
        address = (n, known.method)  # that of a response comes with its request
        if address not in self._made:
            if len(self._made) == _KEPT:
                self._made.clear()
            self._made[address] = self._make(n) if known.size <= _DECODED else self._begin(n)
        return self._made[address]

    def _make(self, n: int) -> str:
        found = self._read(n, _WHOLE)
        return found[0].preview if found else ""

    def _begin(self, n: int) -> str:
        return preview_of_large(next(self._pieces(n), b""))

    def note(self, unit: HttpUnit) -> None:
        """Remember the text of a head that resumes a stream: which event that is after, only the fold knows."""
        if unit.http.resumes and unit.frame is None:
            self._heads[unit.n] = unit.text

    def head(self, row: Row) -> str:
        """The text of a row that is no message."""
        return self._heads.get(row.n, row.text or "")
