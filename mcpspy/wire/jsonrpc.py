"""Parse the bytes of a frame into JSON-RPC 2.0 messages (https://www.jsonrpc.org/specification).

The rules:

- The keys of a message decide its kind, never the truth of their values: `{}` is the usual result, and `tools/list` has
  no params.
- An id keeps its type, and a number also keeps its digits: 1, 1.0, "1" and 1e0 are four ids. Integers of any length
  keep their digits (R-05).
- Nothing raises. What is not a message is `Invalid`, with the reason.
- What only a strict parser refuses (a lone surrogate, NaN, a byte order mark) is decoded as most peers decode it, and
  `refused` has the reason.
"""

import json
import re
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
    """A message that is too large to decode, and whose kind its two ends do not show (`mcpspy.wire.outline`)."""

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
