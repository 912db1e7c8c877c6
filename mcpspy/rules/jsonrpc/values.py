"""Rules about the JSON of a message: keys, numbers, strings and depth, which parsers treat differently.

They need the bytes, so they look at every frame and must be fast.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from math import isfinite, isinf
from typing import Any

import orjson

from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import Number, excerpt, pointer, walk
from mcpspy.rules.rule import Fault, rule
from mcpspy.wire.jsonrpc import Invalid

_EXACT = 2**53  # larger integers are not exact in JavaScript
LONG_NUMBER = re.compile(rb"[:\[,]\s*-?\d{16}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@rule(
    "jsonrpc/duplicate-key",
    "error",
    "An object has a key twice. Some parsers keep the last value, some the first, and some refuse the message.",
    fix="Write each key once: build the object first, and serialize it with a JSON library.",
    spec="https://www.rfc-editor.org/rfc/rfc8259#section-4",
    about="bytes",
    fails='> | {"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    passes='> | {"jsonrpc":"2.0","id":1,"method":"ping"}',
)
def duplicate_key(message: Message, session: Session) -> Iterator[Fault]:
    """Report a key that is used twice. If none is, serializing the parsed message keeps the number of keys."""
    raw, value = message.frame.raw, message.body.value
    if message.part or not isinstance(value, dict) or is_batch(raw):
        return
    try:
        if raw.count(b'":') == orjson.dumps(value).count(b'":'):
            return
    except (TypeError, orjson.JSONEncodeError):
        pass
    for key in _doubled(raw):
        yield Fault(f"key {excerpt(key)} is used twice in one object")


def _doubled(raw: bytes) -> list[str]:
    found: dict[str, None] = {}

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            found.update(dict.fromkeys(key for key, count in counts.items() if count > 1))
        return seen

    try:
        json.loads(raw.decode(errors="replace").lstrip("\ufeff"), object_pairs_hook=look, parse_int=str)
    except (ValueError, RecursionError):
        return []
    return list(found)[:5]


@rule(
    "jsonrpc/not-a-number",
    "error",
    """A value is NaN, Infinity or -Infinity. JSON does not allow them, although Python writes them by default. The
    TypeScript SDK drops such a frame and waits forever for the answer.""",
    fix="""Send `null`, or leave the member out. In Python, `json.dumps(…, allow_nan=False)` raises an error for such a
    value.""",
    spec="https://www.rfc-editor.org/rfc/rfc8259#section-6",
    about="bytes",
    fails='< | {"jsonrpc":"2.0","id":1,"result":{"mean":NaN}}',
    passes='< | {"jsonrpc":"2.0","id":1,"result":{"mean":null}}',
)
def not_a_number(message: Message, session: Session) -> Iterator[Fault]:
    """Report constants of JavaScript and Python that are not valid JSON, once per frame."""
    named = () if message.part else _constants(message)
    if named:
        values = walk(message.body.value)
        where = next((path for path, value in values if type(value) is float and not isfinite(value)), ())
        yield Fault(f"{named[0]} is not valid JSON", pointer(*where))


def _constants(message: Message) -> list[str]:
    """Return the tokens `NaN` and `Infinity` in a frame, which are not valid JSON, as they are written."""
    raw, found = message.frame.raw, list[str]()
    if not message.body.refused or not (b"NaN" in raw or b"Infinity" in raw):
        return found
    try:
        json.loads(raw.decode(errors="replace").lstrip("\ufeff"), parse_constant=found.append, parse_int=str)
    except (ValueError, RecursionError):
        return []
    return found


@rule(
    "jsonrpc/number-range",
    "warning",
    """An integer is larger than 2^53, so JavaScript rounds it. Or a number is outside the range of a double, so it
    becomes infinity or is refused. A string keeps all digits.""",
    fix="Send a large number as a string.",
    spec="https://www.rfc-editor.org/rfc/rfc8259#section-6",
    about="bytes",
    fails='> | {"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}',
    passes='> | {"jsonrpc":"2.0","id":"12345678901234567890","method":"ping"}',
)
def number_range(message: Message, session: Session) -> Iterator[Fault]:
    """Report a number that loses precision in some peers."""
    if message.part or not (message.body.refused or LONG_NUMBER.search(message.frame.raw)):
        return
    named = bool(_constants(message))  # reported by `jsonrpc/not-a-number`
    for path, value in walk(message.body.value):
        large = isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT
        if large or isinstance(value, Number) or (type(value) is float and isinf(value) and not named):
            limit = f"an integer beyond {_EXACT}" if large else "a number outside the range of a double"
            yield Fault(f"{excerpt(value)} is {limit}, which some peers change or refuse", pointer(*path))
            return


@rule(
    "jsonrpc/lone-surrogate",
    "error",
    """A string has half of a surrogate pair, which UTF-8 cannot encode. The Python SDK drops the message and goes on
    waiting.""",
    fix="Do not cut a string inside a surrogate pair; in JavaScript, call `toWellFormed()` on it.",
    meanwhile="Replace the half with U+FFFD, and keep the message.",
    spec="https://www.rfc-editor.org/rfc/rfc8259#section-8.2",
    about="bytes",
    fails=r'< | {"jsonrpc":"2.0","id":1,"result":{"text":"a\ud800b"}}',
    passes=r'< | {"jsonrpc":"2.0","id":1,"result":{"text":"a\ud83d\ude00b"}}',
)
def lone_surrogate(message: Message, session: Session) -> Iterator[Fault]:
    """Report half of a surrogate pair."""
    if not message.body.refused or message.part or not _SURROGATE.search(message.frame.raw):
        return
    for path, value in walk(message.body.value):
        if _has_surrogate(value):
            yield Fault("the string has half of a surrogate pair", pointer(*path))
            return
        if path and _has_surrogate(path[-1]):
            yield Fault("the name of this member has half of a surrogate pair", pointer(*path))
            return


def _has_surrogate(value: Any) -> bool:
    return isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value)


@rule(
    "jsonrpc/too-deep",
    "error",
    "The message is nested too deeply for some parsers: Python's fails at about 1,000 levels.",
    fix="Flatten the value, or send it as text in a string.",
    spec="https://www.rfc-editor.org/rfc/rfc8259#section-9",
    fails="< |nest5000",
    passes="< |nest10",
    on=(Invalid,),
)
def too_deep(message: Message, session: Session) -> Iterator[Fault]:
    """Report nesting that mcpspy cannot parse either."""
    if isinstance(message.body, Invalid) and message.body.reason.startswith("nested too deeply"):
        yield Fault("the message is nested deeper than about 1,000 levels; some parsers refuse it")


def is_batch(raw: bytes) -> bool:
    """Return whether a frame contains an array."""
    return raw[:1] == b"[" or (raw[:1] != b"{" and raw.lstrip()[:1] == b"[")
