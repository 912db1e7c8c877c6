"""Whole sessions: their list, the tools of one with their use, and the differences between two.

The list has the recorded sessions, live ones first, then the newest, and the client runs that they belong to. Of each
tool, an answer has the size of its definition in tokens, how often it was called, and with what outcome. Differences
between two sessions of a server, or between two messages, are computed by the code behind `mcpspy diff`.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from mcpspy.agent.answers import (
    LARGEST,
    Answer,
    Scrubber,
    address,
    clipped,
    cursor_at,
    facts,
    milliseconds,
    place_of,
    progress,
    size_of,
    split_address,
)
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.rows import payload, place_at
from mcpspy.browse.library import ListedCapture
from mcpspy.browse.timeline import OpenCapture
from mcpspy.cost import tokens
from mcpspy.errors import UsageError
from mcpspy.overview import ToolUse
from mcpspy.replay.differences import ABSENT, Difference, differences
from mcpspy.replay.offers import Change
from mcpspy.replay.script import script_of
from mcpspy.replay.sessions import FINE, Compared
from mcpspy.replay.tolerance import Rules
from mcpspy.report.differences import Changes, examine, totals
from mcpspy.text import size_text
from mcpspy.wire.jsonrpc import decode

_MOST = 50  # sessions per answer


def list_sessions(
    captures: AgentCaptures,
    *,
    server: str = "",
    client: str = "",
    problems: bool = False,
    run: str = "",
    cursor: str = "",
) -> Answer:
    """Return the matching sessions, with counts."""
    captures.look(count=True)
    runs = {entry.path: name for name, group in captures.runs() for entry in group}
    entries = captures.several(run) if run else captures.entries
    wanted = [it for it in entries if _fits(captures.scrubber, it, server.lower(), client.lower(), problems=problems)]
    wanted.sort(key=lambda it: (not it.live, -it.started, it.path))
    key = ("list_sessions", server, client, problems, run)
    first = place_of(cursor, key)
    sessions: list[Answer] = []
    answer = facts(
        total=len(wanted),
        unread=[captures.scrubber.text(f"{name}: {why}", 280) for name, why in list(captures.refused.items())[:3]],
        note="" if captures.complete else "some captures are not counted yet; ask again for all counts",
    )
    room = LARGEST - size_of(answer) - 200
    for entry in wanted[first : first + _MOST]:
        told = describe(captures, entry, runs.get(entry.path, ""))
        room -= size_of(told) + 1
        if room < 0:
            break
        sessions.append(told)
    answer["sessions"] = sessions
    end = first + len(sessions)
    if end < len(wanted):
        answer["next"] = cursor_at(key, end)
    return answer


def describe(captures: AgentCaptures, entry: ListedCapture, run: str = "") -> Answer:
    """Return one session as a few facts."""
    counts, found = entry.counts, entry.found
    counted = not entry.uncounted and (entry.finished or entry.live)
    text = captures.scrubber.text
    return facts(
        session=captures.name(entry),
        server=text(entry.header.name, 80),
        client=text(counts.client, 80),
        started=datetime.fromtimestamp(entry.started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        live=entry.live or None,
        transport=entry.header.transport,
        run=run,
        requests=counts.exchanges if counted else None,
        failed=counts.failed if counted else None,
        findings={severity: number for severity, number in found.items() if number} if counted else None,
        bytes=entry.size,
        imported=text(entry.header.imported.form, 80) if entry.header.imported else None,
    )


def _fits(scrubber: Scrubber, entry: ListedCapture, server: str, client: str, *, problems: bool) -> bool:
    if server:  # compared with what answers may show, so that nobody can guess a secret by its beginning
        command = " ".join(scrubber.argv(entry.header.argv)).lower()
        if server not in scrubber.text(entry.header.name).lower() and server not in command:
            return False
    if client and client not in scrubber.text(entry.counts.client).lower():
        return False
    uncounted = entry.uncounted
    return not problems or uncounted or bool(entry.counts.failed or entry.found["error"] or entry.found["warning"])


def tool_usage(captures: AgentCaptures, *, session: str = "", cursor: str = "") -> Answer:
    """Return the cost and the outcomes of each tool, the most expensive first."""
    entry = captures.find(session)
    capture, name = captures.open(entry), captures.name(entry)
    announced = capture.announced
    tools = sorted(announced.tools.values(), key=lambda it: (-it.context, -it.calls, it.name))
    listed = [it for it in tools if announced.is_current(it)]
    key = ("tool_usage", name)
    first = place_of(cursor, key)
    answer = facts(session=name, server=captures.server(entry)) | progress(capture)
    answer["totals"] = {
        "tools": len(listed),
        "definition_tokens": tokens(sum(it.context for it in listed)),
        "calls": sum(it.calls for it in tools),
        "errors": sum(it.errors for it in tools),
        "never_called": sum(not it.calls for it in listed),
    }
    told: list[Answer] = []
    room = LARGEST - size_of(answer) - 100
    for tool in tools[first:]:
        fields = _tool(captures, capture, name, tool)
        room -= size_of(fields) + 1
        if room < 0 and told:
            break
        told.append(fields)
    answer["tools"] = told
    if first + len(told) < len(tools):
        answer["next"] = cursor_at(key, first + len(told))
    return answer


def _tool(captures: AgentCaptures, capture: OpenCapture, name: str, tool: ToolUse) -> Answer:
    times = [milliseconds(it) for it in tool.latencies.quantiles(0.5, 0.95, 1)]
    return facts(
        name=captures.scrubber.text(tool.name, 120),
        listed=None if capture.announced.is_current(tool) else False,
        definition_tokens=tokens(tool.context) if tool.context else None,
        calls=tool.calls,
        errors=tool.errors or None,
        findings=tool.found or None,
        ms=dict(zip(("p50", "p95", "max"), times, strict=False)),
        definition=address(name, tool.listed) if tool.listed else None,
        first_call=address(name, tool.called) if tool.called else None,
    )


LARGEST_SESSION = 64 << 20
"""The largest capture that is compared as a whole, in bytes: it is read into memory."""
_SIDE = 300  # bytes shown of each of the two values
_EACH = 6  # differences shown for one exchange
_OUTCOMES = {"missing": "missing in b", "extra": "only in b"}


def compare(captures: AgentCaptures, *, a: str, b: str, cursor: str = "") -> Answer:
    """Compare two sessions, or two messages."""
    if ("#" in a) != ("#" in b):
        raise UsageError("compare takes two sessions or two addresses of messages, not one of each")
    key = ("compare", a, b)
    if "#" in a:
        names, found = _messages(captures, a, b)
        told = (_difference(captures.scrubber, it) for it in found)
        return _page({"a": names[0], "b": names[1], "same": not found}, told, cursor, key)
    first, second = captures.find(a), captures.find(b)
    for entry in (first, second):
        if entry.size > LARGEST_SESSION:
            raise UsageError(
                f"the session {captures.name(entry)} has {size_text(entry.size)}; at most {size_text(LARGEST_SESSION)} "
                "are compared here: use 'mcpspy diff', or compare two messages"
            )
    report = examine(script_of(first.path), script_of(second.path), Rules())
    head = {"a": captures.name(first), "b": captures.name(second), "same": not report.differs}
    head |= {"totals": {outcome: number for outcome, number in totals(report.compared).items() if number}}
    sides = [(captures.open(entry), captures.name(entry)) for entry in (first, second)]
    return _page(head, _told_changes(captures.scrubber, report, sides), cursor, key)


def _told_changes(scrubber: Scrubber, report: Changes, sides: list[tuple[OpenCapture, str]]) -> Iterator[Answer]:
    """Yield all changes, those of the server's offers first."""
    yield from ({"where": "server"} | _difference(scrubber, it) for it in report.told)
    yield from (_change(scrubber, it) for it in report.changes)
    for it in report.compared:
        if it.outcome not in FINE:
            yield _exchange(scrubber, it, sides)
    for latency in report.latencies:
        if latency.notable:
            what = scrubber.text(" ".join(filter(None, (latency.method, latency.name))), 120)
            times = [milliseconds(round(it)) for it in (latency.recorded, latency.observed)]
            yield facts(where="latency", what=what, unit="ms", a=times[0], b=times[1])


def _change(scrubber: Scrubber, change: Change) -> Answer:
    return facts(
        where=change.kind,
        name=scrubber.text(change.name, 120),
        change=change.change,
        breaking=[scrubber.text(it or "(the whole)", 200) for it in change.breaking],
        differences=[_difference(scrubber, it) for it in change.differences[:_EACH]],
    )


def _exchange(scrubber: Scrubber, it: Compared, sides: list[tuple[OpenCapture, str]]) -> Answer:
    """Return one exchange. Its frames are read first, because a name next to a value may identify it as a secret."""
    lines = (it.request, it.observed)
    for (capture, _), n in zip(sides, lines, strict=True):
        known = capture.known(n) if n else None
        scrubber.learn(capture, filter(None, (n, known.response if known else None)))
    at, other = (address(name, n) if n else None for (_, name), n in zip(sides, lines, strict=True))
    return facts(
        where="exchange",
        at=at,
        other=other,
        what=scrubber.text(" ".join(filter(None, (it.method, it.name))), 120),
        outcome=_OUTCOMES.get(it.outcome, it.outcome),
        reason=scrubber.text(it.reason or "", 200),
        differences=[_difference(scrubber, one) for one in it.differences[:_EACH]],
    )


def _messages(captures: AgentCaptures, a: str, b: str) -> tuple[list[str], list[Difference]]:
    names, values = [], []
    places = [split_address(text) for text in (a, b)]
    for entry, n in [(captures.find(session), n) for session, n in places]:
        capture, name = captures.open(entry), captures.name(entry)
        row = captures.scrubber.rows(capture, place_at(capture, name, n))[0]
        if row.value is None:
            raise UsageError(f"{address(name, n)} is not a message that can be compared; read_message shows it")
        names.append(address(name, n))
        values.append(payload(row))
    return names, differences(*values)


def _difference(scrubber: Scrubber, it: Difference) -> Answer:
    """Return a difference. A side without a value is left out."""
    sides = {"a": it.recorded, "b": it.observed}
    told = {
        side: clipped(_clean(scrubber, it, value), _SIDE)[0] for side, value in sides.items() if value is not ABSENT
    }
    return {"pointer": scrubber.text(it.pointer, 300)} | told


def _clean(scrubber: Scrubber, it: Difference, value: Any) -> Any:
    """Return a value without secrets. The names above it may identify it as a secret."""
    whole = value
    for step in reversed(it.path):
        whole = {str(step): whole}
    try:
        clean = decode(scrubber.json(whole).encode(errors="replace"))
        for _ in it.path:
            clean = next(iter(clean.values()))
        return clean
    except RecursionError:
        return "(nested too deeply to be shown)"
    except (ValueError, TypeError, AttributeError):
        return scrubber.text(str(value), 500)


def _page(head: Answer, told: Iterable[Answer], text: str, key: tuple[object, ...]) -> Answer:
    """Return as many differences as fit, starting at a cursor."""
    first = place_of(text, key)
    kept: list[Answer] = []
    room = LARGEST - size_of(head) - 100
    for it in islice(told, first, None):
        room -= size_of(it) + 1
        if room < 0 and kept:
            return head | {"differences": kept, "next": cursor_at(key, first + len(kept))}
        kept.append(it)
    return head | {"differences": kept}
