"""JSON-RPC messages inside a line that is not JSON as a whole: after or before other text, or one after the other."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.wire.jsonrpc import Body, Invalid, parse

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
