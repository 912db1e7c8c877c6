"""The last barrier for what the application draws: each line passes it on its way to the terminal (A-14).

Views make captured text `printable` where they draw it. Text that a view or a widget of the library forgets is escaped
here, so no line has a control sequence, hidden text or a link. Markup is another matter: it must not be interpreted, so
every widget is made with `markup=False` (tests/test_sinks.py).
"""

from functools import lru_cache

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from mcpspy.text import escaped


class Barrier(LineFilter):
    """A line filter that escapes unsafe characters, and removes links, from the segments of a line."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 (of the base class)
        """Return the segments of a line, of the same total width."""
        shown = [_safe(segment) for segment in segments]
        if shown == segments:
            return segments
        return list(Strip(shown).adjust_cell_length(Segment.get_line_length(segments)))


def _safe(segment: Segment) -> Segment:
    text, style, _ = segment
    if style and style.link:
        style = style.update_link(None)
    elif text.isascii() and text.isprintable():
        return segment
    return Segment(_one_line(text), style)


@lru_cache(maxsize=2000)
def _one_line(text: str) -> str:
    return escaped(text).replace("\n", "\\n").replace("\t", "\\t")
