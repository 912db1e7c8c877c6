"""The requests that are open between a client and its server, and how the next server takes them over.

Frames pass unchanged except for their ids. The ids of the client never change: we answer the requests that the old
server left open, so no id is in use twice. A new server counts its own requests from the start again. If a request has
an id that an earlier server used, it gets one of our ids, and the client's response gets the server's id back. If
earlier servers used too many ids to remember, every request gets one of our ids. Requests that an earlier server still
had open are cancelled, and late responses to them are dropped.

This module is pure: it accepts lines and returns verdicts. It knows no processes, threads or times. The session has a
lock.
"""

from mcpspy.capture.format import OWN_ID, RELOAD
from mcpspy.gate.gate import PASS, Drop, Pass, Send
from mcpspy.gate.messages import CANCELLED, Envelope, decode, edited, json_of, json_text
from mcpspy.json_values import member
from mcpspy.relay.reload.repeats import SUBSCRIPTION, Repeats, changes_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.gate.messages import Key

Carried = Pass | Send | Drop
"""The verdict on a line."""

HANDSHAKES = ("initialize", "server/discover")
LISTEN = "subscriptions/listen"
_RESENT = (*HANDSHAKES, LISTEN)
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_REMEMBERED = 4096  # the most ids of requests that are kept for later messages
_INTERNAL = -32603  # the JSON-RPC error for a failure that the caller did not cause


class _Running:
    """A request of the client without a response."""

    __slots__ = ("acknowledged", "method", "raw", "resent")

    def __init__(self, method: str, raw: bytes) -> None:
        self.method = method
        self.raw = raw if method in _RESENT else b""
        self.acknowledged = False  # whether the client got the acknowledgement of a `subscriptions/listen`
        self.resent = False  # whether we sent the request to this server again


class Handover:
    """The open requests of one client's session."""

    def __init__(self) -> None:
        self.repeats = Repeats()
        self.served = False
        """Whether any server has answered a request of the client."""
        self._running: dict[Key, _Running] = {}
        self._refused: set[Key] = set()  # requests of the client that we answered with an error
        self._asked: dict[Key, Key] = {}  # open requests of this server: the id for the client -> the server's id
        self._ids: set[Key] = set()  # the ids that this server's requests had
        self._earlier: set[Key] = set()  # the ids that requests of earlier servers had
        self._all_renumbered = False  # whether these were too many to keep
        self._abandoned: set[Key] = set()  # requests of earlier servers that the client may still answer
        self._renumbered = 0
        self._own = 0
        self._answers: dict[Key, bytes | None] = {}  # the responses to our own requests

    @property
    def idle(self) -> bool:
        """Whether no request is open, except for subscriptions, which stay open."""
        return not self._asked and all(it.method == LISTEN for it in self._running.values())

    @property
    def shaking(self) -> bool:
        """Whether the client waits for the response to its handshake."""
        return any(it.method in HANDSHAKES for it in self._running.values())

    # Lines from the client.

    def to_server(self, raw: bytes, messages: tuple[Envelope, ...]) -> Carried:
        """Return the verdict on a line of the client before it is forwarded."""
        single = len(messages) == 1
        for message in messages:
            if message.kind == "request" and message.id and message.method:
                self._running[message.id] = _Running(message.method, raw if single else b"")
            elif message.answers and message.id:
                if message.id in self._asked:
                    own = self._asked.pop(message.id)
                    if own != message.id and single:
                        return Send((_with(raw, "/id", own),), RELOAD)
                elif message.id in self._abandoned and single:
                    self._abandoned.discard(message.id)
                    return Drop(RELOAD)
            elif message.cancels and single:
                if message.cancels in self._refused:
                    self._refused.discard(message.cancels)
                    return Drop(RELOAD)
                running = self._running.get(message.cancels)
                if running and running.method not in HANDSHAKES:  # it gets no response, and is not sent again
                    del self._running[message.cancels]
        if single:
            self.repeats.sent(messages[0], raw)
        return PASS

    def refuse(self, key: "Key", reason: str, facts: dict[str, object]) -> bytes:
        """Return the error with which we answer a request in place of the server."""
        if len(self._refused) >= _REMEMBERED:
            self._refused.clear()
        self._refused.add(key)
        error = {"code": _INTERNAL, "message": reason, "data": {"by": "mcpspy wrap --reload", **facts}}
        return b'{"jsonrpc":"2.0","id":' + json_of(key) + b',"error":' + json_text(error).encode() + b"}"

    # Lines from the server.

    def to_client(self, raw: bytes, messages: tuple[Envelope, ...]) -> tuple[Carried, list[bytes]]:
        """Return the verdict on a line of the server, and our own frames that follow it."""
        single = len(messages) == 1
        for message in messages:
            if message.answers and message.id:
                if message.id in self._answers:
                    self._answers[message.id] = raw
                    return Drop(RELOAD), []
                self._answered(message, raw)
            elif message.kind == "request" and message.id and single:
                return self._ask(message.id, raw), []
            elif message.cancels and single:
                return self._cancel(message.cancels, raw), []
            elif message.method == _ACKNOWLEDGED and single:
                return self._acknowledge(raw)
        return PASS, []

    def _answered(self, message: Envelope, raw: bytes) -> None:
        running = self._running.pop(message.id, None) if message.id else None
        if running:
            self.served = True
            if running.method in HANDSHAKES and message.kind == "result":
                self.repeats.agreed(running.method, running.raw, raw)

    def _ask(self, own: "Key", raw: bytes) -> Carried:
        """Register a request of the server; change its id if an earlier server used the same one."""
        known = own
        if own in self._earlier or self._all_renumbered:
            self._renumbered += 1
            known = "string", f"{OWN_ID}server-{self._renumbered}"
        elif len(self._ids) < _REMEMBERED:
            self._ids.add(own)
        self._asked[known] = own
        return PASS if known == own else Send((_with(raw, "/id", known),), RELOAD)

    def _cancel(self, own: "Key", raw: bytes) -> Carried:
        known = next((known for known, its in self._asked.items() if its == own), own)
        self._asked.pop(known, None)
        return PASS if known == own else Send((_with(raw, "/params/requestId", known),), RELOAD)

    def _acknowledge(self, raw: bytes) -> tuple[Carried, list[bytes]]:
        """Handle the acknowledgement of a subscription; drop it if the client got one before."""
        params = member(decode(raw), "params")
        named = member(params, "_meta", SUBSCRIPTION)
        for key, running in self._running.items():
            if running.method == LISTEN and named is not None and key[1] == str(named):
                again = running.resent and running.acknowledged
                running.acknowledged, running.resent = True, False
                return (Drop(RELOAD), changes_for(key, params)) if again else (PASS, [])
        return PASS, []

    # The change from one server to the next.

    def leave(self, reason: str, facts: dict[str, object], *, keep: bool) -> list[bytes]:
        """Close the requests that are open with a server that has exited; return frames for the client.

        With `keep`, the handshake and subscriptions stay open for the next server (`resent`).
        """
        frames = [_cancelled(known) for known in self._asked]
        self._abandoned = set(self._asked) | (self._abandoned if len(self._abandoned) < _REMEMBERED else set())
        self._asked.clear()
        self._earlier |= self._ids
        self._ids.clear()
        self._all_renumbered = self._all_renumbered or len(self._earlier) >= _REMEMBERED
        if self._all_renumbered:
            self._earlier.clear()
        self._answers.clear()
        kept = {key: it for key, it in self._running.items() if keep and it.method in _RESENT and it.raw}
        frames += [self.refuse(key, reason, facts) for key in self._running if key not in kept]
        self._running = kept
        return frames

    def resent(self, *, handshake: bool) -> list[bytes]:
        """Return the open requests to send again: those of the handshake, or all others."""
        found = [it for it in self._running.values() if (it.method in HANDSHAKES) == handshake]
        for running in found:
            running.resent = True
        return [it.raw for it in found]

    def own(self, raw: bytes) -> "tuple[Key, bytes]":
        """Repeat a request of the client as one of our own; return its id and the frame."""
        self._own += 1
        key = "string", f"{OWN_ID}{RELOAD}-{self._own}"
        self._answers[key] = None
        return key, _with(raw, "/id", key)

    def answer(self, key: "Key") -> bytes | None:
        """Return the response to a request of our own; None if there is none yet."""
        return self._answers.get(key)


def _with(raw: bytes, path: str, key: "Key") -> bytes:
    """Return the frame with another id at a path; every other byte stays."""
    return edited(raw, "lines", [{"op": "replace", "path": path, "value": decode(json_of(key))}])


def _cancelled(known: "Key") -> bytes:
    return (
        b'{"jsonrpc":"2.0","method":"' + CANCELLED.encode() + b'","params":{"requestId":' + json_of(known)
        + b',"reason":"the server was reloaded"}}'
    )  # fmt: skip
