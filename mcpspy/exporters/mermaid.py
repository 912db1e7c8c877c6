"""A session as a sequence diagram of Mermaid, which GitHub draws in issues and Markdown files.

The theory. A diagram is for a few dozen messages, and GitHub draws no diagram of more than 50,000 characters. So both
are limited, and rows that do not fit are counted. Mermaid has no quotes: `;`, `#`, a line break and the word `end` are
syntax everywhere. So all characters except letters, digits and a few signs are written as entities (`#59;`), which
Mermaid shows as plain text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.exporters.source import ExportSource, words_of
from mcpspy.json_values import member
from mcpspy.report.words import MARKS
from mcpspy.text import duration_text, plural, printable
from mcpspy.timeline import Row

MOST = 200
"""Maximum number of arrows and notes in a diagram."""
_ROOM = 45_000  # characters of a diagram; Mermaid refuses to draw 50,000 or more
_LABEL = 100  # characters of a label
_ARROWS = {"request": "->>", "result": "-->>", "error": "-->>", "notification": "-)"}
_OTHER = {"client": "server", "server": "client"}
_BESIDE = ("stderr", "http", "event")
"""Kinds of rows that are left out unless a filter matches them."""
_SYNTAX = re.compile(r"[^\w ./()'!?=,*-]", re.ASCII)
_END = re.compile(r"\bend\b", re.IGNORECASE)
_LOST = "-x"  # an arrow that ends in a cross


def write(source: ExportSource) -> Iterator[bytes]:
    """Yield the diagram of one capture."""
    diagram = _Diagram()
    for row in source.rows():
        diagram.introduce(row)
        if source.wanted(row) if source.wants else row.kind not in _BESIDE:
            diagram.add(row)
    header = source.capture.header
    yield from (f"{line}\n".encode() for line in diagram.lines(header.name))


@dataclass(slots=True)
class _Diagram:
    """Collects the lines of a diagram."""

    _drawn: list[str] = field(default_factory=list)
    _size: int = 0
    _more: int = 0
    _names: dict[str, str] = field(default_factory=dict)
    _ours: bool = False

    def introduce(self, row: Row) -> None:
        """Store the name of a client or a server from a row that introduces it."""
        if row.method in INTRODUCE and (name := introduction(row.value)):
            self._names.setdefault(row.sender, name)

    def add(self, row: Row) -> None:
        """Draw one more row, or count it."""
        line = f"    {_line(row)}"
        if self._more or len(self._drawn) == MOST or self._size + len(line) > _ROOM:
            self._more += 1
            return
        self._drawn.append(line)
        self._size += len(line) + 1
        self._ours = self._ours or line.lstrip().startswith("mcpspy")

    def lines(self, title: str) -> Iterator[str]:
        """Yield the whole diagram."""
        yield "sequenceDiagram"
        yield f"    title {text(title or 'session')}"
        for side in ("client", "mcpspy", "server") if self._ours else ("client", "server"):
            name = self._names.get(side)
            yield f"    participant {side} as {text(f'{side}: {name}' if name else side)}"
        yield from self._drawn
        if self._more:
            words = f"{plural(self._more, 'row')} more; export fewer with a filter, such as method:tools/call"
            yield f"    Note over client,server: {text(words)}"


def text(words: str, limit: int = _LABEL) -> str:
    """Return words as Mermaid text, on one line of at most `limit` characters, without invisible characters."""
    safe = _SYNTAX.sub(_entity, printable(words, limit))
    return _END.sub(lambda match: f"#{ord(match[0][0])};{match[0][1:]}", safe)


def _entity(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};" if match[0].isascii() else match[0]


def _line(row: Row) -> str:
    """Return the line of one row: an arrow, or a note."""
    label = text(_label(row))
    if row.kind == "stderr":
        return f"Note right of server: {label}"
    if row.channel is None or row.stream or (row.sender == "mcpspy" and row.exchange is None):
        return f"Note over client,server: {label}"
    arrow = _LOST if row.act and row.act.dropped else _ARROWS.get(row.kind, "-)")
    return f"{row.sender}{arrow}{_receiver(row)}: {label}"


def _receiver(row: Row) -> str:
    """Return who receives the message of a row."""
    if row.sender in _OTHER:
        return _OTHER[row.sender]
    assert row.exchange
    side = row.exchange.request.side
    return _OTHER[side] if row.kind == "request" else side


def _label(row: Row) -> str:
    """Return the number of a row, its message, and its outcome."""
    words = [f"#{row.n}"]
    if row.kind in _ARROWS:
        words += _message(row)
    elif row.kind == "undecoded":
        words.append(f"{row.size:,} bytes, not decoded")
    else:
        words.append(f"{row.kind}: {row.text or ''}")
    if row.act:
        words.append(f"[{row.act}]")
    found = [finding.rule for finding in row.findings if finding.severity != "info"]
    words += [f"{MARKS['error']} {rule}" for rule in dict.fromkeys(found)]
    return " ".join(filter(None, words))


def _message(row: Row) -> Iterator[str]:
    if row.kind in ("request", "notification"):
        yield row.method or ""
        yield words_of(row)
        return
    if row.kind == "error":
        code, words = (member(row.value, "error", name) for name in ("code", "message"))
        yield f"{MARKS['error']} error {_short(code)} {_short(words)}"
    else:
        yield f"{MARKS['error']} tool error" if row.status == "tool-error" else row.status or "result"
        yield "" if row.name else words_of(row)
    yield f"answers #{row.request}" if row.request else ""
    yield f"after {duration_text(row.latency)}" if row.latency is not None else ""


def _short(value: object) -> str:
    """Return a value that should be text or a number; an empty string for anything else."""
    return value[:_LABEL] if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
