"""The method and name of requests that have no response yet, by session, sender and id.

A response has neither method nor name, so a gate on the responses of `tools/call` finds them here. The number of
entries is limited: a new request replaces the oldest one of its session and sender, and a new session the oldest
session. A response to a forgotten request matches no method and no name.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcpspy.gate.messages import Envelope, Key

REQUESTS = 4096
"""The most requests that are kept for one session and sender."""
SENDERS = 2048
"""The most pairs of session and sender that are kept."""
_LONGEST = 1024  # characters of id, method and name together; longer ones are not kept, to limit memory


class InFlight:
    """The method and name of requests without a response."""

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: dict[tuple[Hashable, str], dict[Key, tuple[str, str | None]]] = {}

    def note(self, session: "Hashable", sender: str, request: "Envelope") -> None:
        """Keep a request."""
        if request.id is None or request.method is None:
            return
        if len(request.id[1]) + len(request.method) + len(request.name or "") > _LONGEST:
            return
        ids = self._requests.get((session, sender))
        if ids is None:
            if len(self._requests) >= SENDERS:
                del self._requests[next(iter(self._requests))]
            ids = self._requests[session, sender] = {}
        if len(ids) >= REQUESTS and request.id not in ids:
            del ids[next(iter(ids))]
        ids[request.id] = request.method, request.name

    def find(self, session: "Hashable", sender: str, key: "Key | None") -> tuple[str | None, str | None]:
        """Return method and name of a request of that sender; twice None if it is not kept."""
        ids = self._requests.get((session, sender))
        return ids.get(key, (None, None)) if ids and key else (None, None)

    def forget(self, session: "Hashable", sender: str, key: "Key | None") -> None:
        """Forget a request that was answered."""
        ids = self._requests.get((session, sender))
        if ids and key:
            ids.pop(key, None)
            if not ids:
                del self._requests[session, sender]

    def any(self, session: "Hashable", sender: str) -> bool:
        """Return whether a request of that sender waits for a response."""
        return (session, sender) in self._requests
