"""A capture that answers single requests, so that some of a server is recorded and the rest is live.

A gate takes a request from the stream and needs one message back, at once. So of a recorded turn only the response is
used: what else the server said meanwhile (progress, notifications, its own requests) is left out, and a request that
has no response in the capture cannot be answered from it. Which recording answers is decided as `mock` does it; a
request that was not recorded goes on to the live server, unless the nearest recording may answer.
"""

from collections.abc import Callable

from mcpspy.replay.match.strategies import Matcher
from mcpspy.replay.script.edit import rewritten
from mcpspy.replay.script.load import load
from mcpspy.replay.script.turns import Turn
from mcpspy.wire.jsonrpc import Request, parse


class RecordedAnswers:
    """The responses in some turns; call it with a request to get the response that was recorded."""

    def __init__(self, turns: list[Turn], *, nearest: bool) -> None:
        self._matcher = Matcher(turn for turn in turns if turn.response)
        self._nearest = nearest

    def __call__(self, frame: bytes) -> bytes | None:
        """The recorded response to the request in a frame, under its id; None where there is none."""
        bodies = parse(frame)
        request = bodies[0]
        if len(bodies) != 1 or not isinstance(request, Request):
            return None
        turn = self._matcher.by_params(request) or (self._nearest_turn(request) if self._nearest else None)
        if turn is None or turn.response is None:
            return None
        return rewritten(turn.response, {("id",): request.id})

    def _nearest_turn(self, request: Request) -> Turn | None:
        """The turn that is most like a request: one of the same name, else one of the same method."""
        turn = self._matcher.by_name(request) or self._matcher.miss(request).nearest
        return turn if turn and turn.method == request.method else None


def answers(path: str, miss: str, say: Callable[[str], None]) -> RecordedAnswers:
    """What answers from the capture at a path; `miss` is `forward` or `nearest`. Raises CaptureError."""
    return RecordedAnswers(load(path, say).turns, nearest=miss == "nearest")
