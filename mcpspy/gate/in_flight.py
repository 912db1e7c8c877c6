"""The requests that wait for a response: by session, sender and id, their method and name.

A response has neither, so a gate on the responses of `tools/call` finds them here. Bounded: the oldest request of a
session and sender gives way to a new one, and the oldest session to a new one. A response to a request that was
forgotten matches no method and no name.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcpspy.gate.messages import Envelope, Key

REQUESTS = 4096
"""Requests of one session and sender that are kept."""
SENDERS = 2048
"""Sessions and senders that are kept."""
_LONGEST = 1024  # characters of an id, method or name; what is longer would make the bounds worthless


class InFlight:
    """Method and name of requests without a response."""

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
        """Method and name of the request of that sender; two times None where there is none."""
        ids = self._requests.get((session, sender))
        return ids.get(key, (None, None)) if ids and key else (None, None)

    def forget(self, session: "Hashable", sender: str, key: "Key | None") -> None:
        """The request was answered."""
        ids = self._requests.get((session, sender))
        if ids and key:
            ids.pop(key, None)
            if not ids:
                del self._requests[session, sender]

    def any(self, session: "Hashable", sender: str) -> bool:
        """Whether a request of that sender waits."""
        return (session, sender) in self._requests
