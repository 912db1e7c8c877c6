"""Find the kind of a message that is too large to decode, from its first and last bytes.

Peers write the members of a message in any order. `jsonrpc`, `id` and `method` are short, and the large member comes
first or last. So members are read from the front up to the first one that does not end within those bytes, and short
members are read from the back. What neither end shows stays unknown.
"""

import json
import re
from typing import Any

from mcpspy.json_values import Number
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, Undecoded

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
