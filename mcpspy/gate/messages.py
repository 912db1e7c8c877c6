"""The parts of a frame's messages that a gate needs: kind, method, name and id.

`wire.jsonrpc` returns more, but costs 20 ms and 10 MB, and a relay must start quickly. Both agree on the kinds of
messages and on ids (a test compares them): the keys of a message decide its kind, and 1, 1.0 and "1" are three ids.
"""

from _json import encode_basestring_ascii

from mcpspy.json_values import only_value, scanner, value_at
from mcpspy.wire.subject import subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[str, str]
    """An id: its type (`string`, `number`, `null`) and the string itself, or the number's own digits."""

CANCELLED = "notifications/cancelled"


class Envelope:
    """One message, without its content."""

    __slots__ = ("cancels", "id", "kind", "method", "name")

    def __init__(self, kind: str, method: str | None, name: str | None, id_: "Key | None") -> None:
        self.kind = kind
        """`request`, `notification`, `result` or `error`."""
        self.method = method
        """None for a response."""
        self.name = name
        """The tool, prompt or resource that the message is about."""
        self.id = id_
        self.cancels: Key | None = None
        """The id of the request that this notification cancels."""

    @property
    def answers(self) -> bool:
        """Whether the message is a response."""
        return self.method is None


def read(frame: bytes, framing: str) -> tuple[Envelope, ...]:
    """Return the messages of a frame: one, those of a batch, or none if it has no JSON-RPC. Never raises.

    `framing` is the framing of the channel.
    """
    try:
        value = decode(message_of(frame, framing))
    except (ValueError, RecursionError):
        return ()
    values = value if type(value) is list else [value]
    found = (_envelope(element) for element in values if type(element) is dict)
    return tuple(envelope for envelope in found if envelope)


def message_of(frame: bytes, framing: str) -> bytes:
    """Return the text of the message: the data of an event block (`framing` is sse), else the frame."""
    if framing != "sse":
        return frame
    from mcpspy.wire.sse import parse_event

    return parse_event(frame).data or b""


def decode(frame: bytes) -> "Any":
    """Return the JSON value of a frame, with its numbers as `Digits`. Raises ValueError or RecursionError."""
    return only_value(frame.decode("utf-8", "replace").removeprefix("\ufeff"), _scan)


def skip(text: str, at: int) -> int:
    """Return the index after the JSON value that begins at `at`. Raises ValueError if there is none."""
    return value_at(text, at, _scan)[1]


class Digits(str):
    """A JSON number as it was written."""

    __slots__ = ()


_scan = scanner(Digits)


def _envelope(value: "dict[str, Any]") -> Envelope | None:
    if "method" in value:
        method, params = value["method"], value.get("params")
        if type(method) is not str:
            return None
        kind = "request" if "id" in value else "notification"
        envelope = Envelope(kind, method, subject(method, params), key_of(value.get("id")) if "id" in value else None)
        if method == CANCELLED and kind == "notification" and type(params) is dict and "requestId" in params:
            envelope.cancels = key_of(params["requestId"])
        return envelope
    key = key_of(value["id"]) if "id" in value else None
    if "error" in value and (value["error"] is not None or "result" not in value):
        return Envelope("error", None, None, key)
    return Envelope("result", None, None, key) if "result" in value and "id" in value else None


def key_of(value: "Any") -> "Key | None":
    """Return the id for a value of `decode`; None if the value is not valid as an id."""
    if type(value) is str:
        return "string", value
    if type(value) is Digits:
        return "number", str(value)
    return ("null", "null") if value is None else None


def json_of(key: "Key") -> bytes:
    """Return an id as JSON."""
    if key[0] != "string":
        return key[1].encode()
    return encode_basestring_ascii(key[1]).encode()
