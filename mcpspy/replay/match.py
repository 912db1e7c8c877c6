"""Which recorded turn answers a request, and which is the nearest if none does; and the recorded answers of a gate.

Two requests are the same if their method and params are equal, except for what a client states about itself and the
moment: progress token, name and capabilities, trace context. Missing params equal empty params. So do params that
differ only where the settings of the capture allow it (`mcpspy.replay.tolerance`), such as a nonce. Requests that are
the same are answered in their recorded order, and the last response is repeated, so that a client may poll.

A request that was never recorded is a miss. It names the nearest recording: the one whose params have the fewest
differences, where each value that differs, is missing or is additional counts. The mock reports this recording, and
`--loose` and the gates with `miss = "nearest"` serve it.

A gate takes a request from the stream and needs one message back, at once. So only the response of a recorded turn is
used (`RecordedAnswers`). What else the server sent in that turn (progress, notifications, its own requests) is left
out, and a request without a response in the capture cannot be answered. A request that was not recorded is forwarded to
the live server, unless the nearest recording may answer.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import inf
from typing import Any

from mcpspy.json_values import walk
from mcpspy.replay import settings
from mcpspy.replay.differences import Difference, differences, excerpt
from mcpspy.replay.issued_values import canonical, rewritten
from mcpspy.replay.script import Turn, load
from mcpspy.replay.tolerance import NO_RULES, Rules
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import Request, parse
from mcpspy.wire.subject import subject

_OF_THE_MOMENT = frozenset(
    "progressToken io.modelcontextprotocol/clientInfo io.modelcontextprotocol/clientCapabilities"
    " traceparent tracestate baggage".split()
)
_OF_ITSELF = frozenset(("clientInfo", "capabilities"))  # the same facts in `initialize`


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that was not recorded."""

    method: str
    name: str | None
    nearest: Turn | None
    """The nearest recorded request; it has another method only if no request has this one."""
    difference: Difference | None
    """The first difference, as a pointer from `params` on; None if the methods differ."""

    @property
    def loose(self) -> Turn | None:
        """The nearest recorded request, if it has the same method and name."""
        turn = self.nearest
        return turn if turn and (turn.method, turn.name) == (self.method, self.name) else None

    @property
    def asked(self) -> str:
        """The method and the name."""
        return f"{self.method} {self.name}" if self.name else self.method

    def __str__(self) -> str:
        """One sentence for people."""
        asked = self.asked
        if self.nearest is None:
            return f"{asked} was not recorded, nor anything like it"
        near = f"the nearest is #{self.nearest.cause.n}"
        if self.difference is None:
            return f"{asked} was not recorded; {near}, {self.nearest.method}"
        recorded, observed = (excerpt(value) for value in (self.difference.recorded, self.difference.observed))
        rule = f" (matcher: {printable(self.difference.matcher, 100)})" if self.difference.matcher else ""
        where = self.difference.pointer
        return f"{asked} was not recorded; {near}, with {recorded} at {where} instead of {observed}{rule}"


class Matcher:
    """The requests of some scripts, which may be sent in any order."""

    def __init__(self, turns: Iterable[Turn], rules: Rules = NO_RULES) -> None:
        self._rules = rules
        requests = [turn for turn in turns if turn.exchange]
        self._alike: dict[str, list[Turn]] = {}
        self._named: dict[tuple[str | None, str | None], list[Turn]] = {}
        self._served: set[Turn] = set()
        for turn in requests:
            self._alike.setdefault(key(turn.method or "", turn.params), []).append(turn)
        self._alike = {asked: _without_retried(turns) for asked, turns in self._alike.items()}
        usable = {turn for turns in self._alike.values() for turn in turns}
        self._turns = [turn for turn in requests if turn in usable]
        for turn in self._turns:
            self._named.setdefault((turn.method, turn.name), []).append(turn)

    def find(self, request: Request) -> Turn | Miss:
        """Return the turn that answers a request, which counts as served from now on, or why there is none."""
        turns = self._alike.get(key(request.method, request.params))
        if turns is None:
            miss = self._miss(request)
            return self.serve(miss.loose) if miss.loose and not miss.difference else miss
        while len(turns) > 1 and turns[0] in self._served:
            turns.pop(0)
        return self.serve(turns[0])

    def knows(self, request: Request) -> bool:
        """Return whether a request with these params was recorded."""
        return key(request.method, request.params) in self._alike

    @property
    def unserved(self) -> list[Turn]:
        """The turns that answered no request."""
        return [turn for turn in self._turns if turn not in self._served]

    def serve(self, turn: Turn) -> Turn:
        """Record that a turn was served."""
        self._served.add(turn)
        return turn

    def _miss(self, request: Request) -> Miss:
        name = subject(request.method, request.params)
        pool = self._named.get((request.method, name)) or [it for it in self._turns if it.method == request.method]
        if pool:
            turn, found = self._nearest(pool, request)
            return Miss(request.method, name, turn, found[0] if found else None)
        known = {str(turn.method): turn for turn in reversed(self._turns)}
        names = get_close_matches(request.method, known, n=1)
        return Miss(request.method, name, known[names[0]] if names else None, None)

    def _nearest(self, pool: Sequence[Turn], request: Request) -> tuple[Turn, list[Difference]]:
        """Return the turn whose params have the fewest differences from those of a request, and these differences.

        Among equals it is the first that was not served yet. If all were, it is the last of those without differences,
        because a client may poll, else the first.
        """
        order = sorted(pool, key=lambda it: it in self._served)
        nearest, found, least = order[0], [], inf
        for turn in order:
            differing = request_differences(turn, request, self._rules)
            weight = sum(map(_weight, differing))
            if weight < least or (not weight and turn in self._served):
                nearest, found, least = turn, differing, weight
            if not least and nearest not in self._served:
                break
        return nearest, found


def request_differences(turn: Turn, request: Request | Turn, rules: Rules) -> list[Difference]:
    """Return where the params of a request differ from the recorded ones, except where the rules allow it.

    A rule that ignores whole messages is about answers.
    """
    method = turn.method or ""
    found = differences(plain(method, turn.params), plain(method, request.params))
    places = Rules(tuple(it for it in rules.tolerances if it.place.path))
    return places.unexpected(method, turn.name, [replace(it, path=("params", *it.path)) for it in found])


def _weight(difference: Difference) -> int:
    """Return how many values differ at a place: all those in an object or array that the other side lacks."""
    return max(
        sum(1 for _, it in walk(value) if not isinstance(it, dict | list) or not it)
        for value in (difference.recorded, difference.observed)
    )


def key(method: str, params: Any) -> str:
    """Return a text that equal requests share."""
    return method + canonical(plain(method, params))


def plain(method: str, params: Any) -> Any:
    """Return the params without what the client states about itself and the moment."""
    if params is None:
        return {}
    if not isinstance(params, dict):
        return params
    kept = {name: value for name, value in params.items() if not (method == "initialize" and name in _OF_ITSELF)}
    meta = kept.pop("_meta", None)
    if isinstance(meta, dict):
        meta = {name: value for name, value in meta.items() if name not in _OF_THE_MOMENT}
    return kept | {"_meta": meta} if meta else kept


def _without_retried(turns: list[Turn]) -> list[Turn]:
    """Return equal turns without those that were unanswered in one session but answered in another."""
    answered = {id(turn.cause.session) for turn in turns if turn.response}
    return [turn for turn in turns if not turn.unanswered or not answered - {id(turn.cause.session)}]


class RecordedAnswers:
    """The responses of some turns; call it with a request to get the recorded response."""

    def __init__(self, turns: list[Turn], rules: Rules = NO_RULES, *, nearest: bool) -> None:
        self._matcher = Matcher((turn for turn in turns if turn.response), rules)
        self._rules = rules
        self._nearest = nearest

    def __call__(self, frame: bytes) -> bytes | None:
        """Return the recorded response to the request in a frame, with its id; None if there is none."""
        bodies = parse(frame)
        request = bodies[0]
        if len(bodies) != 1 or not isinstance(request, Request):
            return None
        turn = self._turn(request)
        if turn is None or turn.response is None:
            return None
        changes = self._rules.echoed(request.method, turn.name, turn.params, request.params, turn.response.body.value)
        return rewritten(turn.response, {("id",): request.id} | changes)

    def _turn(self, request: Request) -> Turn | None:
        """Return the turn that answers a request; with `nearest`, also one of the same method with other params."""
        found = self._matcher.find(request)
        if isinstance(found, Turn):
            return found
        if self._nearest and found.nearest and found.nearest.method == request.method:
            return self._matcher.serve(found.nearest)
        return None


def answers(path: str, miss: str, say: Callable[[str], None]) -> RecordedAnswers:
    """Return the answers from the capture at a path, with the settings beside it; `miss` is `forward` or `nearest`.

    Raises CaptureError or ConfigError.
    """
    rules = settings.read(settings.place(path)).rules
    return RecordedAnswers(load(path, say).turns, rules, nearest=miss == "nearest")
