"""What messages state about the two sides and about what a server offers: statements, listings, words of definitions.

Up to 2025-11-25 both sides introduce themselves in `initialize` and its result. Since 2026-07-28 a server does so in
the result of `server/discover`, and the `_meta` of any request or result may name its sender. A listing comes in pages:
a request without a cursor begins a new one, and the last page has no next cursor. Peers send anything: a value whose
shape differs from the specification is passed on unchanged, or left out.

A client passes descriptions, including those of arguments, to a model, and shows titles and annotations to the user who
approves a call. A server that changes them can make both do something else while its schemas stay the same. So words
are compared separately from all other members. If a property is added or removed together with its words, that is a
change of the schema and not a change of words. Nothing is examined below `DEEPEST` levels, and nothing here recurses.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from mcpspy.conversation.model import Message
from mcpspy.json_values import Path, excerpt, member
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.jsonrpc import Request, Result

HANDSHAKES = ("initialize", "server/discover")
"""The methods whose results introduce a server."""
LISTED = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""By method of a listing: the member of its results that contains the entries."""
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Statement:
    """What a message states about one side, unchanged; None for what it does not state."""

    n: int
    side: Literal["client", "server"]
    """The side that it is about: a request states facts about the client, a result about the server."""
    identity: Any
    """`clientInfo` or `serverInfo`."""
    capabilities: Any
    revision: Any
    """The revision that it requests, or agrees to."""
    instructions: Any = None
    complete: bool = True
    """It is an introduction, which replaces what was known. If False, it is only the `_meta` of a message."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing."""

    kind: str
    """tools, resources, resourceTemplates or prompts."""
    entries: list[Any] | None
    """None if the result has no array of them."""
    first: bool
    last: bool


@dataclass(slots=True)
class PagedListing:
    """The newest listing of one kind, with all of its pages so far."""

    first: int
    """The line of its first page."""
    n: int
    """The line of its last page."""
    count: int = 0
    size: int = 0
    """The size of the definitions, in bytes of compact JSON."""
    names: list[str] = field(default_factory=list, compare=False)
    """The first of their names, or their URIs if they have no names."""


def statement(message: Message) -> Statement | None:
    """Return what a message states about one side, or None if it states nothing."""
    body, method = message.body, message.method
    if method == "initialize" and isinstance(body, Request):
        return _introduction(message.n, "client", body.params)
    if method == "initialize" and isinstance(body, Result):
        return _introduction(message.n, "server", body.result)
    if message.revision not in STATELESS:
        return None
    if isinstance(body, Request):
        meta = member(body.params, "_meta")
        identity, capabilities = member(meta, f"{_META}clientInfo"), member(meta, f"{_META}clientCapabilities")
        return Statement(message.n, "client", identity, capabilities, message.revision.value, complete=False)
    if not isinstance(body, Result):
        return None
    identity, revision = member(body.result, "_meta", f"{_META}serverInfo"), message.revision.value
    if method != "server/discover":
        return Statement(message.n, "server", identity, None, revision, complete=False)
    capabilities, instructions = member(body.result, "capabilities"), member(body.result, "instructions")
    return Statement(message.n, "server", identity, capabilities, revision, instructions)


def page(message: Message) -> Page | None:
    """Return the page of a listing that a result contains; None for any other message."""
    exchange = message.exchange
    kind = LISTED.get(exchange.method) if exchange else None
    if exchange is None or kind is None or not isinstance(message.body, Result):
        return None
    request, result = exchange.request.body, message.body.result
    entries = member(result, kind)
    first = member(request.params, "cursor") is None if isinstance(request, Request) else True
    last = member(result, "nextCursor") is None
    return Page(kind, entries if isinstance(entries, list) else None, first, last)


def _introduction(n: int, side: Literal["client", "server"], told: Any) -> Statement:
    """Return what the params or the result of `initialize` state."""
    identity, capabilities = member(told, f"{side}Info"), member(told, "capabilities")
    return Statement(n, side, identity, capabilities, member(told, "protocolVersion"), member(told, "instructions"))


DEEPEST = 100
"""The number of levels of a definition in which words are searched."""
WORDS = ("description", "title", "annotations")
"""Members of a tool, prompt or resource that are words as a whole; so is the name of a resource, which has a URI."""
_SHOWN = 120  # characters of a text
_BEFORE = 30  # characters shown before the place where two texts differ
_TEXTS = ("description", "title", "$comment")
_SAMPLES = ("default", "examples")
_APART = ("_meta", "icons")
_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Members whose own members are named by the author: `properties` may contain one called `default`."""


class Reworded(NamedTuple):
    """A place where the words of two definitions differ; None for a definition without words there."""

    path: Path
    old: Any
    new: Any


def reworded(old: Any, new: Any) -> Iterator[Reworded]:
    """Yield where the words of two definitions of one tool, prompt or resource differ."""
    open_: list[tuple[Path, Any, Any]] = [((), old, new)]
    while open_:
        path, one, other = open_.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            for name in [*one, *(name for name in other if name not in one)]:
                before, now = one.get(name), other.get(name)
                if _is_word(path, name, before, now):
                    if not same(before, now):
                        yield Reworded((*path, name), before, now)
                elif len(path) < DEEPEST and not (not path and name in _APART):
                    open_.append(((*path, name), before, now))
        elif isinstance(one, list) and isinstance(other, list):
            open_ += [((*path, place), *pair) for place, pair in enumerate(_paired(one, other))]


def _is_word(path: Path, name: str, old: Any, new: Any) -> bool:
    """Return whether a member contains words; in a map of names only texts can."""
    if not path and (name in WORDS or name == "name"):
        return True
    if _maps_names(path):
        return False
    return (name in _TEXTS and (isinstance(old, str) or isinstance(new, str))) or (bool(path) and name in _SAMPLES)


def _maps_names(path: Path) -> bool:
    """Return whether a path points to a map of names; the value of a property called `properties` is a schema again."""
    count = 0
    while count < len(path) and path[-1 - count] in _NAMES:
        count += 1
    return count % 2 == 1


def _paired(old: list[Any], new: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the elements of two arrays in pairs: by name if they have one, such as the arguments of a prompt."""
    named = {item["name"]: item for item in old if isinstance(item, dict) and isinstance(item.get("name"), str)}
    for place, item in enumerate(new):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and name in named:
            yield named[name], item
        else:
            yield (old[place] if place < len(old) and name is None else None), item


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; False if they are nested too deeply to tell."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


def apart(old: Any, new: Any) -> tuple[str, str]:
    """Return two values that differ as short JSON, from shortly before the difference; not made printable."""
    one, other = (_text(value) for value in (old, new))
    common = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    start = common - _BEFORE if common > 2 * _BEFORE and max(len(one), len(other)) > _SHOWN else 0
    return _clipped(one, start), _clipped(other, start)


def _clipped(text: str, start: int) -> str:
    shown = ("…" if start else "") + text[start:]
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return excerpt(value)
