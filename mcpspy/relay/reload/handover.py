"""What a client and its server have open between them, and what of it the next server takes over.

A frame passes as it is, but for ids. The client's ids stay as they are: a request that the old server left open is
answered by us, so no id is in use twice. A server counts its own requests from the start again, so a request whose id
was one of an earlier server's gets an id of ours, and the client's response gets the server's id back; where earlier
servers had too many ids to keep, every request does. What an earlier server still waited for is cancelled, and a late
response to it goes nowhere.

Pure: lines in, verdicts out. Nothing here knows of processes, threads or times; the session has a lock.
"""

from mcpspy.capture.format import OWN_ID, RELOAD
from mcpspy.gate.messages import CANCELLED, Envelope, decode, json_of
from mcpspy.gate.splice import edited, json_text
from mcpspy.gate.verdicts import PASS, Drop, Pass, Send
from mcpspy.json_values import member
from mcpspy.relay.reload.repeats import SUBSCRIPTION, Repeats, changes_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.gate.messages import Key

Carried = Pass | Send | Drop
"""What becomes of a line."""

HANDSHAKES = ("initialize", "server/discover")
LISTEN = "subscriptions/listen"
_RESENT = (*HANDSHAKES, LISTEN)
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_REMEMBERED = 4096  # ids of requests that are kept for what may still come
_INTERNAL = -32603  # the error of JSON-RPC for what is not the caller's fault


class _Running:
    """A request of the client's without a response."""

    __slots__ = ("acknowledged", "method", "raw", "resent")

    def __init__(self, method: str, raw: bytes) -> None:
        self.method = method
        self.raw = raw if method in _RESENT else b""
        self.acknowledged = False  # of a listen: the client knows that it is heard
        self.resent = False  # and this server was sent it by us


class Handover:
    """The open ends of one client's session."""

    def __init__(self) -> None:
        self.repeats = Repeats()
        self.served = False
        """Whether a server has answered the client at all."""
        self._running: dict[Key, _Running] = {}
        self._refused: set[Key] = set()  # requests of the client that we have answered with an error
        self._asked: dict[Key, Key] = {}  # open requests of this server: the id that the client knows, the server's
        self._ids: set[Key] = set()  # those that requests of this server had for the client,
        self._earlier: set[Key] = set()  # and those of its predecessors'
        self._all_renumbered = False  # there were too many to be kept
        self._abandoned: set[Key] = set()  # requests of predecessors that the client may still answer
        self._renumbered = 0
        self._own = 0
        self._answers: dict[Key, bytes | None] = {}  # responses to our own requests

    @property
    def idle(self) -> bool:
        """Whether no request runs, but for subscriptions, which last."""
        return not self._asked and all(it.method == LISTEN for it in self._running.values())

    @property
    def shaking(self) -> bool:
        """Whether the client waits for the response to its handshake."""
        return any(it.method in HANDSHAKES for it in self._running.values())

    # From the client.

    def to_server(self, raw: bytes, messages: tuple[Envelope, ...]) -> Carried:
        """What the server gets of a line of the client's, which is about to be forwarded."""
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
                if running and running.method not in HANDSHAKES:  # nobody answers it, and it is not sent again
                    del self._running[message.cancels]
        if single:
            self.repeats.sent(messages[0], raw)
        return PASS

    def refuse(self, key: "Key", reason: str, facts: dict[str, object]) -> bytes:
        """The error that answers a request in the server's place."""
        if len(self._refused) >= _REMEMBERED:
            self._refused.clear()
        self._refused.add(key)
        error = {"code": _INTERNAL, "message": reason, "data": {"by": "mcpspy wrap --reload", **facts}}
        return b'{"jsonrpc":"2.0","id":' + json_of(key) + b',"error":' + json_text(error).encode() + b"}"

    # From the server.

    def to_client(self, raw: bytes, messages: tuple[Envelope, ...]) -> tuple[Carried, list[bytes]]:
        """What the client gets of a line of the server's, and frames of ours that follow it."""
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
        """A request of the server's: under another id where a predecessor's had the same."""
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
        """A subscription is heard; one that we have sent again was acknowledged to the client before."""
        params = member(decode(raw), "params")
        named = member(params, "_meta", SUBSCRIPTION)
        for key, running in self._running.items():
            if running.method == LISTEN and named is not None and key[1] == str(named):
                again = running.resent and running.acknowledged
                running.acknowledged, running.resent = True, False
                return (Drop(RELOAD), changes_for(key, params)) if again else (PASS, [])
        return PASS, []

    # From one server to the next.

    def leave(self, reason: str, facts: dict[str, object], *, keep: bool) -> list[bytes]:
        """End what the client has open with a server that is gone; returns frames for the client.

        With `keep` the handshake and subscriptions stay open, for the next server (`resent`).
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
        """Requests that the client still waits for: those of the handshake, or all others."""
        found = [it for it in self._running.values() if (it.method in HANDSHAKES) == handshake]
        for running in found:
            running.resent = True
        return [it.raw for it in found]

    def own(self, raw: bytes) -> "tuple[Key, bytes]":
        """A request of the client's again, as one of our own: its id, and the frame."""
        self._own += 1
        key = "string", f"{OWN_ID}{RELOAD}-{self._own}"
        self._answers[key] = None
        return key, _with(raw, "/id", key)

    def answer(self, key: "Key") -> bytes | None:
        """The response to a request of our own; None while there is none."""
        return self._answers.get(key)


def _with(raw: bytes, path: str, key: "Key") -> bytes:
    """The frame with another id at a place; every other byte stays."""
    return edited(raw, "lines", [{"op": "replace", "path": path, "value": decode(json_of(key))}])


def _cancelled(known: "Key") -> bytes:
    return (
        b'{"jsonrpc":"2.0","method":"' + CANCELLED.encode() + b'","params":{"requestId":' + json_of(known)
        + b',"reason":"the server was reloaded"}}'
    )  # fmt: skip
