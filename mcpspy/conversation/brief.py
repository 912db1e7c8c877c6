"""Short forms of values: JSON without white space, members as `name=value`, text on one line.

The theory. A row has room for a few words, and a value may have megabytes. So no more of a value is read than there is
room for, and nested values are followed only as far as a person would read. The result is raw text: the code that
displays it makes it `printable`.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from mcpspy.json_values import Number

LONGEST = 300
"""Maximum length of a preview, in characters."""
_DEEPEST = 6  # levels of a nested value that are shown
_BESIDE = 80  # characters of a string that is not the only member
_READ = 4096  # characters of a text that are searched for its first words
_DIGITS = 60
_NESTED = (dict, list)  # as a tuple: a union would be built again for each value
_LONG_NAME = 61  # characters of a name; at most 60 are shown
_NAME = re.compile(r"[\w.$/@-]{1,60}")
_MEMBER = re.compile(r'(?:^|(?<= ))([\w.$/@-]{1,60}=)("(?:[^"\\]|\\.)*"?)?')


def clipped(text: str, room: int = LONGEST) -> str:
    """Return at most `room` characters of a text; a shortened text ends in `…`."""
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"


def folded(text: str, room: int = LONGEST) -> str:
    """Return the first words of a text, on one line."""
    start = text[: 2 * room]
    if start.isascii() and start.isprintable() and "  " not in start and start.strip() == start:
        found = start  # true for most texts; the line below gives the same result more slowly
    else:
        found = " ".join(start.split())
    if len(text) > 2 * room and len(found) <= room:  # the part that was read was mostly white space
        found = " ".join(text[:_READ].split())
    return clipped(f"{found} …".lstrip() if len(text) > _READ and len(found) < room else found, room)


def words(value: Any, room: int = LONGEST) -> str:
    """Return a string as its words, an object as `name=value`, and anything else as JSON."""
    if isinstance(value, str) and not isinstance(value, Number):
        return folded(value, room)
    return members(value, room=room) if isinstance(value, dict) and value else brief_json(value, room)


def members(value: dict[Any, Any], *left_out: str, room: int = LONGEST) -> str:
    """Return the members of an object as `city="Oslo" days=3`, in their order, except those in `left_out`."""
    alone = len(value) <= 1 + (sum(name in value for name in left_out) if left_out else 0)
    most = room if alone else min(room, 2 * _BESIDE)
    of_text = most if alone or most < _BESIDE else _BESIDE
    found: list[str] = []
    used = 0
    for name, inner in value.items():
        if name in left_out:
            continue
        if used >= room:
            return clipped(" ".join([*found, "…"]), room)
        text = f"{_name(name[:_LONG_NAME])}={brief_json(inner, of_text if isinstance(inner, str) else most)}"
        found.append(text)
        used += len(text) + 1
    return clipped(" ".join(found), room)


def brief_json(value: Any, room: int = LONGEST) -> str:
    """Return a value as JSON without white space, shortened to `room`."""
    shown = _quoted(value, room) if type(value) is str else _json(value, room, 0)
    return shown if len(shown) <= room else clipped(shown, room)


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text with their kind: `name` of a member, `string` after such a name, or empty."""
    at = 0
    for found in _MEMBER.finditer(text):
        yield text[at : found.start()], ""
        yield found[1], "name"
        yield found[2] or "", "string"
        at = found.end()
    yield text[at:], ""


@lru_cache(maxsize=1000)
def _name(text: str) -> str:
    """Return the name of a member as it is shown; cached, because the same few names occur again and again."""
    return text if _NAME.fullmatch(text) else _quoted(text, _DIGITS)


def _json(value: Any, room: int, depth: int) -> str:
    """Return a value as JSON of little more than `room` characters, whatever its size."""
    if isinstance(value, str):
        return clipped(value, _DIGITS) if isinstance(value, Number) else _quoted(value, room)
    if type(value) is int:
        return str(value) if value.bit_length() <= 4 * _DIGITS else "a number of many digits"
    return _nested(value, room, depth) if isinstance(value, _NESTED) else json.dumps(value)


def _nested(value: dict[Any, Any] | list[Any], room: int, depth: int) -> str:
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    if not value:
        return opened + closed
    if depth == _DEEPEST or room <= 0:
        return f"{opened}…{closed}"
    found: list[str] = []
    left = room
    for inner in value:
        if left <= 0:
            found.append("…")
            break
        if isinstance(value, dict):
            name = _quoted(inner, left)
            found.append(f"{name}:{_json(value[inner], left - len(name), depth + 1)}")
        else:
            found.append(_json(inner, left, depth + 1))
        left -= len(found[-1]) + 1
    return opened + ",".join(found) + closed


def _quoted(text: str, room: int) -> str:
    return encode_basestring(text if len(text) <= room - 2 else clipped(text, max(room - 2, 1)))
