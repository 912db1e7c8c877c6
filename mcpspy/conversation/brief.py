"""Values in few characters: JSON without white space, members as `name=value`, text on one line.

The theory. A row has room for some words and a value may have megabytes, so no more of a value is read than there is
room for, and nothing nested is followed further than a person would read. What comes out is raw text: whoever shows it
makes it `printable`.
"""

import json
import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Any

from mcpspy.json_values import Number

LONGEST = 300
"""Characters of a preview."""
_DEEPEST = 6  # levels of a nested value that are shown
_BESIDE = 80  # characters of a string that has others beside it
_READ = 4096  # characters of a text in which its first words are looked for
_DIGITS = 60
_NAME = re.compile(r"[\w.$/@-]{1,60}")
_MEMBER = re.compile(r'(?:^|(?<= ))([\w.$/@-]{1,60}=)("(?:[^"\\]|\\.)*"?)?')


def clipped(text: str, room: int = LONGEST) -> str:
    """At most `room` characters of a text; one that goes on ends in `…`."""
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"


def folded(text: str, room: int = LONGEST) -> str:
    """The words that a text begins with, on one line."""
    found = " ".join(text[:_READ].split())
    return clipped(f"{found} …".lstrip() if len(text) > _READ and len(found) < room else found, room)


def words(value: Any, room: int = LONGEST) -> str:
    """What should be a text as such; members as `name=value`; anything else as JSON."""
    if isinstance(value, str) and not isinstance(value, Number):
        return folded(value, room)
    return members(value, room=room) if isinstance(value, dict) and value else brief_json(value, room)


def members(value: dict[Any, Any], *left_out: str, room: int = LONGEST) -> str:
    """The members of an object as `city="Oslo" days=3`, in their order, without some."""
    alone = len(value) <= 1 + sum(name in value for name in left_out)
    found: list[str] = []
    used = 0
    for name, inner in value.items():
        if name in left_out:
            continue
        if used >= room:
            return clipped(" ".join([*found, "…"]), room)
        shown = name if _NAME.fullmatch(name) else _quoted(name, _DIGITS)
        found.append(f"{shown}={brief_json(inner, room if alone else min(room, _longest(inner)))}")
        used += len(found[-1]) + 1
    return clipped(" ".join(found), room)


def brief_json(value: Any, room: int = LONGEST) -> str:
    """A value as JSON without white space, clipped."""
    return clipped(_json(value, room, 0), room)


def parts(text: str) -> Iterator[tuple[str, str]]:
    """A text as pieces, each with what it looks like: `name` of a member, `string` after such a name, or nothing."""
    at = 0
    for found in _MEMBER.finditer(text):
        yield text[at : found.start()], ""
        yield found[1], "name"
        yield found[2] or "", "string"
        at = found.end()
    yield text[at:], ""


def _longest(value: Any) -> int:
    return _BESIDE if isinstance(value, str) else 2 * _BESIDE


def _json(value: Any, room: int, depth: int) -> str:
    """A value as JSON of not much more than `room` characters, however large it is."""
    if isinstance(value, str):
        return clipped(value, _DIGITS) if isinstance(value, Number) else _quoted(value, room)
    if isinstance(value, dict | list):
        return _nested(value, room, depth)
    if isinstance(value, int) and value.bit_length() > 4 * _DIGITS:
        return "a number of many digits"
    return json.dumps(value)


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
    return encode_basestring(clipped(text, max(room - 2, 1)))
