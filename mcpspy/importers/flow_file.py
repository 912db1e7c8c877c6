"""Flow files of mitmproxy, written by `mitmdump -w` and *Save*, read without mitmproxy.

A flow is a dictionary (mitmproxy, `Flow.get_state`). Its `version` counts changes of the format, not releases. From 12
(mitmproxy 7) to 21 (11 and later) everything that is read here is the same; other versions are refused by name. A flow
that was streamed has no body.

The encoding is https://tnetstrings.info, typed netstrings: a decimal length, a colon, the bytes, a type. mitmproxy has
a type `;` of its own for text in addition to `,` for bytes. The input is untrusted: lengths are checked against the
available bytes, and nesting is limited.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, BinaryIO

from mcpspy.importers.captures import VALUES, Captures, Span, TooManyValues, Torn, epoch, play
from mcpspy.importers.exchange import Headers, RecordedExchange, RecordedMessage, Web, place

_DIGITS = 12  # digits of a length
_DEPTH = 32


def spans(file: BinaryIO) -> Iterator[Span]:
    """Yield the positions of the consecutive elements of a file; the position of the file may change between steps.

    Raises Torn if an element is incomplete, or if no element begins at a position.
    """
    file.seek(0, 2)
    end = file.tell()
    place = count = 0
    while place < end:
        count += 1
        file.seek(place)
        digits, colon, _ = file.read(_DIGITS + 1).partition(b":")
        if not colon or not digits.isdigit():
            raise Torn(f"behind flow {count - 1}, at byte {place}, no flow begins")
        size = len(digits) + 1 + int(digits) + 1
        if place + size > end:
            raise Torn(f"it ends inside flow {count}: {place + size - end} bytes are missing")
        yield place, size
        place += size


def loads(raw: bytes) -> Any:
    """Return the value of one element. Raises ValueError."""
    value, end = _value(raw, 0, len(raw), _DEPTH, count())
    if end != len(raw):
        raise ValueError("more than one element")
    return value


def _value(raw: bytes, place: int, end: int, depth: int, numbers: Iterator[int]) -> tuple[Any, int]:
    """Return the element at `place`, which ends before `end`, and its end."""
    if next(numbers) > VALUES:
        raise TooManyValues(f"has more than {VALUES:,} values")
    colon = raw.find(b":", place, place + _DIGITS + 1)
    digits = raw[place:colon]
    if colon < 0 or not digits.isdigit() or not depth:
        raise ValueError("no element")
    start = colon + 1
    stop = start + int(digits)
    if stop >= end:
        raise ValueError("an element that is longer than what holds it")
    kind = raw[stop : stop + 1]
    if kind in (b"]", b"}"):
        return _collection(raw, start, stop, depth - 1, numbers, is_dict=kind == b"}"), stop + 1
    if kind not in _TYPES:
        raise ValueError("an element of no known type")
    return _TYPES[kind](raw[start:stop]), stop + 1


def _collection(raw: bytes, place: int, stop: int, depth: int, numbers: Iterator[int], *, is_dict: bool) -> Any:
    found = []
    while place < stop:
        value, place = _value(raw, place, stop, depth, numbers)
        found.append(value)
    if not is_dict:
        return found
    names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in found[::2]]
    return dict(zip(names, found[1::2], strict=True))


def _number(raw: bytes) -> int:
    if len(raw) > 32:
        raise ValueError("a number of too many digits")
    return int(raw)


_TYPES: dict[bytes, Any] = {
    b",": bytes,
    b";": lambda raw: raw.decode("utf-8", "replace"),
    b"#": _number,
    b"^": float,
    b"!": lambda raw: raw == b"true",
    b"~": lambda _: None,
}


OLDEST, NEWEST = 12, 21
"""Flow format versions."""


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the HTTP flows of a file. Raises CaptureError if captures cannot be written."""
    versions: set[str] = set()

    def parse(raw: bytes) -> RecordedExchange | None:
        flow = loads(raw)
        version = flow["version"]
        if type(version) is not int or not OLDEST <= version <= NEWEST:
            versions.add(_name(version))
            raise ValueError("a version that is not known")
        return _exchange(flow) if flow["type"] == "http" else None

    play(file, spans(file), parse, Web(captures).start, captures.account)
    if versions:
        found = f"flows of format version {', '.join(sorted(versions))}; {OLDEST} to {NEWEST} are read"
        advice = "let mitmproxy 11 rewrite it: mitmdump -nr OLD -w NEW"
        captures.account.fault = "; ".join(filter(None, [captures.account.fault, f"it holds {found} ({advice})"]))


def _name(version: Any) -> str:
    parts = version if isinstance(version, list) else [version]
    return ".".join(str(part) for part in parts[:3])[:20]


def _exchange(flow: dict[str, Any]) -> RecordedExchange:
    request, response, error = flow["request"], flow.get("response"), flow.get("error")
    socket = flow.get("websocket") or {}
    headers = _headers(request["headers"])
    asked = epoch(request["timestamp_start"])
    messages = tuple(_message(message, asked) for message in socket.get("messages") or ())
    if response:
        answered = max(asked, _time(response["timestamp_start"], asked))
        ended = max(answered, _time(response["timestamp_end"], answered))
    else:
        answered = ended = max(asked, _time(error and error.get("timestamp"), asked))
    body = response["content"] if response else None
    code = socket.get("close_code")
    return RecordedExchange(
        origin=place(_text(request["scheme"]), _host(request, headers), int(request["port"])),
        asked=asked,
        answered=answered,
        ended=max([_time(socket.get("timestamp_end"), ended), *(message.wall for message in messages)]),
        head={
            "method": _text(request["method"]),
            "target": _text(request["path"]),
            "version": _text(request["http_version"]).rpartition("/")[2],
        },
        headers=headers,
        body=_bytes(request["content"]),
        status=int(response["status_code"]) if response else None,
        reason=_text(response["reason"]) if response else "",
        response_headers=_headers(response["headers"]) if response else (),
        answer=None if body is None else ((ended, _bytes(body) or b""),),
        peer=_peer(flow.get("client_conn") or {}),
        coded=True,
        broken=_text(error["msg"]) if error else "",
        messages=messages,
        closed=(int(code), _text(socket.get("close_reason") or "")) if code else None,
    )


def _message(message: list[Any], asked: int) -> RecordedMessage:
    opcode, from_client, payload, wall, *_ = message
    return RecordedMessage(_time(wall, asked), bool(from_client), int(opcode), _bytes(payload) or b"")


def _host(request: dict[str, Any], headers: Headers) -> str:
    """Return the name by which the client knows the server; behind a transparent proxy only `Host` has it."""
    named = _text(request.get("authority") or b"") or next((it for name, it in headers if name.lower() == "host"), "")
    name = named.partition("]")[0].lstrip("[") if named.startswith("[") else named.rpartition("@")[2].partition(":")[0]
    return name or _text(request["host"])


def _peer(connection: dict[str, Any]) -> str | None:
    address = connection.get("peername") or connection.get("address")
    return f"{_text(address[0])}:{int(address[1])}" if address else None


def _headers(fields: list[Any]) -> Headers:
    return [(_text(name), _text(value)) for name, value in fields]


def _time(seconds: Any, otherwise: int) -> int:
    return epoch(seconds) if seconds else otherwise


def _bytes(value: Any) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return str(value, "latin-1")
