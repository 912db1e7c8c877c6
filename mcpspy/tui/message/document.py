"""The content of a pane, by screen row: facts about one message, then the message.

A line that is wider than the pane takes several rows; folded lines take none. For each row, two integers identify its
line and the part of the line. They are computed lazily; the text of a row is made when it is drawn. When a line is
folded or unfolded, the rows from that line on are computed again. This module has no screen: it gets a width and
returns pieces of marked text.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from mcpspy.json_values import pointer
from mcpspy.report.words import FOLDS
from mcpspy.tui.message.hexdump import HexDump
from mcpspy.tui.message.pretty import Piece, text_pieces
from mcpspy.tui.message.tree import ALL, Folds, Tree

FORMS = ("tree", "raw", "hex")
"""The forms in which the message itself can be shown."""

_SMALL = 4096  # maximum bytes of a message that is shown fully unfolded
_LEVELS = 4  # levels of a larger message that are unfolded
_STEP = 10  # lines skipped at once
_MADE = 300  # maximum lines whose pieces are cached


class SummaryLine(NamedTuple):
    """A line about a message."""

    pieces: list[Piece]
    opens: str = ""
    """The name of the section that the line opens; sections stay unfolded when another message is shown."""
    inside: bool = False
    """Whether it belongs to the section above it."""
    folded: bool = False
    """Whether the section is folded at first."""


class Text:
    """The lines of any text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def pieces(self, line: int) -> list[Piece]:
        """Return the text of a line."""
        return text_pieces(self._lines[line])


Body = Tree | Text | HexDump


class Document:
    """The rows of one message in a pane of a given width; call `grow` until there are no more."""

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
        """`sections` maps the name of a section to whether it is folded; `size` is the size of the message."""
        self.width = max(width, 1)
        self.folds = folds
        self.body = body
        self.entries = entries
        self._sections = sections
        self._levels = ALL if size <= _SMALL else _LEVELS
        self._made: dict[int, tuple[list[Piece], list[int]]] = {}
        self.restart(0)

    def restart(self, line: int) -> None:
        """Discard the rows from a line on, to compute them again."""
        row = self.row(line) if line else 0
        if not line:
            self._lines, self._parts = array("I"), array("I")  # by row: its line, and the part of that line
        del self._lines[row:], self._parts[row:]
        self._next = line
        self._gap: int | None = None  # a folded line of the tree whose end is not found yet
        self._made.clear()

    def __len__(self) -> int:
        """The number of rows so far."""
        return len(self._lines)

    def grow(self, lines: int) -> bool:
        """Make the rows of up to `lines` more lines. Returns whether there may be more."""
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
        """Return the line in a row; the lines about the message come first."""
        return self._lines[row]

    def row(self, line: int) -> int:
        """Return the first row of a line, or of the last visible line before it."""
        found = bisect_right(self._lines, line)
        return bisect_left(self._lines, self._lines[found - 1]) if found else 0

    def pieces(self, row: int) -> tuple[list[Piece], tuple[int, int]]:
        """Return the text of a row's line, and the first and last column that the row shows; (0, 0) if it shows all."""
        pieces, cuts = self._made_line(self._lines[row])
        part = self._parts[row]
        return pieces, (cuts[part], cuts[part + 1]) if part + 1 < len(cuts) > 2 else (0, 0)

    def is_message(self, row: int) -> bool:
        """Return whether a row belongs to the message itself, and not to the lines about it."""
        return self._lines[row] >= len(self.entries)

    def pointer(self, row: int) -> str:
        """Return the JSON Pointer of the value in a row; for a dump, the offset."""
        at = self._lines[row] - len(self.entries)
        if at < 0 or isinstance(self.body, Text):
            return ""
        return pointer(*self.body.path(at)) if isinstance(self.body, Tree) else f"{self.body.offset(at):#x}"

    def value(self, row: int) -> str | None:
        """Return the original text of the value in a row; None if there is none."""
        at = self._lines[row] - len(self.entries)
        return self.body.value(at) if at >= 0 and isinstance(self.body, Tree) else None

    def is_folded(self, row: int) -> bool | None:
        """Return whether a row is folded; None if it cannot be folded."""
        return self._folded(self._lines[row])

    def fold(self, row: int, *, folded: bool) -> None:
        """Fold or unfold a row."""
        line = self._lines[row]
        at = line - len(self.entries)
        if at < 0:
            self._sections[self.entries[line].opens] = folded
        elif isinstance(self.body, Tree):
            self.folds.say(self.body.path(at), folded=folded)
        self.restart(line if at >= 0 else 0)

    def fold_all(self, *, folded: bool) -> None:
        """Fold all levels of the message except the outermost two, or unfold all."""
        self.folds.say_all(2 if folded else ALL)
        self.restart(0)

    def above(self, row: int) -> int:
        """Return the row where the value in a row begins, or the row that contains it; `row` if there is none."""
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
        """Return the next visible line."""
        if not self._folded(line):
            return line + 1
        at = line - len(self.entries)
        if at < 0:
            following = range(line + 1, len(self.entries))
            return next((n for n in following if not self.entries[n].inside), len(self.entries))
        self._gap = at
        return line + 1

    def _is_in_gap(self, at: int) -> bool:
        """Skip some lines of the folded value that begins on line `at` of the tree. Returns whether it goes on."""
        assert isinstance(self.body, Tree)
        end = self.body.ends_at.get(at)
        if end is None and self.body.grow(_STEP):
            return True
        self._next = len(self.entries) + (len(self.body) if end is None else end + 1)
        self._gap = None
        self._made.pop(at + len(self.entries), None)  # it shows the number of hidden members
        return False

    def _height(self, line: int) -> int:
        at = line - len(self.entries)
        if at >= 0 and isinstance(self.body, Tree):
            most = self.body.width(at)
            if most is not None and most <= self.width and not self.body.opens(at):
                return 1
        return len(self._made_line(line)[1]) - 1

    def _made_line(self, line: int) -> tuple[list[Piece], list[int]]:
        """Return the pieces of a line, and the columns at which it is cut, including its two ends."""
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
            mark = f"{FOLDS[bool(folded)]} " if entry.opens else "  " if entry.inside else ""
            return [(mark, "fold"), *entry.pieces]
        if isinstance(self.body, Tree):
            return self.body.pieces(at, folded=bool(folded))
        return self.body.pieces(at)


def _cuts(text: str, width: int) -> list[int]:
    """Return the columns at which a text is wrapped: after a blank if possible; text with wide characters anywhere."""
    end = cell_len(text)
    cuts = [0]
    while end - cuts[-1] > width:
        least = cuts[-1] + width
        blank = text.rfind(" ", cuts[-1] + width // 2, least) if end == len(text) else -1
        cuts.append(blank + 1 if blank >= 0 else least)
    return [*cuts, end]
