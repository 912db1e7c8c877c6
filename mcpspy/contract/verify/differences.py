"""What differs between runs, bare and through a wrapper: pure functions over what was recorded.

There are two kinds of comparison. Within one run through the wrapper, the bytes that one end wrote must arrive at the
other end unchanged, whatever the server sends. Between runs, the server must behave as it does without the wrapper. If
two bare runs differ from each other, the server itself varies, and those places are ignored. A difference between runs
counts only if every run through the wrapper has it and no bare run does. So a second pair of runs removes differences
by chance.

Over HTTP the wrapper is a proxy. Headers that belong to one connection (RFC 9110, 7.6.1) are a proxy's own, and so is
`Date`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpspy.contract.verify.http import HttpRun
from mcpspy.contract.verify.launch import past
from mcpspy.contract.verify.session import SessionPlan, Transcript
from mcpspy.contract.verify.stdio import StdioRun, Stream
from mcpspy.json_values import Path, pointer
from mcpspy.replay.differences import Difference, differences, excerpt
from mcpspy.replay.issued_values import begins
from mcpspy.replay.script import LOG
from mcpspy.replay.volatile import looks_volatile
from mcpspy.text import plural, printable
from mcpspy.transport.http_client import ClientExchange, Headers
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result, parse

_AROUND = 24  # bytes that are shown, beginning at a difference
_MOST = 10  # differences of one kind that are reported
_WAYS = {
    "stdin": ("client to server", "the client", "the server"),
    "stdout": ("server to client", "the server", "the client"),
    "stderr": ("stderr", "the server", "the client"),
}


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that was compared."""

    name: str
    detail: str
    """What was equal."""
    differences: tuple[str, ...] = ()
    """What was different, one sentence each."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def session_checks(plan: SessionPlan, bare: Sequence[StdioRun], through: Sequence[StdioRun]) -> list[Aspect]:
    """Compare whole sessions."""
    checks = [_stream(name, bare, through) for name in _WAYS]
    checks.append(answers(plan, [it.transcript for it in bare], [it.transcript for it in through]))
    if any(run.facts for run in through):
        checks += [_environment(bare, through), _start(bare, through)]
    return [*checks, ending_check("closing stdin", bare, through)]


def echo_check(stream: Stream) -> Aspect:
    """Compare the lines that `cat` returned through the wrapper."""
    one, other = stream.written, stream.arrived
    found = []
    if one != other:
        at = first_difference(one, other)
        sent, back = (excerpt_of(raw[at:]) if at < len(raw) else "nothing" for raw in (one, other))
        found = [f"byte {at + 1:,} of {len(one):,}: the client wrote {sent}, and {back} came back"]
    return Aspect("odd lines", f"{plural(len(one), 'byte')} to cat and back", tuple(found))


def _stream(name: str, bare: Sequence[StdioRun], through: Sequence[StdioRun]) -> Aspect:
    title, sender, receiver = _WAYS[name]
    usual, found = (
        dict.fromkeys(_arrival(run.streams[name], sender, receiver, cut=_may_be_cut(run, name)) for run in runs)
        for runs in (bare, through)
    )
    size = len(through[0].streams[name].written)
    return Aspect(title, plural(size, "byte"), tuple(it for it in found if it and it not in usual))


def _may_be_cut(run: StdioRun, name: str) -> bool:
    """Return whether bytes may be lost because the server was killed, or ended without reading them."""
    return not run.ended or (name == "stdin" and run.transcript.trouble is not None)


def _arrival(stream: Stream, sender: str, receiver: str, *, cut: bool) -> str:
    """Return how the bytes that arrived differ from those that were written, or an empty string."""
    one, other = stream.written, stream.arrived
    if one == other:
        return ""
    at = first_difference(one, other)
    there, here = excerpt_of(one[at:]), excerpt_of(other[at:])
    place = f"byte {at + 1:,} of {len(one):,}"
    if at == len(other):
        return "" if cut else f"{sender} wrote {plural(len(one), 'byte')}, {receiver} got {len(other):,}"
    if at == len(one):
        extra = len(other) - at
        return f"{receiver} got {plural(extra, 'byte')} more than {sender} wrote: {here}"
    return f"{place}: {sender} wrote {there}, {receiver} got {here}"


def first_difference(one: bytes, other: bytes) -> int:
    """Return the index of the first byte that differs, or the length of the shorter one if it is a prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # the first `low` bytes are equal, and the difference is not after `high`
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def excerpt_of(raw: bytes) -> str:
    """Return the beginning of some bytes, for people."""
    text = printable(raw[:_AROUND].decode("utf-8", "backslashreplace"), 2 * _AROUND)
    return f"'{text}{'…' if len(raw) > _AROUND else ''}'"


def answers(plan: SessionPlan, bare: Sequence[Transcript], through: Sequence[Transcript]) -> Aspect:
    """Compare the server's answers. Differences between bare runs are the server's own."""
    own: set[str] = set()
    found: list[str] = []
    broken = all(it.trouble for it in through)
    for place, message in enumerate(plan.messages):
        missing = any(place not in it.answers for it in through)
        if message.id is not None and not (broken and missing):  # the break is reported instead
            new, its_own = _answer_differences(
                [it.answers.get(place) for it in bare], [it.answers.get(place) for it in through]
            )
            found += [f"{message.label}: {it}" for it in new]
            own |= {f"{message.label} {it}" for it in its_own}
    found += _others(bare, through)
    troubles = unusual([it.trouble for it in bare], [it.trouble for it in through])
    found += [f"the session broke off: {it}" if it else "the session went on, but breaks off bare" for it in troubles]
    detail = plural(len(through[0].answers), "answer")
    if own:
        detail += f"; new in each run: {', '.join(sorted(own)[:3])}"
        detail += f" and {len(own) - 3:,} more" if len(own) > 3 else ""
    return Aspect("answers", printable(detail, 400), told(found))


def _answer_differences(bare: Sequence[bytes | None], through: Sequence[bytes | None]) -> tuple[list[str], list[str]]:
    """Return how the answers to one request differ, and the JSON Pointers at which the server itself varies."""
    if any(raw in bare for raw in through):
        return [], []
    if None in bare:
        return ([] if any(bare) or None in through else ["there is an answer through it, and none bare"]), []
    through = [raw for raw in through if raw is not None]
    if not through:
        return ["there is no answer"], []
    first, *others = [_value(raw) for raw in bare]
    if len(set(bare)) == 1 and all(_value(raw) == first for raw in through):
        return ["the same value, in other bytes"], []
    own = [it for other in others for it in differences(first, other)]
    rounds = [[it for it in differences(first, _value(raw)) if not _is_own(it, own)] for raw in through]
    left = [it for it in rounds[0] if all(it.path in [other.path for other in more] for more in rounds[1:])]
    told = [
        f"{it.pointer or 'the answer'} is {excerpt(it.recorded)} bare, {excerpt(it.observed)} through" for it in left
    ]
    return told, [pointer(*it.path) for it in own]


def _is_own(it: Difference, own: Sequence[Difference]) -> bool:
    """Return whether a difference is at a place where the server itself varies, or looks like a time or an id."""
    return looks_volatile(it) or any(_begins(it.path, known.path) or _begins(known.path, it.path) for known in own)


def _begins(path: Path, start: Path) -> bool:
    return begins(tuple(map(str, path)), tuple(map(str, start)))


def _value(raw: bytes | None) -> Any:
    """Return the message without its envelope. A batch is returned as an array under `result`."""
    bodies = parse(raw or b"")
    values = [body.value for body in bodies if isinstance(body, Result | Error | Request | Notification)]
    if len(values) != 1:
        return {"result": [body.value for body in bodies]}
    return {name: inner for name, inner in values[0].items() if name not in ("jsonrpc", "id")}


def _others(bare: Sequence[Transcript], through: Sequence[Transcript]) -> list[str]:
    """Return which requests and notifications were sent more or less often. Log messages are not counted."""
    usual, seen = ([_kinds(it) for it in runs] for runs in (bare, through))
    found = []
    for kind in dict.fromkeys(kind for counts in (*usual, *seen) for kind in counts):
        counts = [it[kind] for it in seen]
        low, high = min(it[kind] for it in usual), max(it[kind] for it in usual)
        if all(not low <= count <= high for count in counts):
            found.append(f"{kind} came {high} times bare, {counts[0]} through")
    return found


def _kinds(transcript: Transcript) -> Counter[str]:
    found: Counter[str] = Counter()
    for raw in transcript.others:
        for body in parse(raw):
            if isinstance(body, Request | Notification):
                found[printable(body.method, 60)] += body.method != LOG
            else:
                found["messages that are not requests or notifications"] += 1
    return found


def _environment(bare: Sequence[StdioRun], through: Sequence[StdioRun]) -> Aspect:
    usual, seen = ([it.facts.get("environment", {}) for it in runs] for runs in (bare, through))
    found = []
    for name in sorted({name for variables in (*usual, *seen) for name in variables}):
        values, known = [it.get(name) for it in seen], [it.get(name) for it in usual]
        if unusual(known, values):
            shown = printable(name, 80)
            if known[0] is None:
                found.append(f"{shown} is set through it, and not bare")
            elif values[0] is None:
                found.append(f"{shown} is not set through it, and is bare")
            else:
                found.append(f"{shown} has another value")
    return Aspect("environment", plural(len(seen[0]), "variable"), told(found))


def _start(bare: Sequence[StdioRun], through: Sequence[StdioRun]) -> Aspect:
    topics = [topic for topic in bare[0].facts if topic != "environment"]
    found = []
    for topic in topics:
        usual, seen = [it.facts.get(topic) for it in bare], [it.facts.get(topic) for it in through]
        if unusual(usual, seen):
            found.append(_topic_text(topic, usual[0], seen[0]))
    return Aspect("start", ", ".join(topics), told(found))


def _topic_text(topic: str, usual: Any, seen: Any) -> str:
    if topic == "arguments":  # they may contain secrets
        return "the server's arguments differ"
    if isinstance(usual, Mapping) and isinstance(seen, Mapping):
        names = [name for name in {**usual, **seen} if usual.get(name) != seen.get(name)]
        pairs = [f"{name} is {_shown(usual.get(name))} bare, {_shown(seen.get(name))} through" for name in names]
        return f"{topic}: {'; '.join(pairs)}"
    return f"{topic}: {_shown(usual)} bare, {_shown(seen)} through"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return printable(" ".join(map(str, value)), 100) or "none"
    return "none" if value is None else printable(str(value), 100)


def ending_check(name: str, bare: Sequence[StdioRun], through: Sequence[StdioRun]) -> Aspect:
    """Compare the end of runs, and the signals before it."""
    found = []
    if unusual([it.server_end for it in bare], [it.server_end for it in through]):
        found.append(f"the server {past(bare[0].server_end)} bare, {past(through[0].server_end)} through")
    if unusual([it.end for it in bare], [it.end for it in through]):
        found.append(f"the client sees that it {past(bare[0].end)} bare, {past(through[0].end)} through")
    usual, seen = [it.signals for it in bare], [it.signals for it in through]
    if unusual(usual, seen):
        found.append(f"the server got {_signals(usual[0])} bare, {_signals(seen[0])} through")
    return Aspect(name, f"the server got {_signals(seen[0])} and {past(through[0].end)}", tuple(found))


def _signals(names: Sequence[str]) -> str:
    return " ".join(names) or "no signal"


def unusual(usual: Sequence[Any], seen: Sequence[Any]) -> list[Any]:
    """Return the first value that was seen, if no run had a usual value."""
    return [*seen[:1]] if all(it not in usual for it in seen) else []


def told(found: Sequence[str]) -> tuple[str, ...]:
    """Return the first differences, and the number of the others."""
    more = len(found) - _MOST
    return (*found[:_MOST], *([f"and {plural(more, 'other difference')}"] if more > 0 else []))


_OF_A_CONNECTION = frozenset("connection keep-alive proxy-connection te trailer transfer-encoding upgrade date".split())
_SECRET = frozenset(("authorization", "cookie", "set-cookie"))


def http_checks(plan: SessionPlan, bare: Sequence[HttpRun], through: Sequence[HttpRun]) -> list[Aspect]:
    """Compare whole sessions."""
    checks = [_requests(bare, through), _sent(through)] if through[0].tapped is not None else []
    checks.append(_responses(bare, through))
    checks += [_received(through)] if through[0].tapped is not None else []
    checks.append(answers(plan, [it.transcript for it in bare], [it.transcript for it in through]))
    return checks


def _requests(bare: Sequence[HttpRun], through: Sequence[HttpRun]) -> Aspect:
    """Compare the heads of the requests that the server received."""
    usual, seen = ([[request for request, _ in run.tapped or ()] for run in runs] for runs in (bare, through))
    found = _count("the server got {} requests", [len(it) for it in usual], [len(it) for it in seen])
    for place in range(min(map(len, (*usual, *seen)))):
        heads, there = [it[place] for it in usual], [it[place] for it in seen]
        label = f"request {place + 1}"
        for what, known, new in (
            ("method", [it.method for it in heads], [it.method for it in there]),
            ("target", [it.target for it in heads], [it.target for it in there]),
        ):
            if unusual(known, new):
                found.append(f"{label}: the {what} is {known[0]} bare, {new[0]} through")
        found += _headers(label, [it.headers for it in heads], [it.headers for it in there])
    return Aspect("requests", f"method, target and headers of {plural(len(seen[0]), 'request')}", told(found))


def _sent(through: Sequence[HttpRun]) -> Aspect:
    """Compare the bodies of requests at both ends of the proxy."""
    found, size = [], 0
    for run in through:
        pairs = list(zip(run.exchanges, run.tapped or (), strict=False))
        size = sum(len(it.sent) for it in run.exchanges)
        for place, (exchange, (request, _)) in enumerate(pairs):
            found += _bodies(
                f"request {place + 1}", exchange.sent, bytes(request.body), "the client sent", "the server"
            )
    return Aspect("client to server", plural(size, "byte"), told([*dict.fromkeys(found)]))


def _received(through: Sequence[HttpRun]) -> Aspect:
    """Compare the bodies of responses at both ends of the proxy."""
    found, size = [], 0
    for run in through:
        size = sum(len(it.body) for it in run.exchanges)
        for place, (exchange, (_, response)) in enumerate(zip(run.exchanges, run.tapped or (), strict=False)):
            label = f"response {place + 1}"
            if response is None:
                found.append(f"{label}: the client got HTTP {exchange.status}, and the server gave none")
            elif not exchange.open:
                found += _bodies(label, response.body, exchange.body, "the server gave", "the client")
    return Aspect("server to client", plural(size, "byte"), told([*dict.fromkeys(found)]))


def _bodies(label: str, one: bytes, other: bytes, giver: str, taker: str) -> list[str]:
    if one == other:
        return []
    at = first_difference(one, other)
    there, here = excerpt_of(one[at:]), excerpt_of(other[at:])
    return [f"{label}, byte {at + 1:,} of {len(one):,}: {giver} {there}, {taker} got {here}"]


def _responses(bare: Sequence[HttpRun], through: Sequence[HttpRun]) -> Aspect:
    """Compare status lines and headers, as the client saw them."""
    usual, seen = [it.exchanges for it in bare], [it.exchanges for it in through]
    found = _count("the client got {} responses", [len(it) for it in usual], [len(it) for it in seen])
    for place in range(min(map(len, (*usual, *seen)))):
        known, new = [it[place] for it in usual], [it[place] for it in seen]
        label = f"response {place + 1}"
        if unusual([_status(it) for it in known], [_status(it) for it in new]):
            found.append(f"{label} is {_status(known[0])} bare, {_status(new[0])} through")
        found += _headers(label, [it.headers for it in known], [it.headers for it in new])
    return Aspect("responses", f"status and headers of {plural(len(seen[0]), 'response')}", told(found))


def _status(exchange: ClientExchange) -> str:
    if not exchange.status:
        return printable(exchange.trouble or "missing", 100)
    return printable(f"{exchange.status} {exchange.reason}", 100)


def _headers(label: str, bare: Sequence[Headers], through: Sequence[Headers]) -> list[str]:
    """Return which headers differ. Values that are new in each bare run are the server's own."""
    usual, seen = [_by_name(it) for it in bare], [_by_name(it) for it in through]
    found = []
    for name in dict.fromkeys(name for headers in (*usual, *seen) for name in headers):
        known, new = [it.get(name) for it in usual], [it.get(name) for it in seen]
        own = len({*map(str, known)}) > 1 and None not in known
        if name in _OF_A_CONNECTION or not unusual(known, new) or (own and None not in new):
            continue
        if name == "mcp-session-id" and None not in (*known, *new):  # only a new session may change it
            continue
        header = printable(name, 60)
        found.append(
            f"{label}: the header {header} is {_header_text(name, known[0])} bare, {_header_text(name, new[0])} through"
        )
    return found


def _header_text(name: str, values: Sequence[str] | None) -> str:
    if values is None:
        return "absent"
    return "another one" if name in _SECRET else printable(", ".join(values), 100)


def _by_name(headers: Headers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return found


def _count(sentence: str, bare: Sequence[int], through: Sequence[int]) -> list[str]:
    return [f"{sentence.format(bare[0])} bare, {through[0]} through"] if unusual(bare, through) else []
