"""The content of a pane, by screen row: facts about one message, then the message in one of its forms.

A line that is wider than the pane takes several rows; folded lines take none. For each row, two integers identify its
line and the part of the line. They are computed lazily; the text of a row is made when it is drawn. When a line is
folded or unfolded, the rows from that line on are computed again. This module has no screen: it gets a width and
returns pieces of marked text. Each form is a `MessageForm`. The tree, the raw text and the bytes are here;
`mcpspy.tui.message.content` has the form that people read.

The original JSON text is split into tokens, not decoded and encoded again: 1.10 stays 1.10, a duplicate key stays
duplicate, and text that is not JSON is shown unchanged. Only the escapes of printable characters are decoded. Captured
text is untrusted, so every returned piece has been passed through `printable`. The starts of lines are computed lazily,
and the text of a line when it is drawn, because most lines of a large message are never looked at.

In a tree, each line has its path in the message. A line is stored as a few integers, in columns: its position in the
text, its depth, and the line that opens its object or array. Lines are made only as far as they are needed. The path
and the JSON Pointer of a line are computed on request, from the lines around it. Folds apply to all messages of one
method: if you fold `_meta` in one call, it is folded in the next call too.
"""

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from rich.cells import cell_len, split_graphemes

from mcpspy.json_values import Path, pointer
from mcpspy.reading.content import parse
from mcpspy.reading.media import media_of
from mcpspy.report.words import FOLDS
from mcpspy.text import plural, printable

Piece = tuple[str, str]
"""A text and its kind: key, string, number, literal, punctuation, plain, label, warning, …"""

_CLIP = 4000  # maximum characters of one string or line; more is of no use on a screen
# An unterminated string extends to the end of the text, because the text of a large frame is truncated.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],:]|[^\s{}\[\],:"]+|\s+', re.DOTALL)
_NUMBER = re.compile(r"-?\d")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = re.compile(rf"(?:{_ESCAPE.pattern})+", re.DOTALL)
_LONGEST_ESCAPE = 6  # characters of one


class Span(NamedTuple):
    """One line of JSON: its beginning and end in the text."""

    start: int
    end: int
    depth: int
    """The number of objects and arrays around it; below 0 after more closing than opening brackets."""
    opens: bool
    """Whether its last token opens an object or array whose members follow."""
    closes: bool
    """Whether its first token closes an object or array."""


def spans(text: str) -> Iterator[Span]:
    """Yield the lines of JSON text, one member or element per line; an empty object or array stays on its line."""
    level = depth = start = end = 0
    opened = closes = False
    for match in _TOKEN.finditer(text):
        mark = text[match.start()]
        if mark.isspace():
            continue
        closing = mark in "]}"
        level -= closing
        if closing != opened:
            yield Span(start, end, depth, opened, closes)
            start, depth, closes = match.start(), level, closing
        elif start == end:
            start = match.start()
        end = match.end()
        opened = mark in "[{"
        level += opened
        if mark == ",":
            yield Span(start, end, depth, False, closes)
            start, depth, closes = end, level, False
    yield Span(start, end, depth, opened, closes)


def json_pieces(text: str) -> list[Piece]:
    """Return the marked text of one line of JSON."""
    words = [match[0] for match in _TOKEN.finditer(text) if not match[0].isspace()]
    return [_piece(word, following) for word, following in zip_longest(words, words[1:])]


def text_pieces(line: str) -> list[Piece]:
    """Return the marked text of one line of any text."""
    return [(_clip(line), "plain")]


def _piece(word: str, following: str | None) -> Piece:
    if word == ":":
        return ": ", "punctuation"
    if len(word) == 1 and word in "[]{},":
        return word, "punctuation"
    if word.startswith('"'):
        return _clip(_without_escapes(word)), "key" if following == ":" else "string"
    return _clip(word), "number" if _NUMBER.match(word) else "literal"


def _without_escapes(word: str) -> str:
    """Return a JSON string with the escapes of printable characters decoded; the others stay as they are."""
    if "\\" not in word or len(word) > _LONGEST_ESCAPE * _CLIP:
        return word
    return _ESCAPES.sub(lambda found: _decoded(found[0]) or _ESCAPE.sub(_one_decoded, found[0]), word)


def _one_decoded(escape: re.Match[str]) -> str:
    return _decoded(escape[0]) or escape[0]


def _decoded(escapes: str) -> str:
    """Return the characters of some escapes; empty if one of them has to stay an escape."""
    try:
        text = str(json.loads(f'"{escapes}"'))
    except ValueError:  # no escape of JSON
        return ""
    stays = any(it in '"\\' or it.isspace() for it in text)
    return text if not stays and printable(text, _LONGEST_ESCAPE * len(text)) == text else ""


def _clip(text: str) -> str:
    lost = len(text) - _CLIP
    return printable(text, _CLIP) if lost <= 0 else f"{printable(text[:_CLIP], _CLIP)} (+{lost:,} characters)"


class MessageForm:
    """The lines of a message in one form, counted from 0; call `grow` until there are no more.

    A line may open a value, whose other lines follow it and can be folded. The methods here are those of a form without
    folds and places.
    """

    def __len__(self) -> int:
        """The number of lines so far."""
        raise NotImplementedError

    def grow(self, lines: int) -> bool:  # noqa: ARG002 (all lines are made)
        """Make up to `lines` more lines. Returns whether there were any."""
        return False

    def pieces(self, line: int, *, folded: bool = False) -> list[Piece]:
        """Return the text of a line, or what a folded line shows."""
        raise NotImplementedError

    def width(self, line: int) -> int | None:  # noqa: ARG002
        """Return the maximum columns of a line, if they are known without making its pieces."""
        return None

    def indent(self, line: int) -> int:  # noqa: ARG002
        """Return the columns by which a line continues on its next row."""
        return 0

    def searched(self, line: int) -> str:
        """Return the text of a line in which searches look: what is on the screen."""
        return "".join(text for text, _ in self.pieces(line))

    def opens(self, line: int) -> bool:  # noqa: ARG002
        """Return whether a line opens a value whose other lines follow."""
        return False

    def folded(self, line: int) -> bool:  # noqa: ARG002
        """Return whether a line that opens a value is folded at first."""
        return False

    def depth(self, line: int) -> int:  # noqa: ARG002
        """Return how many objects and arrays of the message are around the value on a line."""
        return 0

    def end(self, line: int) -> int | None:  # noqa: ARG002
        """Return the last line of the value that a line opens; None if it is not made yet."""
        return None

    def above(self, line: int) -> int | None:  # noqa: ARG002
        """Return the line in which the value of a line begins, or that opens the value around it; None if none does."""
        return None

    def path(self, line: int) -> Path:  # noqa: ARG002
        """Return the path of the value on a line."""
        return ()

    def place(self, line: int) -> str:  # noqa: ARG002
        """Return where a line is in the message, for people."""
        return ""

    def value(self, line: int) -> str | None:  # noqa: ARG002
        """Return the JSON text of the value on a line; None if there is none."""
        return None

    def decoded(self, line: int) -> Any:
        """Return the value on a line; None if it is not JSON."""
        text = self.value(line)
        try:
            return None if text is None else parse(text)
        except ValueError:
            return None

    def media(self, line: int) -> str | None:
        """Return the base64 text of the image, sound or document on a line; None if there is none."""
        value = None if self.opens(line) else self.decoded(line)
        media = media_of(value) if isinstance(value, str) and len(value) >= _LEAST_MEDIA else None
        return value if media and media.types else None


_HEX_PER_LINE = ((16, 77), (8, 44))  # bytes per line, and the columns that this needs
_FEWEST_HEX = 4


class HexDump(MessageForm):
    """The lines of a dump in a pane of `width` columns."""

    def __init__(self, raw: bytes, width: int) -> None:
        self._raw = raw
        self._per = next((per for per, columns in _HEX_PER_LINE if width >= columns), _FEWEST_HEX)

    def __len__(self) -> int:
        """The number of lines."""
        return (len(self._raw) + self._per - 1) // self._per

    def pieces(self, line: int, *, folded: bool = False) -> list[Piece]:  # noqa: ARG002 (it has no folds)
        """Return offset, digits and characters of a line; bytes that are not printable ASCII are shown as dots."""
        start = line * self._per
        part = self._raw[start : start + self._per]
        digits = f"{part[:8].hex(' ')}  {part[8:].hex(' ')}".rstrip() if self._per > 8 else part.hex(" ")
        width = 3 * self._per + (self._per > 8)
        seen = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        return [(f"{self.offset(line):08x}  ", "label"), (digits.ljust(width), "number"), (f" {seen}", "string")]

    def searched(self, line: int) -> str:  # noqa: ARG002
        """Return nothing: the digits of a dump are not text of the message."""
        return ""

    def offset(self, line: int) -> int:
        """Return the offset of the first byte of a line."""
        return line * self._per

    def place(self, line: int) -> str:
        """Return the offset of a line."""
        return f"{self.offset(line):#x}"


ALL = 1 << 30
"""A number of levels that is larger than in any message."""

_DEEPEST_INDENT = 40  # maximum levels of indentation
_MEMBER_NAME = re.compile(r'\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:', re.DOTALL)
_LEAST_MEDIA = 64  # characters of a string that is taken for base64 by its bytes alone
_NO_LINE = -1


class Folds:
    """The folded values in the messages of one method."""

    def __init__(self) -> None:
        self.levels: int | None = None
        """The number of unfolded levels; None until the user sets it."""
        self._said: dict[Path, bool] = {}

    def folded(self, body: MessageForm, line: int) -> bool:
        """Return whether a line is folded that opens a value."""
        said = self._said.get(body.path(line)) if self._said else None
        if said is not None:
            return said
        return body.folded(line) if self.levels is None else body.depth(line) >= self.levels

    def say(self, path: Path, *, folded: bool) -> None:
        """Fold or unfold the value at a path."""
        self._said[path] = folded

    def say_all(self, levels: int) -> None:
        """Unfold this many levels, and forget what was folded or unfolded one by one."""
        self.levels = levels
        self._said.clear()


_UNFOLDED_SIZE = 4096  # maximum characters of a message that is shown fully unfolded
_UNFOLDED_LEVELS = 4  # levels of a larger message that are unfolded


class Tree(MessageForm):
    """The lines of JSON text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._levels = ALL if len(text) <= _UNFOLDED_SIZE else _UNFOLDED_LEVELS
        self._depths = array("i")
        self._ends_at: dict[int, int] = {}  # line that opens an object or array -> line that closes it, once made
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
                self._ends_at[head] = line
            parent = self._open[-1] if self._open else _NO_LINE
            place = self._members.get(parent, 0)
            if head == line and start < end and parent != _NO_LINE:
                self._members[parent] = place + 1
            self._starts.append(start)
            self._ends.append(end)
            self._depths.append(depth)
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

    def folded(self, line: int) -> bool:
        """Return whether a line that opens a value is folded at first: the inner ones of a large message are."""
        return self._depths[line] >= self._levels

    def depth(self, line: int) -> int:
        """Return how many objects and arrays are around the value on a line."""
        return self._depths[line]

    def end(self, line: int) -> int | None:
        """Return the line that closes what a line opens; None if it is not made yet."""
        return self._ends_at.get(line)

    def above(self, line: int) -> int | None:
        """Return the line in which the value of a line begins, or that opens the value around it; None if none does."""
        head = self._heads[line]
        parent = head if head != line else self._parents[head]
        return None if parent == _NO_LINE else parent

    def path(self, line: int) -> Path:
        """Return the path of the value on a line."""
        steps: list[str | int] = []
        line = self._heads[line]
        while self._parents[line] != _NO_LINE:
            steps.append(self._step(line))
            line = self._parents[line]
        return tuple(reversed(steps))

    def place(self, line: int) -> str:
        """Return the JSON Pointer of the value on a line."""
        return pointer(*self.path(line))

    def value(self, line: int) -> str:
        """Return the original text of the value that a line belongs to, without its name."""
        head = self._heads[line]
        end = self._ends[head]
        if self.opens(head):
            end = self._ends[self._ends_at[head]] if head in self._ends_at else len(self.text)
        name = _MEMBER_NAME.match(self.text, self._starts[head], end) if self._parents[head] != _NO_LINE else None
        return self.text[name.end() if name else self._starts[head] : end].strip().removesuffix(",")

    def width(self, line: int) -> int | None:
        """Return the maximum columns of a line, if they are known without making its pieces."""
        start, end = self._starts[line], self._ends[line]
        if end - start > 200:  # it will be wrapped
            return None
        text = self.text[start:end]
        told = text.isascii() and text.isprintable()
        return indented(self._depths[line]) + len(text) + text.count(":") if told else None

    def pieces(self, line: int, *, folded: bool = False) -> list[Piece]:
        """Return the text of a line; for a folded line also the number of hidden members."""
        indent = " " * indented(self._depths[line])
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
        name = _MEMBER_NAME.match(self.text, self._starts[line], self._ends[line])
        if name is None or self.text[self._ends[self._parents[line]] - 1] != "{":
            return self._places[line]
        try:
            return str(json.loads(name[1], strict=False))
        except ValueError:
            return name[1]


def indented(depth: int) -> int:
    """Return the columns of the indentation of a depth."""
    return 2 * max(0, min(depth, _DEEPEST_INDENT))


_SKIPPED = 10  # lines skipped at once
_SEARCHED = 10  # lines searched before there may be a pause
_CACHED = 300  # maximum lines whose pieces are cached


class SummaryLine(NamedTuple):
    """A line about a message."""

    pieces: list[Piece]
    opens: str = ""
    """The name of the section that the line opens; sections stay unfolded when another message is shown."""
    inside: bool = False
    """Whether it belongs to the section above it."""
    folded: bool = False
    """Whether the section is folded at first."""


class Text(MessageForm):
    """The lines of any text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def pieces(self, line: int, *, folded: bool = False) -> list[Piece]:  # noqa: ARG002 (it has no folds)
        """Return the text of a line."""
        return text_pieces(self._lines[line])


class MatchPlace(NamedTuple):
    """A part of the text of one line of a message."""

    line: int
    start: int
    end: int


Fits = Callable[[str], list[tuple[int, int]]]
"""A function that returns the parts of a line that are searched for, in their order."""


class Document:
    """The rows of one message in a pane of a given width; call `grow` until there are no more."""

    def __init__(
        self,
        entries: Sequence[SummaryLine],
        body: MessageForm,
        *,
        width: int,
        folds: Folds,
        sections: dict[str, bool],
    ) -> None:
        """`sections` maps the name of a section to whether it is folded."""
        self.width = max(width, 1)
        self.folds = folds
        self.body = body
        self.entries = entries
        self._sections = sections
        self.found: MatchPlace | None = None
        """What a search has found last; it is highlighted."""
        self.complete = False
        """Whether all rows are made."""
        self._made: dict[int, tuple[list[Piece], list[int]]] = {}
        self.restart(0)

    def restart(self, line: int) -> None:
        """Discard the rows from a line on, to compute them again."""
        row = self.row(line) if line else 0
        if not line:
            self._lines, self._parts = array("I"), array("I")  # by row: its line, and the part of that line
        del self._lines[row:], self._parts[row:]
        self._next, self.complete = line, False
        self._gap: int | None = None  # a folded line of the message whose end is not found yet
        self._made.clear()

    def __len__(self) -> int:
        """The number of rows so far."""
        return len(self._lines)

    def grow(self, lines: int) -> bool:
        """Make the rows of up to `lines` more lines. Returns whether there may be more."""
        for _ in range(lines):
            if self._gap is not None and self._is_in_gap(self._gap):
                continue
            if self._next >= self._count() and not self.body.grow(lines):
                self.complete = True
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

    def pieces(self, row: int) -> list[Piece]:
        """Return the text of a row."""
        line, part, found = self._lines[row], self._parts[row], self.found
        pieces, cuts = self._made_line(line)
        if found and found.line == line - len(self.entries):
            start, end = found.start, found.end
            word = "".join(text for text, _ in _between(pieces, start, end))
            pieces = [*_between(pieces, 0, start), (word, "match"), *_between(pieces, end, cuts[-1])]
        if len(cuts) == 2:
            return pieces
        shown = list(_between(pieces, cuts[part], cuts[part + 1]))
        return [(" " * self._hang(line), "fold"), *shown] if part else shown

    def is_message(self, row: int) -> bool:
        """Return whether a row belongs to the message itself, and not to the lines about it."""
        return self._lines[row] >= len(self.entries)

    def at(self, row: int) -> int | None:
        """Return the line of the message in a row; None for a line about the message."""
        at = self._lines[row] - len(self.entries)
        return at if at >= 0 else None

    def place(self, row: int) -> str:
        """Return where a row is in the message, for people; empty for a line about the message."""
        at = self.at(row)
        return "" if at is None else self.body.place(at)

    def is_folded(self, row: int) -> bool | None:
        """Return whether a row is folded; None if it cannot be folded."""
        return self._folded(self._lines[row])

    def fold(self, row: int, *, folded: bool) -> None:
        """Fold or unfold a row."""
        line = self._lines[row]
        at = line - len(self.entries)
        if at < 0:
            self._sections[self.entries[line].opens] = folded
        else:
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
        above = self.body.above(at)
        return row if above is None else self.row(above + len(self.entries))

    def search(self, fits: Fits, step: int) -> Iterator[MatchPlace | None]:
        """Yield the next place after the last one that was found, or the previous one (`step` -1).

        None is yielded after a few lines, where there may be a pause.
        """
        body, found = self.body, self.found
        if step < 0 and not found:
            while body.grow(_SEARCHED):
                yield None
        line = found.line if found else 0 if step > 0 else len(body) - 1
        looked = 0
        while line >= 0 and (line < len(body) or body.grow(_SEARCHED)):
            for start, end in fits(body.searched(line))[::step]:
                if not found or (line - found.line or start - found.start) * step > 0:
                    yield MatchPlace(line, start, end)
            line += step
            looked += 1
            if looked % _SEARCHED == 0:
                yield None

    def reveal(self, place: MatchPlace) -> None:
        """Unfold all around a place, and highlight it; its rows may have to be made."""
        body, line, top = self.body, place.line, None
        while (above := body.above(line)) is not None:
            if self.folds.folded(body, above):
                self.folds.say(body.path(above), folded=False)
                top = above
            line = above
        self.found = place
        if top is not None:
            self.restart(top + len(self.entries))

    def row_of(self, place: MatchPlace) -> int | None:
        """Return the row where a place begins; None if it is not made yet."""
        line = place.line + len(self.entries)
        if not self.complete and self._next <= line:
            return None
        _, cuts = self._made_line(line)
        return self.row(line) + bisect_right(cuts, place.start, 1, len(cuts) - 1) - 1

    def _count(self) -> int:
        return len(self.entries) + len(self.body)

    def _folded(self, line: int) -> bool | None:
        at = line - len(self.entries)
        if at < 0:
            entry = self.entries[line]
            return self._sections.get(entry.opens, entry.folded) if entry.opens else None
        return self.folds.folded(self.body, at) if self.body.opens(at) else None

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
        """Skip some lines of the folded value that begins on line `at` of the message. Returns whether it goes on."""
        end = self.body.end(at)
        if end is None and self.body.grow(_SKIPPED):
            return True
        self._next = len(self.entries) + (len(self.body) if end is None else end + 1)
        self._gap = None
        self._made.pop(at + len(self.entries), None)  # it shows the number of hidden members
        return False

    def _height(self, line: int) -> int:
        at = line - len(self.entries)
        most = self.body.width(at) if at >= 0 and not self.body.opens(at) else None
        return 1 if most is not None and most <= self.width else len(self._made_line(line)[1]) - 1

    def _hang(self, line: int) -> int:
        """Return the columns by which a line continues on its next row."""
        at = line - len(self.entries)
        return min(self.body.indent(at), self.width // 2) if at >= 0 else 0

    def _made_line(self, line: int) -> tuple[list[Piece], list[int]]:
        """Return the pieces of a line, and the positions at which it is cut, including its two ends."""
        known = self._made.get(line)
        if known is None:
            if len(self._made) >= _CACHED:
                self._made.clear()
            made = self._make(line)
            cuts = _cuts("".join(text for text, _ in made), self.width, self.width - self._hang(line))
            known = self._made[line] = made, cuts
        return known

    def _make(self, line: int) -> list[Piece]:
        at = line - len(self.entries)
        folded = bool(self._folded(line))
        if at < 0:
            entry = self.entries[line]
            mark = f"{FOLDS[folded]} " if entry.opens else "  " if entry.inside else ""
            return [(mark, "fold"), *entry.pieces]
        return self.body.pieces(at, folded=folded)


def _cuts(text: str, width: int, rest: int) -> list[int]:
    """Return the positions at which a text is wrapped: after a blank if possible, never within what is one picture.

    Its first row has `width` columns, the others have `rest`.
    """
    cuts = [0]
    if cell_len(text) > width:
        used = blank = 0
        graphemes = ((at, at + 1, 1) for at in range(len(text))) if text.isascii() else split_graphemes(text)[0]
        for start, end, columns in graphemes:
            if used + columns > width and start > cuts[-1]:
                cuts.append(blank if blank > cuts[-1] + width // 2 else start)
                used, width = cell_len(text[cuts[-1] : start]), rest
            used += columns
            blank = end if text[start] == " " else blank
    return [*cuts, len(text)]


def _between(pieces: list[Piece], start: int, end: int) -> Iterator[Piece]:
    """Yield what of some pieces is between two positions in their text."""
    at = 0
    for text, kind in pieces:
        part = text[max(start - at, 0) : max(end - at, 0)]
        if part:
            yield part, kind
        at += len(text)
