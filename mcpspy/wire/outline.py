"""What the first and last bytes show of a message that is too large to decode.

Peers write the members of a message in any order, but `jsonrpc`, `id` and `method` are short, and what is large comes
first or last. So the members are read from the front up to the first that does not end there, and the short ones from
the back. What neither end shows stays unknown.
"""

import json
import re
from typing import Any

from mcpspy.json_values import Number
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, Undecoded

_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number, strict=False)
_KEY = re.compile(r'\s*+,?\s*+("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*')
_LAST = re.compile(r'(?:^|[,{])\s*("[^"\\]*(?:\\.[^"\\]*)*"\s*:\s*(?:"[^"\\]*(?:\\.[^"\\]*)*"|[-+.\w]+))\s*$')
_OPENED = ("params", "error")  # the members whose own members are read, if they do not end


def outline(head: bytes, tail: bytes) -> Body | Undecoded:
    """A message whose `value` has only what its first and last bytes show; `Undecoded` if that is too little."""
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
    """The members of the object that a text begins with; one that has no end there is None, or what it begins with."""
    found: dict[str, Any] = {}
    text = text.lstrip("\ufeff \t\r\n")
    at = 1
    while text.startswith("{") and (key := _KEY.match(text, at)):
        name = str(_value(key[1]))
        try:
            value, at = _DECODER.raw_decode(text, key.end())
        except (ValueError, RecursionError):
            found[name] = first_members(text[key.end() :]) if name in _OPENED else None
            break
        if at == len(text):  # a number may go on
            break
        found[name] = value
    return found


def last_members(text: str) -> dict[str, Any]:
    """The last members of an object, from the back up to the first that is not a string, number or word."""
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
    """A decoded JSON text; None if it is not JSON."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
