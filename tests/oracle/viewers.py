"""What viewers and agents get of a capture: each row as the TUI reads it, also live, and the answers of `mcp`."""

import os
from collections.abc import Iterator
from contextlib import closing

from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.catalogue import BY_NAME, answer
from mcpspy.browse.timeline import OpenCapture, TimelineRow
from mcpspy.capture.format import take
from mcpspy.errors import McpspyError
from mcpspy.report.differences import to_json
from mcpspy.timeline import Row
from mcpspy.tui.message import facts
from mcpspy.tui.message.facts import around
from tests.browse.test_timeline import grow

ADDRESSES = 6
"""Messages that `read_message` reads."""
MEMBERS = """n part t kind sender id method name revision status request response latency size raw text refused
    session""".split()
"""The members of a row that are printed."""
LINE = "n t kind sender method name id status latency size text severity act held source turn".split()
"""The members of a line of the timeline that are printed."""
TOOLS = {
    "find_problems": {},
    "explain_start": {},
    "tool_usage": {},
    "read_timeline": {"filter": 'status:error or "a"', "newest_first": True},
}
"""The tools of `mcpspy mcp` that read a session, with their arguments."""


def of_capture(path: str, *, live: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each output for one capture; with `live`, also of a copy that grows."""
    yield "viewed", _text(viewed(path))
    yield "asked", _text(asked(path))
    if live:
        yield "live", _text(grown(path))


def _text(lines: Iterator[object]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def viewed(path: str) -> Iterator[object]:
    """Yield what the TUI shows of a capture: its state, each row, and the details of its messages."""
    try:
        opened = OpenCapture(path)
    except McpspyError as error:
        yield error
        return
    with closing(opened) as session:
        grow(session)
        yield from _state(session)
        for place in range(len(session)):
            yield _line(session.line(place))
            yield (
                session.partner(place),
                session.continues(place),
                sorted(session.inputs(place) or ()),
                session.act(place),
            )
            rows = session.messages(place)
            yield from map(_row, rows)
            yield from facts.entries(rows, session.header, around(session, place))


def grown(path: str) -> Iterator[object]:
    """Yield what the TUI shows of a copy that grows by one line at a time: its changes, and its rows at the end."""
    copy = f"{path}.live"
    with open(path, "rb") as source, open(copy, "wb", buffering=0) as target:
        take(target.fileno())
        target.write(source.readline())
        with closing(OpenCapture(copy)) as session:
            for line in source:
                target.write(line)
                while session.grow(1):
                    pass
                yield len(session), session.state, session.counts, list(session.revised), list(session.moved)
            target.close()
            grow(session)
            yield from _state(session)
            yield from (_line(session.line(place)) for place in range(len(session)))
    os.unlink(copy)


def _line(row: TimelineRow) -> str:
    act, number = str(row.act or ""), str(row.id or "")
    texts = row.method or "", row.name or "", number, row.status or ""
    last = row.text or "", row.severity or "", act, row.held, row.source, row.turn
    values = row.n, row.t, row.kind, row.sender, *texts, row.latency, row.size, *last
    return f"TimelineRow({', '.join(f'{name}={value!r}' for name, value in zip(LINE, values, strict=True))})"


def _row(row: Row) -> list[object]:
    """Return the members of a row without decoded values, which may be nested too deeply to be printed."""
    return [*(getattr(row, name) for name in MEMBERS), str(row.act), *map(str, row.findings)]


def _state(session: OpenCapture) -> Iterator[object]:
    yield session.state, session.complete, session.counts, session.found, list(session.stderr)
    announced = session.announced
    yield announced.client, announced.server, announced.extensions.told(), announced.listings, announced.tools
    yield session.gates.held


def asked(path: str) -> Iterator[object]:
    """Yield the answers of `mcpspy mcp` about a capture and some of its messages."""
    folder = f"{path}.alone"
    os.mkdir(folder)
    os.link(path, os.path.join(folder, os.path.basename(path)))
    with closing(AgentCaptures(folder, 5)) as captures:
        captures.look()
        if not captures.entries:
            yield "not listed"
            return
        entry = captures.entries[0]
        name = captures.name(entry)
        rows = list(captures.open(entry).index.rows)
        calls = [("list_sessions", {}), *((tool, {"session": name} | given) for tool, given in TOOLS.items())]
        step = max(len(rows) // ADDRESSES, 1)
        for tool, given in [*calls, *(("read_message", {"address": f"{name}#{n}"}) for n in rows[::step])]:
            try:
                yield to_json(answer(BY_NAME[tool], captures, given))
            except McpspyError as error:
                yield error
