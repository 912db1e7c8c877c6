"""The form of a message that people read: the lines of `mcpspy.reading.content`, drawn and folded.

Lines are made only as far as they are needed, and each is made safe for the screen when it is drawn. A value of the
message has several lines: the line that opens it, and the lines inside. Text that is saved, opened or copied is decoded
from the message, not taken from the screen.
"""

import json
from array import array
from itertools import islice
from typing import Any

from mcpspy.json_values import Number, Path, pointer
from mcpspy.reading.content import ContentLine, content_lines, parse, pointed, value_of
from mcpspy.reading.media import media_of
from mcpspy.report.words import FOLDS
from mcpspy.text import plural, printable, printable_whole
from mcpspy.tui.message.document import MessageForm, Piece, indented

_ENVELOPE_LEVELS = 2  # objects around the members that are shown without indentation: the message, and its result
_LABEL = 200  # maximum characters of a label
_PREVIEW = 60  # characters of a folded text
_KINDS = {"text": "plain", "string": "plain", "media": "literal", "note": "label"}  # other kinds have their name
_NO_LINE = -1


class Content(MessageForm):
    """The lines of a decoded message."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self._source = content_lines(message)
        self._lines: list[ContentLine] = []
        self._openers = array("i")  # for each line, the line that opens what it is in
        self._open: list[int] = []
        self._ends: dict[int, int] = {}  # line that opens a value -> its last line, once that is made

    def __len__(self) -> int:
        """The number of lines so far."""
        return len(self._lines)

    def grow(self, lines: int) -> bool:
        """Make up to `lines` more lines. Returns whether there were any."""
        before = len(self)
        for made in islice(self._source, lines):
            self._close(made.depth)
            self._openers.append(self._open[-1] if self._open else _NO_LINE)
            if made.opens:
                self._open.append(len(self))
            self._lines.append(made)
        if len(self) < before + lines:
            self._close(0)
        return len(self) > before

    def _close(self, depth: int) -> None:
        """Note the end of the values that a line of a depth is not in."""
        while self._open and self._lines[self._open[-1]].depth >= depth:
            self._ends[self._open.pop()] = len(self) - 1

    def width(self, line: int) -> int | None:
        """Return the columns of a line of a text, if they are known without making its pieces."""
        it = self._lines[line]
        known = it.kind == "text" and not it.opens and it.text.isascii() and it.text.isprintable()
        return indented(it.depth + 1) + len(it.text) if known else None

    def indent(self, line: int) -> int:
        """Return the columns by which a line continues on its next row."""
        it = self._lines[line]
        return indented(it.depth + 1) + (2 if it.label else 0)

    def opens(self, line: int) -> bool:
        """Return whether a line opens a value whose other lines follow."""
        return self._lines[line].opens

    def folded(self, line: int) -> bool:
        """Return whether a line that opens a value is folded at first."""
        return self._lines[line].folded

    def depth(self, line: int) -> int:
        """Return how many objects and arrays of the message are around the value on a line."""
        return self._lines[line].depth + _ENVELOPE_LEVELS

    def end(self, line: int) -> int | None:
        """Return the last line of the value that a line opens; None if it is not made yet."""
        return self._ends.get(line)

    def above(self, line: int) -> int | None:
        """Return the line that opens the text or the value that a line is in; None if none does."""
        opener = self._openers[line]
        return None if opener == _NO_LINE else opener

    def path(self, line: int) -> Path:
        """Return the path of the value on a line."""
        return self._lines[line].path

    def place(self, line: int) -> str:
        """Return the JSON Pointer of the value on a line; within the JSON of a string, that of the string."""
        return pointer(*pointed(self.path(line)))

    def value(self, line: int) -> str | None:
        """Return the JSON text of the value on a line; None if it is nested too deeply."""
        try:
            return _json(self.decoded(line))
        except RecursionError:
            return None

    def decoded(self, line: int) -> Any:
        """Return the value on a line."""
        return value_of(self._message, self.path(line))

    def media(self, line: int) -> str | None:
        """Return the base64 text of the image, sound or document on a line; None if there is none."""
        return self._lines[line].media or None

    def pieces(self, line: int, *, folded: bool = False) -> list[Piece]:
        """Return the text of a line; for a folded line also how much is hidden."""
        it = self._lines[line]
        found = self._told(it, folded=folded)
        if it.media:
            openable = media_of(it.media)
            how = "⏎ opens it, s saves it" if openable and openable.opened else "s saves it"
            found.append((f"  {how}", "label"))
        elif folded and not it.text:
            found += self._hidden(line)
        return found

    def searched(self, line: int) -> str:
        """Return the text of a line in which searches look: what is on the screen, without hints."""
        return "".join(text for text, _ in self._told(self._lines[line], folded=False))

    def _told(self, it: ContentLine, *, folded: bool) -> list[Piece]:
        """Return the label and the text of a line."""
        mark = f"{FOLDS[folded]} " if it.opens else "  "
        found = [(f"{' ' * indented(it.depth)}{mark}", "fold")]
        if it.label == "-":
            found.append(("- ", "punctuation"))
        elif it.label:
            found += [(printable(it.label, _LABEL), "key"), (": ", "punctuation")]
        text = it.text.expandtabs()
        return [*found, (printable_whole(text), _KINDS.get(it.kind, it.kind))]

    def _hidden(self, line: int) -> list[Piece]:
        """Return the beginning of a folded text, and how many lines are hidden."""
        end, following = self._ends.get(line), self._lines[line + 1 : line + 2]
        begins = printable(following[0].text, _PREVIEW) if following and self._lines[line].kind == "text" else ""
        many = f" {plural(end - line, 'line')}" if end is not None else ""
        return [(begins, "plain"), ("…" if begins[-1:] != "…" else "", "fold"), (many, "label")]


def content_of(text: str) -> Content | None:
    """Return the lines of a message from its JSON text; None if it is not JSON."""
    try:
        return Content(parse(text))
    except ValueError:
        return None


def _json(value: Any) -> str:
    """Return a decoded value as JSON, with the original digits of its numbers."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(name, ensure_ascii=False)}:{_json(inner)}" for name, inner in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    return json.dumps(value, ensure_ascii=False)
