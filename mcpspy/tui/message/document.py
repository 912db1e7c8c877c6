"""What a pane says of one message, row by row of the screen: what is known of it, then the message.

A line that is wider than the pane takes several rows; what is folded takes none. Two integers per row say which line is
in it, and are computed as far as they are needed; its text is made when it is drawn. Folding makes the rows anew from
that line on. It knows no screen: a width comes in, pieces of marked text come out.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from mcpspy.json_values import pointer
from mcpspy.tui.message.hexdump import HexDump
from mcpspy.tui.message.pretty import Piece, text_pieces
from mcpspy.tui.message.tree import ALL, Folds, Tree

FORMS = ("tree", "raw", "hex")
"""How the message itself can be shown."""

_SMALL = 4096  # bytes of a message that is shown unfolded
_LEVELS = 4  # that of a larger one are
_STEP = 10  # lines that are passed over at once
_MADE = 300  # lines whose pieces are kept


class SummaryLine(NamedTuple):
    """A line about a message."""

    pieces: list[Piece]
    opens: str = ""
    """The name under which the lines below it fold; whoever has unfolded it wants to see it of the next message too."""
    inside: bool = False
    """It belongs to the last one that opens."""
    folded: bool = False
    """Of one that opens: it is folded until somebody unfolds it."""


class Text:
    """The lines of any text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def __len__(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def pieces(self, line: int) -> list[Piece]:
        """The text of a line."""
        return text_pieces(self._lines[line])


Body = Tree | Text | HexDump


class Document:
    """The rows of one message in a pane of some width; `grow` until there are no more."""

    def __init__(
        self,
        entries: Sequence[SummaryLine],
        body: Body,
        *,
        size: int,
        width: int,
        folds: Folds,
        sections: dict[str, bool],
    ) -> None:
        """`sections` says which of the entries that open are folded, by name; `size` is that of the message."""
        self.width = max(width, 1)
        self.folds = folds
        self.body = body
        self.entries = entries
        self._sections = sections
        self._levels = ALL if size <= _SMALL else _LEVELS
        self._made: dict[int, tuple[list[Piece], list[int]]] = {}
        self.restart(0)

    def restart(self, line: int) -> None:
        """Make the rows anew from a line on."""
        row = self.row(line) if line else 0
        if not line:
            self._lines, self._parts = array("I"), array("I")  # of each row: its line, and which part of that
        del self._lines[row:], self._parts[row:]
        self._next = line
        self._gap: int | None = None  # a line of the tree that is folded and whose end has not been found yet
        self._made.clear()

    def __len__(self) -> int:
        """How many rows there are so far."""
        return len(self._lines)

    def grow(self, lines: int) -> bool:
        """Make the rows of so many lines more; tells whether there may be others."""
        for _ in range(lines):
            if self._gap is not None and self._is_in_gap(self._gap):
                continue
            if self._next >= self._count() and not (isinstance(self.body, Tree) and self.body.grow(lines)):
                return False
            line, self._next = self._next, self._after(self._next)
            height = self._height(line)
            self._lines.extend([line] * height)
            self._parts.extend(range(height))
        return True

    def line(self, row: int) -> int:
        """The line in a row: the lines about the message come first."""
        return self._lines[row]

    def row(self, line: int) -> int:
        """The first row of a line, or of the last one before it that is not folded away."""
        found = bisect_right(self._lines, line)
        return bisect_left(self._lines, self._lines[found - 1]) if found else 0

    def pieces(self, row: int) -> tuple[list[Piece], tuple[int, int]]:
        """The text of a row's line, and the first and last column that the row shows; 0 and 0 for all of it."""
        pieces, cuts = self._made_line(self._lines[row])
        part = self._parts[row]
        return pieces, (cuts[part], cuts[part + 1]) if part + 1 < len(cuts) > 2 else (0, 0)

    def is_message(self, row: int) -> bool:
        """Whether a row is of the message, not about it."""
        return self._lines[row] >= len(self.entries)

    def pointer(self, row: int) -> str:
        """The JSON Pointer of the value in a row; of a dump the offset."""
        at = self._lines[row] - len(self.entries)
        if at < 0 or isinstance(self.body, Text):
            return ""
        return pointer(*self.body.path(at)) if isinstance(self.body, Tree) else f"{self.body.offset(at):#x}"

    def value(self, row: int) -> str | None:
        """The value in a row as it was written; None where there is none."""
        at = self._lines[row] - len(self.entries)
        return self.body.value(at) if at >= 0 and isinstance(self.body, Tree) else None

    def is_folded(self, row: int) -> bool | None:
        """Whether what a row opens is folded; None where it opens nothing."""
        return self._folded(self._lines[row])

    def fold(self, row: int, *, folded: bool) -> None:
        """Fold or unfold what a row opens."""
        line = self._lines[row]
        at = line - len(self.entries)
        if at < 0:
            self._sections[self.entries[line].opens] = folded
        elif isinstance(self.body, Tree):
            self.folds.say(self.body.path(at), folded=folded)
        self.restart(line if at >= 0 else 0)

    def fold_all(self, *, folded: bool) -> None:
        """Fold all but the outermost levels of the message, or unfold all of them."""
        self.folds.say_all(2 if folded else ALL)
        self.restart(0)

    def above(self, row: int) -> int:
        """The row that opens what the value in a row stands in, or where its own value begins; itself if none."""
        line = self._lines[row]
        at = line - len(self.entries)
        if at < 0:
            opening = [n for n in range(line + 1) if self.entries[n].opens]
            return self.row(opening[-1]) if opening and self.entries[line].inside else row
        if not isinstance(self.body, Tree):
            return row
        head = self.body.head(at)
        parent = head if head != at else self.body.parent(at)
        return row if parent is None else self.row(parent + len(self.entries))

    def _count(self) -> int:
        return len(self.entries) + len(self.body)

    def _folded(self, line: int) -> bool | None:
        at = line - len(self.entries)
        if at < 0:
            entry = self.entries[line]
            return self._sections.get(entry.opens, entry.folded) if entry.opens else None
        if not isinstance(self.body, Tree) or not self.body.opens(at):
            return None
        return self.folds.folded(self.body, at, self._levels)

    def _after(self, line: int) -> int:
        """The next line that is seen."""
        if not self._folded(line):
            return line + 1
        at = line - len(self.entries)
        if at < 0:
            following = range(line + 1, len(self.entries))
            return next((n for n in following if not self.entries[n].inside), len(self.entries))
        self._gap = at
        return line + 1

    def _is_in_gap(self, at: int) -> bool:
        """Go on to the end of what the line `at` of the tree opens, some lines at a time."""
        assert isinstance(self.body, Tree)
        end = self.body.ends_at.get(at)
        if end is None and self.body.grow(_STEP):
            return True
        self._next = len(self.entries) + (len(self.body) if end is None else end + 1)
        self._gap = None
        self._made.pop(at + len(self.entries), None)  # it says how many members are hidden
        return False

    def _height(self, line: int) -> int:
        at = line - len(self.entries)
        if at >= 0 and isinstance(self.body, Tree):
            most = self.body.width(at)
            if most is not None and most <= self.width and not self.body.opens(at):
                return 1
        return len(self._made_line(line)[1]) - 1

    def _made_line(self, line: int) -> tuple[list[Piece], list[int]]:
        """The pieces of a line, and the columns at which it is cut, its two ends included."""
        known = self._made.get(line)
        if known is None:
            if len(self._made) >= _MADE:
                self._made.clear()
            made = self._make(line)
            known = self._made[line] = made, _cuts("".join(text for text, _ in made), self.width)
        return known

    def _make(self, line: int) -> list[Piece]:
        at = line - len(self.entries)
        folded = self._folded(line)
        if at < 0:
            entry = self.entries[line]
            mark = ("▸ " if folded else "▾ ") if entry.opens else "  " if entry.inside else ""
            return [(mark, "fold"), *entry.pieces]
        if isinstance(self.body, Tree):
            return self.body.pieces(at, folded=bool(folded))
        return self.body.pieces(at)


def _cuts(text: str, width: int) -> list[int]:
    """The columns at which a text is cut to fit: after a blank where there is one, text of wide characters anywhere."""
    end = cell_len(text)
    cuts = [0]
    while end - cuts[-1] > width:
        least = cuts[-1] + width
        blank = text.rfind(" ", cuts[-1] + width // 2, least) if end == len(text) else -1
        cuts.append(blank + 1 if blank >= 0 else least)
    return [*cuts, end]
