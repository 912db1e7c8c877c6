"""The selected message: what is known of it, then the message itself, indented or as it came."""

import asyncio
from collections.abc import Iterator
from itertools import chain, islice
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mcpspy.printable import printable
from mcpspy.protocol.rules import Finding
from mcpspy.record import Header
from mcpspy.timeline import Row, wall_time
from mcpspy.tui.pretty import Piece, json_lines, text_lines
from mcpspy.tui.rows import BREATH, set_height
from mcpspy.units import duration_text, size_text

_MOST = 20_000  # lines that are kept, 1.5 kB each
_AT_ONCE = 200  # lines made before the next look at the keyboard

_TO = {"client": "client → server", "server": "server → client", "mcpspy": "mcpspy"}


class Detail(ScrollView, can_focus=True):
    """A pane of wrapped lines that are made as they are needed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"detail--{kind}" for kind in ("key", "string", "number", "literal", "punctuation", "plain", "label", "warning")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "up", show=False),
        Binding("down,j", "scroll_down", "down", show=False),
        Binding("pageup,ctrl+b", "page_up", "page up", show=False),
        Binding("pagedown,ctrl+f,space", "page_down", "page down", show=False),
        Binding("home,g", "scroll_home", "top", show=False),
        Binding("end,G", "scroll_end", "bottom", show=False),
    ]

    raw = reactive(False)
    """Show the frame as it came."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[list[Row], Header] | None = None
        self._lines: list[Strip] = []
        self._base = Style.null()

    def show(self, rows: list[Row], header: Header) -> None:
        """Show the messages of one frame."""
        moved = self._shown is None or [row.n for row in rows] != [row.n for row in self._shown[0]]
        self._shown = (rows, header)
        self._make()
        if moved:
            self.scroll_to(y=0, animate=False)

    def on_resize(self) -> None:
        """Wrap again."""
        self._make()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Those lines of the screen; what the style sheet says of the pane is asked once, not for each of them."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        place = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        line = self._lines[place] if place < len(self._lines) else Strip.blank(width)
        return line.adjust_cell_length(width).apply_style(self._base)

    def _make(self) -> None:
        """Make the lines, those in sight at once."""
        if self._shown is None:
            return
        width = max(self.scrollable_content_region.width, 10)
        lines = chain.from_iterable(self._wrap(line, width) for line in _lines(*self._shown, raw=self.raw))
        lines = chain(islice(lines, _MOST), self._omitted(lines))
        self._lines = list(islice(lines, _AT_ONCE))
        self._resize()
        self._make_more(lines)

    @work(exclusive=True)
    async def _make_more(self, lines: Iterator[Strip]) -> None:
        """Make the others, a few at a time."""
        while more := list(islice(lines, _AT_ONCE)):
            self._lines += more
            self._resize()
            await asyncio.sleep(BREATH)

    def _omitted(self, lines: Iterator[Strip]) -> Iterator[Strip]:
        """One line in place of those that are too many."""
        if next(lines, None):
            yield from self._wrap([(f"… the first {_MOST:,} lines", "warning")], _MOST)

    def _resize(self) -> None:
        set_height(self, len(self._lines))
        self.refresh()

    def _wrap(self, line: list[Piece], width: int) -> Iterator[Strip]:
        pieces = (Segment(text, self.get_component_rich_style(f"detail--{kind}", partial=True)) for text, kind in line)
        strip = Strip(pieces)
        if strip.cell_length <= width:
            yield strip
        else:
            yield from strip.divide([*range(width, strip.cell_length, width), strip.cell_length])


def _lines(rows: list[Row], header: Header, *, raw: bool) -> Iterator[list[Piece]]:
    """What the pane says, line by line, before wrapping."""
    for row in rows:
        yield from _about(row, header)
    if not rows:
        return
    row = rows[0]
    yield []
    if row.raw:
        text = row.raw.decode(errors="backslashreplace" if raw else "replace")
        decoded = row.kind not in ("invalid", "stderr") or row.value is not None
        yield from json_lines(text) if decoded and not raw else text_lines(text)
    elif row.text:
        yield from text_lines(row.text)
    if len(row.raw) < row.size:
        yield [(f"… the first {size_text(len(row.raw))} of {size_text(row.size)}", "warning")]


def _about(row: Row, header: Header) -> Iterator[list[Piece]]:
    subject = " ".join(part for part in (row.method, row.name) if part) or row.kind
    part = f" part {row.part + 1}" if row.part else ""
    yield [(f"#{row.n}{part} ", "label"), (printable(subject, 300), "key")]
    facts = [row.kind, _TO[row.sender]]
    if row.id is not None:
        facts.append(f"id {printable(str(row.id), 100)}")
    if row.size:
        facts.append(size_text(row.size))
    yield [(" · ".join(facts), "label")]
    yield [(f"{row.t / 1e9:.6f} s · {wall_time(header, row.t)}", "label")]
    outcome = [row.revision, row.status]
    other = row.response if row.kind == "request" else row.request
    if other:
        outcome.append(f"{'answered by' if row.kind == 'request' else 'answers'} #{other}")
    if row.latency is not None:
        outcome.append(duration_text(row.latency))
    text = " · ".join(filter(None, outcome))
    if text:
        yield [(text, "warning" if row.status in ("error", "tool-error", "unanswered") else "label")]
    for fault in (row.refused, row.text if row.kind == "invalid" else None):
        if fault:
            yield [(printable(fault, 300), "warning")]
    yield from map(_found, row.findings)


def _found(finding: Finding) -> list[Piece]:
    """What is wrong, where, and whose fault it is."""
    kind = {"error": "warning", "warning": "number", "info": "label"}[finding.severity]
    where = f" at {printable(finding.pointer, 200)}" if finding.pointer else ""
    related = f", see {', '.join(f'#{n}' for n in finding.related[:5])}" if finding.related else ""
    return [
        (f"{finding.severity}: {printable(finding.message, 500)}{where}{related}", kind),
        (f" · {finding.blame} · {finding.rule}", "label"),
    ]
