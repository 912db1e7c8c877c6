"""The client's messages that are repeated to a new server, and the notifications to the client about that server.

The handshake is the client's own `initialize` or `server/discover`. (2026-07-28 has no handshake; there the response to
`server/discover` shows that the server runs.) `logging/setLevel` and `resources/subscribe` are repeated, too. The new
server's response is compared with the one that the client has. If the client was told that a list can change, it gets
the `list_changed` notification. Other differences become notices for the user.

This module is pure: it accepts frames and returns frames and sentences.
"""

from mcpspy.gate.messages import Envelope, decode, json_of
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


def changes_for(key: "Key", params: "Any") -> list[bytes]:
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
