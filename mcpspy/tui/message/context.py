"""What belongs to a message beyond its own frame: its partner, the HTTP heads, the tool that it calls.

All of it is read from the capture when a message is selected, and nothing of it is kept. In a merge a message belongs
to one of the sessions: what is around it is there, with the line numbers of that; times are those of the merge.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.records import Frame, Open, Record
from mcpspy.json_values import member
from mcpspy.timeline import Row
from mcpspy.tui.model.merged import Merged

_PAGES = 20  # pages of listings that are looked at for a tool


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of the messages in one row."""

    request: Open | None = None
    """Over HTTP: the request that carried the message, or that it came in answer to."""
    response: Open | None = None
    """Over HTTP: the response to that, as far as it is known."""
    tool: dict[str, Any] | None = None
    """Of a call: the tool's definition, as it was listed last before that; if it was listed later only, as then."""
    listed: int = 0
    """The line of that listing."""
    changed: Frame | None = None
    """The beginning of the frame, where something else was forwarded."""
    session: OpenCapture | None = field(default=None, repr=False)
    """The session that the row is of."""
    model: OpenCapture | Merged | None = field(default=None, repr=False)
    """What it was selected in: that, or a merge."""
    place: int = 0
    """The index of the row in the model."""

    def partner(self) -> tuple[list[Row], "Around"] | None:
        """The response to a request, or the request that a response answers, with what belongs to that."""
        model = self.model
        other = model.partner(self.place) if model else None
        return (model.messages(other), around(model, other)) if model and other is not None else None

    def size(self, n: int) -> int | None:
        """Bytes of the frame on line `n` of the session; None where there is no frame."""
        return self.session.index.frame_size(n) if self.session else None

    def pieces(self, n: int) -> Iterator[bytes]:
        """All bytes of the frame on line `n` of the session, exactly as received, piece by piece."""
        return self.session.index.pieces(n) if self.session else iter(())


def around(model: OpenCapture | Merged, place: int) -> Around:
    """What belongs to the row at that place."""
    session, there = model.of(place) if isinstance(model, Merged) else (model, place)
    row, partner = session.line(there), session.partner(there)
    record = session.index.record(row.n, 1)
    opened = [_opened(session, record)]
    if partner is not None:
        opened.append(_opened(session, session.index.record(session.line(partner).n, 1)))
    listed, tool = (
        _tool(session, row.n, row.name) if row.method == "tools/call" and row.kind == "request" else (0, None)
    )
    changed = record if isinstance(record, Frame) and record.by else None
    return Around(*_heads(session, opened), tool, listed, changed, session, model, place)


def _opened(session: OpenCapture, record: Record) -> Open | None:
    """The channel of a record."""
    if isinstance(record, Open):
        return record
    return session.index.channel(record.ch) if isinstance(record, Frame) else None


def _heads(session: OpenCapture, channels: list[Open | None]) -> tuple[Open | None, Open | None]:
    """The request and the response that some channels are, or answer."""
    request = response = None
    for opened in channels:
        if opened and opened.role == "response":
            response = response or opened
            asked = session.index.channel(opened.answers) if opened.answers is not None else None
            request = request or asked
        elif opened and opened.role == "request":
            request = request or opened
    return request, response


def _tool(session: OpenCapture, n: int, name: str) -> tuple[int, dict[str, Any] | None]:
    """The line of the listing that a call on line `n` is judged by, and what it says of the tool; 0 if there is none.

    It is the one that a finding names, else the newest one before the call that has the tool, else the newest.
    """
    named = [it.related[-1] for it in session.findings.of(n) if it.rule == "tools/arguments" and it.related]
    before = (line for line in reversed(session.announced.tool_pages) if line < n)
    use = session.announced.tools.get(name)
    for line in [*named[:1], *islice(before, _PAGES), *([use.listed] if use else [])]:
        tool = _definition(session, line, name)
        if tool is not None:
            return line, tool
    return 0, None


def _definition(session: OpenCapture, n: int, name: str) -> dict[str, Any] | None:
    """What a listing says of a tool; None where it is too large to be shown."""
    place = session.index.row_of(n)
    for row in session.messages(place) if place is not None else ():
        tools = member(row.value, "result", "tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and tool.get("name") == name:
                return tool
    return None
