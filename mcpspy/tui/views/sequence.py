"""The sequence diagram: a row for each frame between the lanes of both sides, and who was waited for.

Arrows, pauses, and the brackets that connect requests and responses are texts: each function with a `columns` argument
returns a text of exactly that width.
"""

from contextlib import suppress
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.css.query import NoMatches
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture, TimelineRow
from mcpspy.conversation.model import StreamEnd
from mcpspy.report.words import MARKS
from mcpspy.text import duration_text, printable
from mcpspy.tui.model.lanes import DEEPEST, Lane, Lanes
from mcpspy.tui.views.row_text import ANSWERED
from mcpspy.tui.widgets.rows import CatchingUp, Cell, Jump, View, column, fit

_BAR = 5  # maximum columns of a bar
_LEAST = 1_000_000  # minimum nanoseconds of a pause that is shown as text


def arrow(label: str, columns: int, *, to_right: bool, dashed: bool) -> tuple[str, str, str]:
    """Return an arrow with a label at its start, as three texts: before the label, the label, after it.

    A label that does not fit is shortened.
    """
    dash = "╌" if dashed else "─"
    room = max(columns - 6, 0)
    if cell_len(label) > room:
        label = set_cell_size(label, max(room - 1, 0)) + "…"[:room]
    rest = dash * (columns - cell_len(label) - 5)
    if columns < 6:
        rest = (dash * columns + "▶")[1:] if to_right else ("◀" + dash * columns)[:columns]
        return rest, "", ""
    return (f"{dash * 2} ", label, f" {rest}▶") if to_right else (f"◀{rest} ", label, f" {dash * 2}")


def brackets(before: int, after: int, columns: int, *, mirrored: bool) -> str:
    """Return the brackets of one side that continue, begin or end in a row, the innermost next to the lane.

    `before` and `after` have a bit for each bracket that is open before and after the row. `mirrored` draws the left
    side.
    """
    changed = before ^ after
    reach = changed.bit_length() - 1  # the outermost bracket that begins or ends
    drawn = "─" if changed else " "
    for place in range(DEEPEST):
        bit = 1 << place
        if changed & bit and place == reach:
            drawn += ("╭" if mirrored else "╮") if after & bit else ("╰" if mirrored else "╯")
        elif before & after & bit:
            drawn += "┼" if place < reach else "│"
        else:
            drawn += "─" if place < reach else " "
    drawn = drawn[:columns]
    return drawn[::-1] if mirrored else drawn


def pause_text(nanoseconds: int, columns: int) -> str:
    """Return the length of a pause, aligned to the right; blanks if it was short."""
    return f"{duration_text(nanoseconds) if nanoseconds >= _LEAST else '':>{columns}}"[:columns]


def pause_bar(nanoseconds: int) -> str:
    """Return the length of a pause as a bar: one dash from 10 ms on, and one more for each power of ten."""
    length = len(str(nanoseconds // 10_000_000)) if nanoseconds >= 10_000_000 else 0
    return f"{'━' * min(length, _BAR):<{_BAR}}"


_SIDE = (1 << DEEPEST) - 1
_FAR = 100  # maximum columns between the lanes: a longer arrow is hard to follow
_ANSWERS = ("result", "error")


class Layout(NamedTuple):
    """The columns of each part of a row, for a given width of the view; 0 if the part is omitted."""

    number: int
    time: int
    pause: int
    waited: int
    bar: int
    left: int
    """Columns for the brackets of the server's requests."""
    field: int
    """Columns between the lanes."""
    right: int
    """Columns for the brackets of the client's requests."""

    @classmethod
    def of(cls, width: int) -> "Layout":
        """Return the layout for a width."""
        if width >= 110:
            known = cls(8, 10, 9, 8, 6, 4, 0, 6)
        elif width >= 66:
            known = cls(0, 10, 9, 8, 0, 3, 0, 4)
        else:
            known = cls(0, 0, 9, 0, 0, 2, 0, 3)
        return known._replace(field=min(max(width - 4 - sum(known), 0), _FAR))  # a mark and two lanes


class SequenceRows(CatchingUp):
    """One row for each frame."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "view--dim", "view--error", "view--warning", "view--info", "view--client", "view--server", "view--person",
        "view--ok", "view--lane",
    }  # fmt: skip

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session
        self._lanes = Lanes(session)

    def on_mount(self) -> None:
        """Follow new rows while the session is live."""
        self.follow = self._session.state == "live"

    def count(self) -> int:
        """Return the number of rows so far."""
        return len(self._session)

    def nothing(self) -> str:
        """Return that there are no messages."""
        return "no messages" if self._session.complete else "no messages so far"

    def done(self) -> int:
        """Return the number of rows whose lanes are known."""
        return len(self._lanes)

    def catch_up(self, seconds: float) -> bool:
        """Compute the lanes of new rows."""
        return self._lanes.grow(seconds)

    def face(self, place: int) -> tuple[TimelineRow, Lane, int]:
        """Return the state that the look of a row depends on: its line, its lane, and the pause before it."""
        line = self._session.line(place)
        above = self._session.line(place - 1).t if place else line.t
        return line, self._lanes.at(place), max(line.t - above, 0)

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells: finding, number, time, pause, who was waited for, and the message between the lanes."""
        line, lane, pause = self.face(place)
        layout = Layout.of(width)
        waited = f"view--{lane.waited}" if lane.waited else "view--dim"
        word = lane.waited if pause_text(pause, layout.pause).strip() else ""
        left = brackets(lane.before >> DEEPEST, lane.after >> DEEPEST, layout.left, mirrored=True)
        right = brackets(lane.before & _SIDE, lane.after & _SIDE, layout.right, mirrored=False)
        is_open = lane.before | lane.after
        return [
            (f"{MARKS[line.severity] if line.severity else ' '} ", f"view--{line.severity}" if line.severity else ""),
            (set_cell_size(f"{'#' + str(line.n):>7}", layout.number), "view--dim"),
            (set_cell_size(f"{line.t / 1e9:>9.3f}", layout.time), "view--dim"),
            (pause_text(pause, layout.pause), waited),
            (f" {word:<{layout.waited}}"[: layout.waited], waited),
            (set_cell_size(pause_bar(pause), layout.bar), waited),
            (left, "view--server"),
            ("┃" if is_open >> DEEPEST else "│", "view--lane"),
            *_field(line, layout.field),
            ("┃" if is_open & _SIDE else "│", "view--lane"),
            (right, "view--client"),
        ]

    def on_rows_chosen(self) -> None:
        """Show the frame in the timeline."""
        self.post_message(Jump(self._session.line(self.cursor).n))


def _field(line: TimelineRow, columns: int) -> list[Cell]:
    """Return the text between the lanes."""
    if line.sender == "mcpspy" or line.kind == StreamEnd.kind:
        subject = " ".join(filter(None, (line.method, line.name or line.text, str(line.act or ""))))
        text = fit(printable(subject, columns), columns)
        centred = set_cell_size(" " * ((columns - cell_len(text)) // 2) + text, columns)
        return [(centred, "view--warning" if line.kind == "gap" else "")]
    if line.kind == "stderr":  # from the server, but not part of the conversation
        text = fit(line.text or "", columns - 2)
        return [(" " * (columns - cell_len(text) - 1), ""), (text, "view--dim"), (" "[:columns], "")]
    label, colour = _label(line, columns)
    label += f"  [{printable(str(line.act), columns)}]" if line.act else ""
    before, text, after = arrow(label, columns, to_right=line.sender == "client", dashed=line.kind in _ANSWERS)
    way = f"view--{line.sender}"
    return [(before, way), (text, colour), (after, way)]


def _label(line: TimelineRow, columns: int) -> Cell:
    """Return the label of a message: its subject and outcome."""
    subject = printable(" ".join(filter(None, (line.method, line.name or line.text))), columns)
    if line.kind in _ANSWERS:
        took = duration_text(line.latency) if line.latency is not None else ""
        outcome = " ".join(filter(None, (line.exact_status or line.kind, took)))
        colour = "view--error" if line.bad else "view--dim" if line.expected else "view--ok"
        return f"{outcome}  {subject or '(no request seen)'}", colour
    if line.kind == "request":
        number = printable(f"id {line.id}", 20)
        lacking = "" if line.exact_status in ("", *ANSWERED) else f"  {line.exact_status}"
        return f"{subject}  {number}{lacking}", "view--error" if lacking and line.bad else ""
    if line.kind == "notification":
        return subject, "view--dim"
    text = f"{line.kind}: {printable(line.text or '', columns)}"
    return text, "view--warning" if line.kind == "invalid" else "view--dim"


class SequenceView(View):
    """The lanes, below the names of both sides."""

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        """Yield the heading and the rows."""
        yield Static(id="lanes", markup=False)
        yield SequenceRows(self._session)

    def on_resize(self) -> None:
        """Put the names above their lanes."""
        self._put_names()

    def grown(self) -> None:
        """Show new rows."""
        with suppress(NoMatches):  # before it is composed
            self.query_one(SequenceRows).grown()
            self._put_names()

    def _put_names(self) -> None:
        client, server = self._session.announced.client, self._session.announced.server
        width = self.query_one(SequenceRows).scrollable_content_region.width
        text = heading(width, client.name if client else "", server.name if server else "")
        self.query_one("#lanes", Static).update(text, layout=False)


def heading(width: int, client: str, server: str) -> str:
    """Return the names of both sides above their lanes, for a view of the given width."""
    layout = Layout.of(width)
    before = 2 + sum(layout) - layout.field - layout.right
    half = (layout.field + 2) // 2
    left = column(f"client {client}".strip(), half)
    right = fit(f"server {server}".strip(), half)
    return " " * before + left + " " * (layout.field + 2 - half - cell_len(right)) + right
