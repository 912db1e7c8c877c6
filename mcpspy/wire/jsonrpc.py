"""JSON-RPC 2.0 messages in the bytes of a frame (https://www.jsonrpc.org/specification), and what is there instead.

The rules of `parse`:

- The keys of a message decide its kind, never the truth of their values: `{}` is the usual result, and `tools/list` has
  no params.
- An id keeps its type, and a number also keeps its digits: 1, 1.0, "1" and 1e0 are four ids. Integers of any length
  keep their digits (R-05).
- Nothing raises. What is not a message is `Invalid`, with the reason.
- What only a strict parser refuses (a lone surrogate, NaN, a byte order mark) is decoded as most peers decode it, and
  `refused` has the reason.

The kind of a message that is too large to decode is found from its first and last bytes (`outline`). Peers write the
members of a message in any order. `jsonrpc`, `id` and `method` are short, and the large member comes first or last. So
members are read from the front up to the first one that does not end within those bytes, and short members are read
from the back. What neither end shows stays unknown.

Some lines that are no message hold messages between other text (`messages_within`).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import orjson

from mcpspy.json_values import Number
from mcpspy.wire.log_records import is_log_record

_INT_DIGITS = 4300  # CPython's own limit for converting digits to an integer
_LONG_INTEGER = re.compile(rb"[:\[,]\s*-?[0-9]{19}")  # orjson rounds integers below -2**63 and from 2**64 on
_DIGITS = bytes(ord("0") if byte in b"0123456789" else 32 for byte in range(256))
_DEEPEST = 1024
"""The deepest nesting of a message: orjson's own limit. Python's parser reads 994 levels in 3.11, 9,998 in 3.13."""
_EVERY = 9  # bytes: among 19 digits in a row, a sample of every ninth byte has at least two in a row


class Id(NamedTuple):
    """A JSON-RPC id, comparable by type and exact value."""

    kind: str
    """`string`, `number`, `null`, or `other` (true, false, an array, an object: not valid as an id)."""
    token: str
    """The string itself, or the JSON text of any other value."""

    @classmethod
    def of(cls, value: Any) -> "Id":
        """Return the id of a decoded JSON value."""
        if type(value) is str:
            return cls("string", value)
        if type(value) is int or type(value) is float or type(value) is Number:
            return cls("number", str(value))
        if value is None:
            return cls("null", "null")
        try:
            return cls("other", json.dumps(value, separators=(",", ":")))
        except RecursionError:
            return cls("other", "too deep to tell")

    @property
    def loose(self) -> str:
        """The token as a careless peer compares it: it is the same for "3", " 3", 3 and 3.0."""
        try:
            value = float(self.token)
            return str(int(value)) if value.is_integer() else self.token.strip()
        except (ValueError, OverflowError):
            return self.token.strip()

    def beside(self, wrong: "Id") -> str:
        """Return the id for a sentence about a similar one that is wrong: with its type, if the types differ."""
        kinds = {"string": "a string", "number": "a number"}
        differ = self.kind != wrong.kind and self.kind in kinds and wrong.kind in kinds
        return f"{self.excerpt} ({kinds[self.kind]})" if differ else self.excerpt

    @property
    def text(self) -> str:
        """The id as JSON, a number with its own digits."""
        return json.dumps(self.token) if self.kind == "string" else self.token

    @property
    def excerpt(self) -> str:
        """The id as JSON, clipped."""
        return str(self)[:60]

    def __str__(self) -> str:
        return f'"{self.token}"' if self.kind == "string" else self.token


@dataclass(slots=True)
class Request:
    """Has a method and an id."""

    value: dict[str, Any]
    refused: str | None
    id: Id
    method: str

    @property
    def params(self) -> Any:
        """The params; None if there are none."""
        return self.value.get("params")


@dataclass(slots=True)
class Notification:
    """Has a method and no id."""

    value: dict[str, Any]
    refused: str | None
    method: str

    @property
    def params(self) -> Any:
        """The params; None if there are none."""
        return self.value.get("params")


@dataclass(slots=True)
class Result:
    """Has a result and an id."""

    value: dict[str, Any]
    refused: str | None
    id: Id

    @property
    def result(self) -> Any:
        """The result, of any type."""
        return self.value["result"]


@dataclass(slots=True)
class Error:
    """Has an error. It has an id only if the peer could read the request."""

    value: dict[str, Any]
    refused: str | None
    id: Id | None

    @property
    def error(self) -> Any:
        """The error, of any type."""
        return self.value["error"]


@dataclass(slots=True)
class Invalid:
    """Not a JSON-RPC message. `reason` tells why; `value` is the decoded JSON, or None."""

    value: Any
    refused: str | None
    reason: str


@dataclass(slots=True)
class Undecoded:
    """A message that is too large to decode, and whose kind its two ends do not show (`mcpspy.wire.jsonrpc`)."""

    value: ClassVar[Any] = None
    refused: ClassVar[str | None] = None


Body = Request | Notification | Result | Error | Invalid


def parse(raw: bytes) -> tuple[Body, ...]:
    """Return the messages of one frame: one message, or those of a batch in order. Never raises."""
    try:
        value = orjson.loads(raw)
        refused = None
        if raw[::_EVERY].translate(_DIGITS).find(b"00") >= 0:  # `in` raises inside, and takes twice as long
            value = _with_long_integers(raw, value)
    except orjson.JSONDecodeError:
        value, refused, reason = _decode_leniently(raw)
        if reason:
            return (Invalid(None, refused, reason),)
    if type(value) is dict:
        return (_message(value, refused, raw, 0),)
    if type(value) is list and value:
        return tuple(_message(element, refused, raw, part) for part, element in enumerate(value))
    what = "an empty batch" if value == [] else f"{_type_name(value)}, not an object"
    return (Invalid(value, refused, what),)


def decode(raw: bytes) -> Any:
    """Return the value of strict JSON, with every digit of its integers. Raises `orjson.JSONDecodeError`."""
    return _with_long_integers(raw, orjson.loads(raw))


def _with_long_integers(raw: bytes, value: Any) -> Any:
    """Return the value of strict JSON. Decode it again if it may have integers that orjson rounds."""
    if b"0" * 19 in raw.translate(_DIGITS) and _LONG_INTEGER.search(raw):  # the pattern alone is ten times slower
        try:
            return json.loads(raw, parse_int=_integer)
        except RecursionError:
            pass
    return value


def _message(value: Any, refused: str | None, raw: bytes, part: int) -> Body:
    if type(value) is not dict:
        return Invalid(value, refused, f"{_type_name(value)}, not an object")
    if "jsonrpc" not in value and is_log_record(value):  # it may have an `id`, a `method` or an `error`
        return Invalid(value, refused, "a log record, not a message")
    own = None
    if "id" in value:
        own = value["id"]
        # The usual case is inlined: `Id(…)` takes three times as long.
        own = tuple.__new__(Id, ("number", str(own))) if type(own) is int else exact_id(own, raw, part, "id")
    if "method" in value:
        method = value["method"]
        if type(method) is not str:
            return Invalid(value, refused, f"method is {_type_name(method)}, not a string")
        return Notification(value, refused, method) if own is None else Request(value, refused, own, method)
    if "error" in value and (value["error"] is not None or "result" not in value):
        return Error(value, refused, own)
    if "result" in value:
        return Invalid(value, refused, "a result without an id") if own is None else Result(value, refused, own)
    return Invalid(value, refused, "neither method nor result nor error")


def exact_id(value: Any, raw: bytes, part: int, *path: str) -> Id:
    """Return the id `value`, found at `path` in a message, with its digits as written."""
    if type(value) is not float:  # only a float loses digits when it is decoded
        return Id.of(value)
    try:
        found = _with_digits(raw)
    except RecursionError:
        return Id.of(value)
    if type(found) is list:
        found = found[part]
    for key in path:
        found = found[key]
    return Id.of(found)


@lru_cache(maxsize=1)  # called once for each element of a batch
def _with_digits(raw: bytes) -> Any:
    return json.loads(_text(raw)[0], parse_float=Number, parse_int=Number, parse_constant=Number)


def _decode_leniently(raw: bytes) -> tuple[Any, str | None, str | None]:
    """Decode JSON that orjson refuses.

    Returns the value, why a strict parser refuses it, and why no parser can read it (None if one can).
    """
    text, refused = _text(raw)
    if not text.strip():
        return None, refused, "a blank line"
    try:
        value = json.loads(text, parse_int=_integer)
    except RecursionError:
        return None, refused, "nested too deeply to decode"
    except ValueError as error:
        where = f" (error at character {error.pos})" if isinstance(error, json.JSONDecodeError) else ""
        return None, refused, f"not JSON{where}"
    if raw.count(b"[") + raw.count(b"{") > _DEEPEST and _is_deeper(value, _DEEPEST):
        return None, refused, "nested too deeply to decode"
    return value, refused or "a lone surrogate, NaN, an infinity, or a number beyond the usual limits", None


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether a value has more than this number of nested arrays and objects."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [it for it in layer if type(it) in (list, dict)]
        if not layer:
            return False
        layer = [inner for it in layer for inner in (it.values() if type(it) is dict else it)]
    return True


def _text(raw: bytes) -> tuple[str, str | None]:
    """Return the text of a frame as lenient peers read it, and the fault of its encoding or None."""
    refused = None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        refused = f"invalid UTF-8 at byte {error.start}"
        text = raw.decode(errors="replace")
    if text.startswith("\ufeff"):
        return text[1:], refused or "a byte order mark"
    return text, refused


def _integer(digits: str) -> int | Number:
    return int(digits) if len(digits) <= _INT_DIGITS else Number(digits)


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


_LONGEST = 1 << 20  # bytes of a line that is searched
_BROKEN = 16  # broken objects after which the search ends
_BEGINNING = re.compile(r'\{\s*"(?:jsonrpc|id|method|result|error|params)"')
_DECODER = json.JSONDecoder()


class Glued(NamedTuple):
    """A message inside a line. The positions are in characters."""

    body: Body
    start: int
    end: int


def messages_within(raw: bytes) -> tuple[str, list[Glued]]:
    """Return a line as text, with the messages inside it. Takes a time that is linear in its length."""
    if b'"jsonrpc"' not in raw or len(raw) > _LONGEST:
        return "", []
    text = raw.decode(errors="replace")
    return text, list(_within(text))


def _within(text: str) -> Iterator[Glued]:
    place = broken = read = 0
    while broken < _BROKEN and (found := _BEGINNING.search(text, place)):
        try:
            _, place = _DECODER.raw_decode(text, found.start())
        except RecursionError:
            return
        except json.JSONDecodeError as error:
            place, read = found.start() + 1, max(read, error.pos)
            broken += 1
            continue
        except ValueError:  # an integer of more digits than Python converts
            place = found.start() + 1
            broken += 1
            continue
        (body,) = parse(text[found.start() : place].encode())
        if place > read and not isinstance(body, Invalid) and "jsonrpc" in body.value:
            yield Glued(body, found.start(), place)  # what a broken object holds as a whole is a part of it


_LENIENT = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number, strict=False)
_KEY = re.compile(r'\s*+,?\s*+("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*')
_LAST = re.compile(r'(?:^|[,{])\s*("[^"\\]*(?:\\.[^"\\]*)*"\s*:\s*(?:"[^"\\]*(?:\\.[^"\\]*)*"|[-+.\w]+))\s*$')
_OPENED = ("params", "error")  # if one of these does not end, its own members are read


def outline(head: bytes, tail: bytes) -> Body | Undecoded:
    """Return a message whose `value` has only the members found in these bytes; `Undecoded` if they do not suffice."""
    value = last_members(tail.decode(errors="replace")) | first_members(head.decode(errors="replace"))
    method, id_ = value.get("method"), Id.of(value["id"]) if "id" in value else None
    if type(method) is str:
        return Request(value, None, id_, method) if id_ else Notification(value, None, method)
    if id_ and "error" in value:
        return Error(value, None, id_)
    if id_ and "result" in value:
        return Result(value, None, id_)
    return Undecoded()


def first_members(text: str) -> dict[str, Any]:
    """Return the members at the start of the object that a text begins with.

    The value of a member that does not end in the text is `None`; for `params` and `error` it has the first members.
    """
    found: dict[str, Any] = {}
    text = text.lstrip("\ufeff \t\r\n")
    at = 1
    while text.startswith("{") and (key := _KEY.match(text, at)):
        name = str(_value(key[1]))
        try:
            value, at = _LENIENT.raw_decode(text, key.end())
        except (ValueError, RecursionError):
            found[name] = first_members(text[key.end() :]) if name in _OPENED else None
            break
        if at == len(text):  # a number may continue
            break
        found[name] = value
    return found


def last_members(text: str) -> dict[str, Any]:
    """Return the last members of an object, from the back up to the first value that is no string, number or word."""
    found: dict[str, Any] = {}
    text = text.rstrip()
    text = text[:-1] if text.endswith("}") else ""
    while match := _LAST.search(text):
        member = _value("{" + match[1] + "}")
        if not isinstance(member, dict):
            break
        found = member | found
        text = text[: match.start()]
    return found


def _value(text: str) -> Any:
    """Decode a JSON text; return None if it is not JSON."""
    try:
        return _LENIENT.decode(text)
    except (ValueError, RecursionError):
        return None
