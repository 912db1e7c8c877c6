"""The context of a message beyond its own frame: its request or response, the HTTP heads, the called tool.

The context is read from the capture when a message is selected, and is not stored. In a merge, the context comes from
the message's own session and has the line numbers of that session; times are those of the merge.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.records import Close, Frame, Open, Record
from mcpspy.json_values import member
from mcpspy.rules import Finding
from mcpspy.timeline import Row
from mcpspy.tui.model.merged import Merged

_PAGES = 20  # maximum pages of listings searched for a tool
_LINES = 20  # maximum lines of stderr shown with a message
_WITHOUT_END = ("server-exit", "unanswered")  # outcomes of requests that were open until the session ended


@dataclass(frozen=True, slots=True)
class Around:
    """The context of the messages in one row."""

    request: Open | None = None
    """Over HTTP: the request that contained the message, or whose response contained it."""
    response: Open | None = None
    """Over HTTP: the response to that request, if it is known."""
    tool: dict[str, Any] | None = None
    """For a call: the tool's latest definition listed before the call, else a definition listed after it."""
    listed: int = 0
    """The line number of that listing."""
    found: tuple[Finding, ...] = ()
    """For a response: the findings of its request."""
    stderr: tuple[tuple[int, str], ...] = ()
    """The lines that the server wrote to stderr between a request and its response, with their line numbers."""
    changed: Frame | None = None
    """The start of the frame, if something else was forwarded."""
    session: OpenCapture | None = field(default=None, repr=False)
    """The session of the row."""
    model: OpenCapture | Merged | None = field(default=None, repr=False)
    """The session or the merge in which the row was selected."""
    place: int = 0
    """The place of the row in the model."""

    def partner(self) -> tuple[list[Row], "Around"] | None:
        """Return the response to a request, or the request of a response, with its own context."""
        model = self.model
        other = model.partner(self.place) if model else None
        return (model.messages(other), around(model, other)) if model and other is not None else None

    def size(self, n: int) -> int | None:
        """Return the size in bytes of the frame on line `n` of the session; None if there is no frame."""
        return self.session.index.frame_size(n) if self.session else None

    def pieces(self, n: int) -> Iterator[bytes]:
        """Return all bytes of the frame on line `n` of the session, exactly as received, in pieces."""
        return self.session.index.pieces(n) if self.session else iter(())


def around(model: OpenCapture | Merged, place: int) -> Around:
    """Return the context of the row at a place."""
    session, there = model.of(place) if isinstance(model, Merged) else (model, place)
    row, partner = session.line(there), session.partner(there)
    record = session.index.record(row.n, 1)
    opened = [_opened(session, record)]
    if partner is not None:
        opened.append(_opened(session, session.index.record(session.line(partner).n, 1)))
    listed, tool = (
        _tool(session, row.n, row.name or "") if row.method == "tools/call" and row.kind == "request" else (0, None)
    )
    since = row.request if row.kind in ("result", "error") else row.n if row.outcome in _WITHOUT_END else None
    found = session.findings.of(row.request) if row.request and row.request == since else ()
    stderr = _stderr(session, since, None if since == row.n else row.t) if since else ()
    changed = record if isinstance(record, Frame) and record.by else None
    return Around(*_heads(session, opened), tool, listed, found, stderr, changed, session, model, place)


def _stderr(session: OpenCapture, since: int, until: int | None) -> tuple[tuple[int, str], ...]:
    """Return the last lines of stderr after the row on line `since`, up to the time `until` or the end."""

    def time(n: int) -> int:
        return session.time_of(n) or 0

    first = bisect_left(session.stderr, time(since), key=time)
    last = len(session.stderr) if until is None else bisect_right(session.stderr, until, key=time)
    places = ((n, session.index.row_of(n)) for n in session.stderr[max(first, last - _LINES) : last])
    return tuple((n, session.line(place).text or "") for n, place in places if place is not None)


def _opened(session: OpenCapture, record: Record) -> Open | None:
    """Return the `open` record of a record's channel."""
    if isinstance(record, Open):
        return record
    return session.index.channel(record.ch) if isinstance(record, Frame | Close) else None


def _heads(session: OpenCapture, channels: list[Open | None]) -> tuple[Open | None, Open | None]:
    """Return the request and the response among some channels, or that they answer."""
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
    """Return the line of the listing that applies to a call on line `n`, and the tool's definition; 0 if none.

    This is the listing that a finding refers to; else the newest one before the call that has the tool; else the newest
    one.
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
    """Return a tool's definition in a listing; None if it is missing, or the listing is too large to be decoded."""
    place = session.index.row_of(n)
    for row in session.messages(place) if place is not None else ():
        tools = member(row.value, "result", "tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and tool.get("name") == name:
                return tool
    return None
