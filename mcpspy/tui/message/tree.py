"""The JSON of a message as lines that can be folded, each with its path in the message.

A line is stored as a few integers, in columns: its position in the text, its depth, and the line that opens its object
or array. Lines are made only as far as they are needed. The path and the JSON Pointer of a line are computed on
request, from the lines around it. Folds apply to all messages of one method: if you fold `_meta` in one call, it is
folded in the next call too.
"""

import json
import re
from array import array
from itertools import islice

from mcpspy.json_values import Path
from mcpspy.report.words import FOLDS
from mcpspy.text import plural
from mcpspy.tui.message.pretty import Piece, json_pieces, spans

ALL = 1 << 30
"""A number of levels that is larger than in any message."""

_DEEPEST = 40  # maximum levels of indentation
_NAME = re.compile(r'\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:', re.DOTALL)
_NO_LINE = -1


class Folds:
    """The folded values in the messages of one method."""

    def __init__(self) -> None:
        self.levels: int | None = None
        """The number of unfolded levels; None until the user sets it."""
        self._said: dict[Path, bool] = {}

    def folded(self, tree: "Tree", line: int, levels: int) -> bool:
        """Return whether a line is folded; `levels` is the number of unfolded levels if the user has set none."""
        said = self._said.get(tree.path(line)) if self._said else None
        if said is not None:
            return said
        return tree.depths[line] >= (levels if self.levels is None else self.levels)

    def say(self, path: Path, *, folded: bool) -> None:
        """Fold or unfold the value at a path."""
        self._said[path] = folded

    def say_all(self, levels: int) -> None:
        """Unfold this many levels, and forget what was folded or unfolded one by one."""
        self.levels = levels
        self._said.clear()


class Tree:
    """The lines of JSON text, counted from 0; call `grow` until there are no more."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depths = array("i")
        self.ends_at: dict[int, int] = {}
        """Line that opens an object or array -> line that closes it, once that is made."""
        self._spans = spans(text)
        self._starts, self._ends = array("I"), array("I")
        self._heads = array("i")  # the line in which its value begins: itself, or for a closing line the opening one
        self._parents = array("i")  # the line that opens its object or array
        self._places = array("I")  # its index in that object or array
        self._members: dict[int, int] = {}  # opening line -> number of its members so far
        self._open: list[int] = []

    def __len__(self) -> int:
        """The number of lines so far."""
        return len(self._starts)

    def grow(self, lines: int) -> bool:
        """Make up to `lines` more lines. Returns whether there were any."""
        before = len(self)
        for start, end, depth, opens, closes in islice(self._spans, lines):
            line = len(self._starts)
            head = line
            if closes and self._open:
                head = self._open.pop()
                self.ends_at[head] = line
            parent = self._open[-1] if self._open else _NO_LINE
            place = self._members.get(parent, 0)
            if head == line and start < end and parent != _NO_LINE:
                self._members[parent] = place + 1
            self._starts.append(start)
            self._ends.append(end)
            self.depths.append(depth)
            self._heads.append(head)
            self._parents.append(parent)
            self._places.append(place)
            if opens:
                self._open.append(line)
                self._members[line] = 0
        return len(self) > before

    def opens(self, line: int) -> bool:
        """Return whether a line opens an object or array whose members follow."""
        return line in self._members

    def head(self, line: int) -> int:
        """Return the line in which the value of a line begins."""
        return self._heads[line]

    def parent(self, line: int) -> int | None:
        """Return the line that opens the object or array around the value on a line; None if there is none."""
        parent = self._parents[self._heads[line]]
        return None if parent == _NO_LINE else parent

    def path(self, line: int) -> Path:
        """Return the path of the value on a line."""
        steps: list[str | int] = []
        line = self._heads[line]
        while self._parents[line] != _NO_LINE:
            steps.append(self._step(line))
            line = self._parents[line]
        return tuple(reversed(steps))

    def value(self, line: int) -> str:
        """Return the original text of the value that a line belongs to, without its name."""
        head = self._heads[line]
        end = self._ends[head]
        if self.opens(head):
            end = self._ends[self.ends_at[head]] if head in self.ends_at else len(self.text)
        name = _NAME.match(self.text, self._starts[head], end) if self._parents[head] != _NO_LINE else None
        return self.text[name.end() if name else self._starts[head] : end].strip().removesuffix(",")

    def width(self, line: int) -> int | None:
        """Return the maximum columns of a line, if they are known without making its pieces."""
        start, end = self._starts[line], self._ends[line]
        if end - start > 200:  # it will be wrapped
            return None
        text = self.text[start:end]
        told = text.isascii() and text.isprintable()
        return _indent(self.depths[line]) + len(text) + text.count(":") if told else None

    def pieces(self, line: int, *, folded: bool) -> list[Piece]:
        """Return the text of a line; for a folded line also the number of hidden members."""
        indent = " " * _indent(self.depths[line])
        opens = self.opens(line)
        if opens and indent:
            indent = f"{indent[:-2]}{FOLDS[folded]} "
        found = [(indent, "fold"), *json_pieces(self.text[self._starts[line] : self._ends[line]])]
        if opens and folded:
            bracket = "}" if self.text[self._ends[line] - 1] == "{" else "]"
            hidden = plural(self._members[line], "member" if bracket == "}" else "element")
            found += [("…", "fold"), (bracket, "punctuation"), (f" {hidden}", "label")]
        return found

    def _step(self, line: int) -> str | int:
        """Return the name of a member or the index of an element."""
        name = _NAME.match(self.text, self._starts[line], self._ends[line])
        if name is None or self.text[self._ends[self._parents[line]] - 1] != "{":
            return self._places[line]
        try:
            return str(json.loads(name[1], strict=False))
        except ValueError:
            return name[1]


def _indent(depth: int) -> int:
    return 2 * max(0, min(depth, _DEEPEST))
