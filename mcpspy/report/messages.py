"""The content of messages as text below their rows, as `mcpspy show --long` prints it.

Captured text goes through `printable`, line by line. Each line is indented, so no text of a peer looks like a row. A
string that would read as something else (a number, `null`, a note in parentheses) is in quotes.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from mcpspy.reading.content import ContentLine, content_lines, parse
from mcpspy.report.words import coloured
from mcpspy.text import printable, printable_whole, wrapped
from mcpspy.timeline import SPOKEN, Row

LINES = 200
"""Lines of one message that are printed on a terminal."""
REST = f"… cut after {LINES} lines; all of them: mcpspy show --long CAPTURE | less"
_INDENT = 4  # columns
_DEEPEST = 20  # levels of indentation
_LEAST = 20  # columns of a text, at least
_LABEL = 1000  # characters
_TAB = 8  # columns
_NO_STRING = re.compile(
    r"""null|true|false|\{\}|\[\]|-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Infinity)|NaN|\(.*\)|".*"|""", re.DOTALL
)
"""What a line says of a value that is no string, or of what is not shown; and what a string in quotes looks like."""


def message_lines(row: Row, told: str, width: int | None, *, colours: bool = False) -> Iterator[str]:
    """Yield the lines of the content of a row; none if its line `told` has all of it.

    With a `width`, lines are wrapped, and only the first ones are yielded: this is for a terminal.
    """
    yield from _printed(_content(row, told), width, colours=colours)


def frame_lines(raw: bytes, part: int, width: int | None, *, colours: bool = False) -> Iterator[str]:
    """Yield the lines of the content of a frame, or of one message of a batch; otherwise as `message_lines`."""
    yield from _printed(_of_frame(raw, part), width, colours=colours)


def _printed(content: Iterable[ContentLine], width: int | None, *, colours: bool) -> Iterator[str]:
    most = None if width is None else LINES
    lines = _whole(_unfolded(content), most)
    shown = chain.from_iterable(_texts(line, width, colours=colours) for line in lines)
    yield from islice(shown, most)
    if next(shown, None) is not None:
        yield " " * _INDENT + (coloured(REST, "dim") if colours else REST)


def _content(row: Row, told: str) -> Iterator[ContentLine]:
    """Return the lines of the message of a row, or of its bytes if they are not JSON."""
    text = row.raw.decode(errors="replace")
    if row.tail or not text or (row.kind not in SPOKEN and printable(text, len(told)) in told):
        return iter(())
    return _of_frame(row.raw, row.part)


def _of_frame(raw: bytes, part: int) -> Iterator[ContentLine]:
    text = raw.decode(errors="replace")
    try:
        value = parse(text)
    except ValueError:
        return content_lines(text)
    if isinstance(value, list) and part < len(value):
        value = value[part]  # a batch
    return content_lines(value)


def _unfolded(lines: Iterable[ContentLine]) -> Iterator[ContentLine]:
    """Yield the lines that are not within a folded value, and that say something."""
    folded: int | None = None
    for line in lines:
        if folded is not None and line.depth > folded:
            continue
        folded = line.depth if line.folded else None
        empty = not line.label and not line.text and line.opens
        if not empty and (line.path or line.opens or line.kind != "note"):
            yield line


def _whole(lines: Iterable[ContentLine], most: int | None) -> Iterator[ContentLine]:
    """Yield the same lines, with the parts of a long line of a text joined; at most so many of them."""
    first: ContentLine | None = None
    parts: list[str] = []
    end = 0
    for line in lines:
        if first and 0 < line.start == end and line.path == first.path and len(parts) != most:
            parts.append(line.text)
        else:
            if first:
                yield _joined(first, parts)
            first, parts = line, [line.text]
        end = line.start + len(line.text)
    if first:
        yield _joined(first, parts)


def _joined(line: ContentLine, parts: list[str]) -> ContentLine:
    return line if len(parts) == 1 else line._replace(text="".join(parts))


def _texts(line: ContentLine, width: int | None, *, colours: bool) -> Iterator[str]:
    """Yield a line as printable text; with a `width`, as several lines of at most so many columns."""
    if not line.label and not line.text and line.kind == "text":  # a text may have 100,000s of such lines
        yield ""
        return
    label = printable(line.label, _LABEL)
    text = line.text.expandtabs(_TAB)
    if line.kind in ("note", "media") and text:
        text = f"({text})"
    elif line.kind == "string" and _NO_STRING.fullmatch(line.text):
        text = json.dumps(line.text, ensure_ascii=False)
    mark = label if label in ("", "-") else f"{label}:"
    whole = f"{mark} {text}" if mark and text else mark or text
    indent = " " * (_INDENT + 2 * min(line.depth, _DEEPEST))
    if width is None:
        made: Iterable[str] = (printable_whole(whole),)
    else:
        made = wrapped(whole, max(width - len(indent) - 2 * bool(mark), _LEAST))
    for place, part in enumerate(made):
        if not colours:
            shown = part
        elif line.kind in ("note", "media"):
            shown = coloured(part, "dim")
        elif place == 0 and part.startswith(mark) and mark:
            shown = coloured(mark, "dim") + part[len(mark) :]
        else:
            shown = part
        yield f"{indent}{'  ' if place and mark else ''}{shown}".rstrip()
