"""JSON texts in which strings are replaced: every other character stays where it is.

The theory. A message that is parsed and written again loses digits, duplicate names, spaces and the order of members.
So a scanner goes through the text once and calls back for each string, name of a member and number, with the place
where it stands. What it gives back takes the place of the characters between the quotes. A text that is not JSON is no
fault: `changed` returns None, and whoever called treats it as plain text.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from mcpspy.json_values import pointer

_SCAN = json.decoder.scanstring  # type: ignore[attr-defined]  # the one of C, where there is one
_TOKEN = re.compile(r'[ \t\r\n]*(?:(["{}\[\],:])|([^\s"{}\[\],:]+))')
_ATOM = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity")
_DEEPEST = 2000
"""Levels of the deepest text; none of the programs that send messages goes as far."""


@dataclass(slots=True)
class Level:
    """An object or an array that the scanner is in."""

    closing: str
    step: str | int = ""
    """The name or place of the member that comes."""
    secret: bool = False
    """It stands under a secret name."""
    schema: bool = False
    """It is part of a JSON Schema, where names are no evidence."""
    above: str | int = ""
    """The step that leads here."""
    previous: str = ""
    """In an array: the string before; in an object: the value of the member `name` or `key`."""
    value: str = ""
    """In an object: the value of the member `value`."""
    shown: str = ""
    """The name of the member that comes as it reads in the new text, where that is another."""


@dataclass(slots=True)
class Levels:
    """Where the scanner is: the levels from the outside inwards."""

    open: list[Level] = field(default_factory=list)
    at_name: bool = False
    """The name of a member comes: it stands at the object that has it."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """The steps to the value that comes."""
        return tuple(level.step for level in (self.open[:-1] if self.at_name else self.open))

    @property
    def pointer(self) -> str:
        """The same as a JSON Pointer."""
        return pointer(*(level.shown or level.step for level in (self.open[:-1] if self.at_name else self.open)))


class StringVisitor(Protocol):
    """What is asked about each part of a text; `levels` is where it stands."""

    def enter(self, levels: Levels, level: Level) -> None:
        """An object or array begins; `level` gets what is known of it."""

    def string(self, text: str, levels: Levels) -> str:
        """What stands in for a string."""

    def key(self, text: str, levels: Levels) -> str:
        """What stands in for the name of a member."""

    def number(self, digits: str, levels: Levels) -> str:
        """What stands in for a number."""


class _Nothing:
    """A visitor that changes nothing."""

    def enter(self, levels: Levels, level: Level) -> None:
        pass

    def string(self, text: str, levels: Levels) -> str:  # noqa: ARG002 (as StringVisitor has it)
        return text

    key = number = string


def is_json(text: str) -> bool:
    """Whether `changed` takes a text for an object or array of JSON."""
    try:
        return isinstance(orjson.loads(text.removeprefix("\ufeff")), dict | list)
    except ValueError:  # also for what other parsers take: lone surrogates, NaN, a control character in a string
        return changed(text, _Nothing(), 1 if text.startswith("\ufeff") else 0) is not None


def changed(text: str, visitor: StringVisitor, start: int = 0) -> str | None:
    """The text with what the visitor gives for its strings; None if it is not one JSON value, an object or array."""
    levels = Levels()
    open_ = levels.open
    out: list[str] = []
    done, at, size = 0, start, len(text)
    key_next = False
    while match := _TOKEN.match(text, at):
        mark, at = match[1], match.end()
        if mark == '"':
            if not open_:
                return None
            try:
                value, end = _SCAN(text, at, False)
            except ValueError:
                return None
            level = open_[-1]
            levels.at_name = key_next
            new = visitor.key(value, levels) if key_next else visitor.string(value, levels)
            levels.at_name = False
            if new != value:
                out += [text[done:at], _escaped(new, text[at : end - 1])]
                done = end - 1
            if key_next:
                level.step, level.shown = value, new if new != value else ""
                key_next = False
            at = end
        elif mark in ("{", "["):
            if len(open_) >= _DEEPEST or (not open_ and out):
                return None
            level = Level("}" if mark == "{" else "]", above=open_[-1].step if open_ else "")
            if open_:
                level.secret, level.schema = open_[-1].secret, open_[-1].schema
            visitor.enter(levels, level)
            level.step = 0 if mark == "[" else ""
            open_.append(level)
            key_next = mark == "{"
        elif mark in ("}", "]"):
            if not open_ or open_.pop().closing != mark:
                return None
            key_next = False
            if not open_:
                break
        elif mark == ",":
            if not open_:
                return None
            level = open_[-1]
            key_next = level.closing == "}"
            if not key_next:
                level.step = int(level.step) + 1
        elif mark is None:
            if not open_ or key_next or not _ATOM.fullmatch(match[2]):
                return None
            new = visitor.number(match[2], levels)
            if new != match[2]:
                out += [text[done : match.start(2)], new]
                done = at
        elif not open_:
            return None
    if open_ or at == start or text[at:size].strip(" \t\r\n"):
        return None
    return "".join([*out, text[done:]]) if out else text


def _escaped(new: str, old: str) -> str:
    """A string for JSON, escaped as the one that it replaces: non-ASCII characters as they are, if that has some."""
    if old.isascii():
        return json.dumps(new)[1:-1]
    if "\\u" in old:  # an escaped surrogate must not become a byte
        new = re.sub("[\ud800-\udbff\udc00-\udc7f\udd00-\udfff]", lambda it: f"\0{ord(it[0]):04x}", new)
        return re.sub("\0([0-9a-f]{4})", r"\\u\1", json.dumps(new, ensure_ascii=False)[1:-1].replace("\\u0000", "\0"))
    return json.dumps(new, ensure_ascii=False)[1:-1]
