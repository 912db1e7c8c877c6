"""What differs between runs of an HTTP server, bare and through a proxy: pure functions over what was recorded.

The rules are those of `mcpspy.contract.verify.differences`. Headers that belong to one connection (RFC 9110, 7.6.1) are
a proxy's own, and so is `Date`.
"""

from collections.abc import Sequence

from mcpspy.contract.verify.differences import Aspect, answers, excerpt_of, first_difference, told, unusual
from mcpspy.contract.verify.http import ClientExchange, Headers, HttpRun
from mcpspy.contract.verify.session import SessionPlan
from mcpspy.text import plural, printable

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
