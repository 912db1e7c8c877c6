"""A configuration as a tree whose values know where they stand in the text.

The rule. An edit replaces the text of one value, or adds one member; all other characters stay as they are, whatever
the format. So the readers (`jsonc`, `toml`, `yaml`) yield this tree instead of plain values, and nothing is ever
written back from values.
"""

import json
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DEEPEST = 200
"""Levels; what nests deeper is no configuration."""

_UNPRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


@dataclass(slots=True)
class Node:
    """One value: its text is `text[start:end]`."""

    start: int
    end: int
    """Of a block collection in YAML and of a TOML table this is no use: their text has no end of its own."""
    value: Any
    """`dict[str, Member]`, `list[Node]`, or a scalar."""
    lines: bool = False
    """Its members stand each on a line of its own (a TOML table, a YAML block), not between brackets."""
    fixed: str = ""
    """Why its text cannot be replaced, if it cannot: `is empty`."""


@dataclass(slots=True)
class Member:
    """A key and its value in an object."""

    start: int
    """Where the key begins; of a dotted key, its first part."""
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
    """The text is not in its format; the offset and the reason. Within this package only."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


def edited(text: str, edits: Iterable[Edit]) -> str:
    """`text` with all `edits`, which must not overlap, made at once."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def plain(node: Node) -> Any:
    """The value without places, as any parser of the format gives it."""
    if isinstance(node.value, dict):
        return {key: plain(member.node) for key, member in node.value.items()}
    if isinstance(node.value, list):
        return [plain(element) for element in node.value]
    return node.value


def outline(node: Node, text: str, without: Container[int] = ()) -> Any:
    """The tree with the text of each scalar for its value, and without the members of these `id`s."""
    if isinstance(node.value, dict):
        members = [(key, member) for key, member in node.value.items() if id(member) not in without]
        return {key: outline(member.node, text, without) for key, member in members}
    if isinstance(node.value, list):
        return [outline(element, text, without) for element in node.value]
    return text[node.start : node.end]


def where(text: str, offset: int) -> str:
    """An offset as people count: `line 3, column 5`."""
    before = text[:offset].removeprefix("\ufeff")
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def quote(word: str) -> str:
    """A string in double quotes that JSON, TOML and YAML read alike, if it is one of Unicode; else JSON alone does."""
    text = json.dumps(word, ensure_ascii=False)
    return "".join(f"\\u{ord(c):04x}" if _UNPRINTED.match(c) else c for c in text)
