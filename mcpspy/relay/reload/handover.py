"""The requests that are open between a client and its server, and how the next server takes the session over.

Frames pass unchanged except for their ids. The ids of the client never change: we answer the requests that the old
server left open, so no id is in use twice. A new server counts its own requests from the start again. If a request has
an id that an earlier server used, it gets one of our ids, and the client's response gets the server's id back. If
earlier servers used too many ids to remember, every request gets one of our ids. Requests that an earlier server still
had open are cancelled, and late responses to them are dropped.

Some messages of the client are repeated to a new server: the handshake, which is the client's own `initialize` or
`server/discover`, and `logging/setLevel` and `resources/subscribe`. (2026-07-28 has no handshake; there the response to
`server/discover` shows that the server runs.) The new server's response is compared with the one that the client has.
If the client was told that a list can change, it gets the `list_changed` notification. Other differences become notices
for the user.

This module is pure: it accepts lines and returns verdicts, frames and sentences. It knows no processes, threads or
times. The session has a lock.
"""

from mcpspy.capture.format import OWN_ID, RELOAD
from mcpspy.gate.gate import PASS, Drop, Pass, Send
from mcpspy.gate.messages import CANCELLED, Envelope, decode, edited, json_of, json_text
from mcpspy.json_values import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpspy.gate.messages import Key

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
"""The key of `_meta` with which a notification names its subscription (2026-07-28)."""

_LISTS = ("tools", "prompts", "resources")
_LEVEL, _SUBSCRIBE, _UNSUBSCRIBE = "logging/setLevel", "resources/subscribe", "resources/unsubscribe"
_LONGEST = 500  # the most characters of a server's error that are quoted
_SUBSCRIBED = 1000  # the most resources whose subscription is repeated


class Repeats:
    """The messages of one client that are sent again to the next server."""

    def __init__(self) -> None:
        self.handshake: bytes | None = None
        """The successful handshake request as the client sent it; None if there was none."""
        self.initialized: bytes | None = None
        """The client's `notifications/initialized`."""
        self._method = ""
        self._told: Any = None  # the result that the client has
        self._level: bytes | None = None
        self._subscribed: dict[str, bytes] = {}
        self._hinted: set[str] = set()

    def sent(self, message: Envelope, raw: bytes) -> None:
        """Note a message that the client has sent, if it must be repeated."""
        if message.method == "notifications/initialized":
            self.initialized = raw
        elif message.method == _LEVEL and message.kind == "request":
            self._level = raw
        elif message.method == _SUBSCRIBE and message.name is not None and len(self._subscribed) < _SUBSCRIBED:
            self._subscribed[message.name] = raw
        elif message.method == _UNSUBSCRIBE and message.name is not None:
            self._subscribed.pop(message.name, None)

    def agreed(self, method: str, request: bytes, response: bytes) -> None:
        """Note the server's response to the client's handshake; a discovery does not replace an `initialize`."""
        if method == "initialize" or self._method != "initialize":
            self._method, self.handshake, self._told = method, request, member(decode(response), "result")

    def requests(self) -> list[bytes]:
        """Return the client's requests to repeat once the new server is initialized."""
        return ([self._level] if self._level else []) + list(self._subscribed.values())

    def compare(self, response: bytes) -> tuple[list[bytes], list[str]]:
        """Compare a new server with the old one by its response to `handshake`.

        Returns notifications for the client, and sentences for the user. Raises ValueError with the reason if the
        server refused the handshake.
        """
        answer = decode(response)
        result = member(answer, "result")
        told = member(answer, "error", "message")
        if type(result) is not dict:
            raise ValueError(f"it refused {self._method}" + (f": {told[:_LONGEST]}" if type(told) is str else ""))
        before, now = (_capabilities(it) for it in (self._told, result))
        sentences = [f"the client cannot be told that the server {what}" for what in _differences(before, now)]
        spoken, speaks = (member(it, "protocolVersion") for it in (self._told, result))
        if spoken != speaks:
            sentences.append(f"the server answers with revision {speaks}, and the client was told {spoken}")
        if sentences:
            sentences.append("restart the client to let it see the new server")
        frames = []
        if self._method == "initialize" and self.initialized:
            frames = [_list_changed(name) for name in _LISTS if name in now and _may_change(before, name)]
            silent = [name for name in _LISTS if name in now and name in before and not _may_change(before, name)]
            hint = f"the server does not declare listChanged for {', '.join(silent)}: the client keeps its old lists"
            if silent and hint not in self._hinted:
                self._hinted.add(hint)
                sentences.append(hint)
        return frames, sentences


def _changes_for(key: "Key", params: "Any") -> list[bytes]:
    """Return the `list_changed` notifications for a subscription that has acknowledged them (2026-07-28)."""
    meta = b'"_meta":{"' + SUBSCRIPTION.encode() + b'":' + json_of(key) + b"}"
    asked = member(params, "notifications")
    return [_list_changed(name, meta) for name in _LISTS if member(asked, f"{name}ListChanged") is True]


def _list_changed(name: str, params: bytes = b"") -> bytes:
    tail = b',"params":{' + params + b"}}" if params else b"}"
    return b'{"jsonrpc":"2.0","method":"notifications/' + name.encode() + b'/list_changed"' + tail


def _capabilities(result: "Any") -> "dict[str, Any]":
    found = member(result, "capabilities")
    return found if isinstance(found, dict) else {}


def _may_change(capabilities: "dict[str, Any]", name: str) -> bool:
    return member(capabilities, name, "listChanged") is True


def _differences(before: "dict[str, Any]", now: "dict[str, Any]") -> list[str]:
    lost, gained = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    return ([f"no longer has {', '.join(lost)}"] if lost else []) + ([f"now has {', '.join(gained)}"] if gained else [])


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
                return (Drop(RELOAD), _changes_for(key, params)) if again else (PASS, [])
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
