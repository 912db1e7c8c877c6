"""Differences between two sessions of a server, or between two messages: the code behind `mcpspy diff`."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from mcpspy.agent.answers import LARGEST, Answer, address, cursor_at, facts, milliseconds, place_of, split_address
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.clean import Scrubber, clipped, size_of
from mcpspy.agent.rows import payload, place_at
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.replay.differences import ABSENT, Difference, differences
from mcpspy.replay.offers import Change
from mcpspy.replay.script import script_of
from mcpspy.replay.sessions import FINE, Compared
from mcpspy.report.differences import Changes, examine, totals
from mcpspy.text import size_text
from mcpspy.wire.jsonrpc import decode

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
    report = examine(script_of(first.path), script_of(second.path), ())
    head = {"a": captures.name(first), "b": captures.name(second), "same": not report.differs}
    head |= {"totals": {outcome: number for outcome, number in totals(report.compared).items() if number}}
    sides = [(captures.open(entry), captures.name(entry)) for entry in (first, second)]
    return _page(head, _told(captures.scrubber, report, sides), cursor, key)


def _told(scrubber: Scrubber, report: Changes, sides: list[tuple[OpenCapture, str]]) -> Iterator[Answer]:
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
