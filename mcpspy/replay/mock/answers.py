"""A capture that answers single requests, so that part of a server is recorded and the rest is live.

A gate takes a request from the stream and needs one message back, at once. So only the response of a recorded turn is
used. What else the server sent in that turn (progress, notifications, its own requests) is left out, and a request
without a response in the capture cannot be answered. The recording is chosen as in `mock`. A request that was not
recorded is forwarded to the live server, unless the nearest recording may answer.
"""

from collections.abc import Callable

from mcpspy.replay.issued_values import rewritten
from mcpspy.replay.match.strategies import Matcher
from mcpspy.replay.script.load import load
from mcpspy.replay.script.turns import Turn
from mcpspy.wire.jsonrpc import Request, parse


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
