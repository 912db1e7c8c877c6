"""A configuration as a tree whose values know their positions in the text.

An edit replaces the text of one value, or adds one member; all other characters stay unchanged, whatever the
format. So the parsers (`formats`, `toml`, `yaml`) return this tree instead of plain values, and values are never
serialized back to text.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

DEEPEST = 200
"""Maximum number of levels; a text that is nested more deeply is not a configuration."""

_UNPRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


@dataclass(slots=True)
class Node:
    """One value: its text is `text[start:end]`."""

    start: int
    end: int
    """Not usable for a block collection in YAML and for a TOML table: their text has no end of its own."""
    value: Any
    """`dict[str, Member]`, `list[Node]`, or a scalar."""
    lines: bool = False
    """Each of its members is on a line of its own (a TOML table, a YAML block), not between brackets."""
    fixed: str = ""
    """Why its text cannot be replaced: `is empty`; empty if it can."""
    repeated: tuple[str, ...] = ()
    """The keys of an object that are there more than once; only the last one counts."""


@dataclass(slots=True)
class Member:
    """A key and its value in an object."""

    start: int
    """Where the key begins; for a dotted key, its first part."""
    own: int
    """Where the last part of a dotted key begins; else `start`."""
    end: int
    """Where the key ends."""
    node: Node = field(repr=False)


class Edit(NamedTuple):
    """Replace `text[start:end]` by `text`."""

    start: int
    end: int
    text: str


class Syntax(Exception):
    """The text is invalid in its format; contains the offset and the reason. Used in this package only."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` with all `edits` applied at once; they must not overlap."""
    parts, place = [], 0
    for start, end, new in sorted(edits):
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])


def plain(node: Node) -> Any:
    """Return the value without positions, as any parser of the format returns it."""
    if isinstance(node.value, dict):
        return {key: plain(member.node) for key, member in node.value.items()}
    if isinstance(node.value, list):
        return [plain(element) for element in node.value]
    return node.value


def outline(node: Node, text: str, without: Container[int] = ()) -> Any:
    """Return the tree with the text of each scalar as its value, without the members with these `id`s."""
    if isinstance(node.value, dict):
        members = [(key, member) for key, member in node.value.items() if id(member) not in without]
        return {key: outline(member.node, text, without) for key, member in members}
    if isinstance(node.value, list):
        return [outline(element, text, without) for element in node.value]
    return text[node.start : node.end]


def where(text: str, offset: int) -> str:
    """Return an offset as people count: `line 3, column 5`."""
    number = bisect_left(_line_ends(text), offset)
    begin = _line_ends(text)[number - 1] + 1 if number else len(text) - len(text.removeprefix("\ufeff"))
    return f"line {number + 1}, column {max(offset - begin, 0) + 1}"


@lru_cache(maxsize=1)
def _line_ends(text: str) -> list[int]:
    """Return the positions of all line feeds; kept, because each server of a large file may have an error."""
    return [match.start() for match in re.finditer("\n", text)]


def quote(word: str) -> str:
    """Return a string in double quotes for JSON, TOML and YAML; with an unpaired surrogate, only for JSON."""
    text = json.dumps(word, ensure_ascii=False)
    return "".join(f"\\u{ord(c):04x}" if _UNPRINTED.match(c) else c for c in text)
