"""The messages of a frame: what a gate needs to know of them, and how it changes them.

Of each message a gate needs the kind, method, name and id. `wire.jsonrpc` returns more, but costs 20 ms and 10 MB, and
a relay must start quickly. Both agree on the kinds of messages and on ids (a test compares them): the keys of a message
decide its kind, and 1, 1.0 and "1" are three ids.

A frame is changed in a few places: by a JSON Patch (RFC 6902), or by replacing its message. The JSON of a peer is not
parsed and encoded again, so its digits, order, spaces and duplicate names stay. The place of a value in the text is
found, and only its characters are replaced. The C scanner of the standard library skips the values in between. Of
members with the same name the last one counts, as for most parsers. Bytes that are not UTF-8 stay. In an event stream,
the message is in the `data` lines of a block; its other lines stay.
"""

from _json import encode_basestring, encode_basestring_ascii, scanstring

from mcpspy.json_values import only_value, scanner, steps_of, value_at
from mcpspy.wire.subject import subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[str, str]
    """An id: its type (`string`, `number`, `null`) and the string itself, or the number's own digits."""
    from collections.abc import Callable, Iterable, Iterator

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


LARGEST = 1 << 22
"""The length of the largest message that a patch may make, in characters."""
_SPACES = " \t\r\n"


class _Member:
    """A member of an object or an element of an array: where it begins, its key, where its value begins and ends."""

    __slots__ = ("end", "key", "start", "value")

    def __init__(self, start: int, key: str | int, value: int, end: int) -> None:
        self.start = start
        self.key = key
        self.value = value
        self.end = end


def patched(text: str, operations: "Iterable[dict[str, Any]]") -> str:
    """Apply the operations of a JSON Patch to a JSON text. Raises ValueError if one cannot be applied."""
    for operation in operations:
        op, path = operation["op"], operation["path"]
        try:
            if op == "test":
                _test(text, path, operation["value"])
            elif op == "remove":
                text = _remove(text, path)
            elif op == "replace":
                start, end = _span(text, path)
                text = text[:start] + json_text(operation["value"]) + text[end:]
            elif op == "add":
                text = _add(text, path, json_text(operation["value"]))
            else:
                start, end = _span(text, operation["from"])
                moved = text[start:end]
                text = _add(_remove(text, operation["from"]) if op == "move" else text, path, moved)
        except LookupError:
            raise ValueError(f"{op} {path}: there is no such place in the message") from None
        if len(text) > LARGEST:  # each copy of the whole message into itself doubles it
            raise ValueError(f"{op} {path}: the message would have more than {LARGEST} characters")
    return text


def edited(frame: bytes, framing: str, operations: "Iterable[dict[str, Any]]") -> bytes:
    """Return a frame with its message changed by a JSON Patch. Raises ValueError if it cannot be applied."""
    return changed(frame, framing, lambda message: _encoded(patched(_decoded(message), operations)))


def changed(frame: bytes, framing: str, change: "Callable[[bytes], bytes]") -> bytes:
    """Return a frame with its message changed by a function; the data lines of an event are joined by spaces first."""
    if framing != "sse":
        return change(frame)
    return _with_data(frame, lambda data: change(data.replace(b"\n", b" ")))


def with_message(frame: bytes, framing: str, message: bytes) -> bytes:
    """Return the frame with another message, in one line if the framing requires that."""
    if framing in ("lines", "sse"):
        message = message.replace(b"\r", b" ").replace(b"\n", b" ")
    return message if framing != "sse" else _with_data(frame, lambda _: message)


def json_text(value: "Any") -> str:
    """Encode a value as compact JSON, without the `json` module, whose import takes 5 ms."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode_basestring(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    return {None: "null", True: "true", False: "false"}[value] if value is None or type(value) is bool else repr(value)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _with_data(block: bytes, change: "Callable[[bytes], bytes]") -> bytes:
    """Return an event block with changed data, all of it in the first of its `data` lines."""
    from mcpspy.wire.sse import parse_event

    data = parse_event(block).data
    if data is None:
        raise ValueError("the event has no data")
    out, put = [], False
    for line in block.splitlines(keepends=True):
        if line.removeprefix(b"\xef\xbb\xbf").startswith((b"data:", b"data\n", b"data\r")):
            if not put:
                before = line[: line.index(b"data")]
                ending = line[len(line.rstrip(b"\r\n")) :]
                out.append(before + b"data: " + change(data) + ending)
            put = True
        else:
            out.append(line)
    return b"".join(out)


def _root(text: str) -> int:
    """Return where the value of a text begins."""
    return _after_spaces(text, 1 if text.startswith("\ufeff") else 0)


def _after_spaces(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _SPACES:
        at += 1
    return at


def _span(text: str, path: str) -> tuple[int, int]:
    """Return the start and the end of the value at a path. Raises LookupError."""
    at = _root(text)
    for step in steps_of(path):
        at = _member(text, at, step).value
    return at, skip(text, at)


def _member(text: str, at: int, step: str) -> _Member:
    """Return the member or element that a step names in the value at `at`. Raises LookupError."""
    found = None
    for member in _members(text, at):
        if str(member.key) == step:
            found = member
    if found is None:
        raise LookupError(step)
    return found


def _members(text: str, at: int) -> "Iterator[_Member]":
    """Yield the members of an object, or the elements of an array. Raises LookupError for any other value."""
    if text[at] not in "{[":
        raise LookupError("neither an object nor an array")
    close, number = "}" if text[at] == "{" else "]", 0
    at = _after_spaces(text, at + 1)
    while text[at] != close:
        start, key = at, number
        if close == "}":
            name, at = scanstring(text, at + 1, True)
            at = _after_spaces(text, _after_spaces(text, at) + 1)
            end = skip(text, at)
            yield _Member(start, name, at, end)
        else:
            end = skip(text, at)
            yield _Member(start, key, at, end)
        number += 1
        at = _after_spaces(text, end)
        if text[at] == ",":
            at = _after_spaces(text, at + 1)


def _parent(text: str, path: str) -> tuple[int, str]:
    """Return the start of the value that contains the last step of a path, and that step. Raises LookupError."""
    above, slash, _ = path.rpartition("/")
    if not slash:
        raise LookupError("the whole message")
    return _span(text, above)[0], steps_of(path)[-1]


def _add(text: str, path: str, value: str) -> str:
    if not path:
        start, end = _span(text, "")
        return text[:start] + value + text[end:]
    at, step = _parent(text, path)
    members = list(_members(text, at))
    if text[at] == "{":
        same = [member for member in members if member.key == step]
        if same:
            return text[: same[-1].value] + value + text[same[-1].end :]
        return _inserted(text, at, members, len(members), f"{encode_basestring(step)}:{value}")
    place = len(members) if step == "-" else int(step) if step.isdecimal() and str(int(step)) == step else -1
    if not 0 <= place <= len(members):
        raise LookupError(step)
    return _inserted(text, at, members, place, value)


def _inserted(text: str, at: int, members: list[_Member], place: int, new: str) -> str:
    """Return the text with a new member before the one at `place`, or after the last."""
    if place < len(members):
        start = members[place].start
        return f"{text[:start]}{new},{text[start:]}"
    start = members[-1].end if members else at + 1
    return f"{text[:start]}{',' if members else ''}{new}{text[start:]}"


def _remove(text: str, path: str) -> str:
    at, step = _parent(text, path)
    members = list(_members(text, at))
    place = [number for number, member in enumerate(members) if str(member.key) == step]
    if not place:
        raise LookupError(step)
    for number in reversed(place):  # if a name occurs twice, both members are removed
        if number + 1 < len(members):
            text = text[: members[number].start] + text[members[number + 1].start :]
        elif number:
            text = text[: members[number - 1].end] + text[members[number].end :]
            members.pop()
        else:
            text = text[: members[number].start] + text[members[number].end :]
    return text


def _test(text: str, path: str, wanted: "Any") -> None:
    start, end = _span(text, path)
    if not _equal(decode(_encoded(text[start:end])), decode(json_text(wanted).encode("utf-8", "surrogatepass"))):
        raise ValueError(f"test {path}: the value is another")


def _equal(one: "Any", other: "Any") -> bool:
    """Return whether two decoded values are equal; numbers are compared by their value (RFC 6902, 4.6)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other or (isinstance(one, Digits) and float(one) == float(other))
