"""Which recorded turn answers a request, as a table of strategies: `STRATEGIES`; and the recorded answers of a gate.

The first strategy is always in use: it returns the turn whose request is the same. Each other strategy is an option of
`mcpspy mock`, and is used if the earlier ones have found nothing.

Two requests are the same if their method and params are equal, except for what a client states about itself and the
moment: progress token, name and capabilities, trace context. Missing params equal empty params. Requests that are the
same are answered in their recorded order, and the last response is repeated, so that a client may poll. A request that
was never recorded is a miss, which names the nearest recorded request and the first difference.

To add a strategy, add a method that finds a turn to `Matcher`, and a row to the table.

A gate takes a request from the stream and needs one message back, at once. So only the response of a recorded turn is
used (`RecordedAnswers`). What else the server sent in that turn (progress, notifications, its own requests) is left
out, and a request without a response in the capture cannot be answered. A request that was not recorded is forwarded to
the live server, unless the nearest recording may answer.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mcpspy.replay.differences import Difference, differences, excerpt
from mcpspy.replay.issued_values import canonical, rewritten
from mcpspy.replay.script import Turn, load
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
    """The most similar recorded request; it has another method only if no request has this one."""
    difference: Difference | None
    """The first difference, as a pointer from `params` on; None if the methods differ."""

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
        return f"{asked} was not recorded; {near}, with {recorded} at {self.difference.pointer} instead of {observed}"


class Matcher:
    """The requests of some scripts, which may be sent in any order."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = [turn for turn in turns if turn.exchange]
        self._alike: dict[str, list[Turn]] = {}
        self._named: dict[tuple[str, str | None], list[Turn]] = {}
        for turn in self._turns:
            assert turn.method is not None
            self._alike.setdefault(key(turn.method, turn.params), []).append(turn)
            self._named.setdefault((turn.method, turn.name), []).append(turn)
        self._alike = {asked: _without_retried(turns) for asked, turns in self._alike.items()}

    def by_params(self, request: Request) -> Turn | None:
        """Return the turn whose method and params are equal."""
        turns = self._alike.get(key(request.method, request.params))
        return _next(turns) if turns else None

    def by_name(self, request: Request) -> Turn | None:
        """Return the turn whose method and name are equal."""
        turns = self._named.get((request.method, subject(request.method, request.params)))
        return _next(turns) if turns else None

    def miss(self, request: Request) -> Miss:
        """Return how a request differs from the most similar recorded request."""
        name = subject(request.method, request.params)
        same = [turn for turn in self._turns if turn.method == request.method]
        near = [turn for turn in same if turn.name == name] or same
        if not near:
            known = {str(turn.method): turn for turn in reversed(self._turns)}
            names = get_close_matches(request.method, known, n=1)
            return Miss(request.method, name, known[names[0]] if names else None, None)
        params = {"params": plain(request.method, request.params)}
        found = [(differences({"params": plain(request.method, turn.params)}, params), turn) for turn in near]
        fewest, nearest = min(found, key=lambda pair: len(pair[0]))
        return Miss(request.method, name, nearest, fewest[0] if fewest else None)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to find the turn that answers a request."""

    name: str
    """Its option is `--NAME`; the first one in the table has no option."""
    find: Callable[[Matcher, Request], Turn | None]
    notice: str = ""
    """The words by which the user is told that this strategy found the answer; empty for no notice."""


STRATEGIES = (
    Strategy("exact", Matcher.by_params),
    Strategy("loose", Matcher.by_name, notice="answered by name alone"),
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


def _next(turns: list[Turn]) -> Turn:
    return turns.pop(0) if len(turns) > 1 else turns[0]


class RecordedAnswers:
    """The responses of some turns; call it with a request to get the recorded response."""

    def __init__(self, turns: list[Turn], *, nearest: bool) -> None:
        self._matcher = Matcher(turn for turn in turns if turn.response)
        self._nearest = nearest

    def __call__(self, frame: bytes) -> bytes | None:
        """Return the recorded response to the request in a frame, with its id; None if there is none."""
        bodies = parse(frame)
        request = bodies[0]
        if len(bodies) != 1 or not isinstance(request, Request):
            return None
        turn = self._matcher.by_params(request) or (self._nearest_turn(request) if self._nearest else None)
        if turn is None or turn.response is None:
            return None
        return rewritten(turn.response, {("id",): request.id})

    def _nearest_turn(self, request: Request) -> Turn | None:
        """Return the turn most similar to a request: one with the same name, else one with the same method."""
        turn = self._matcher.by_name(request) or self._matcher.miss(request).nearest
        return turn if turn and turn.method == request.method else None


def answers(path: str, miss: str, say: Callable[[str], None]) -> RecordedAnswers:
    """Return the answers from the capture at a path; `miss` is `forward` or `nearest`. Raises CaptureError."""
    return RecordedAnswers(load(path, say).turns, nearest=miss == "nearest")
