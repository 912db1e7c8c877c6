"""JSON texts in which strings are replaced, and every other character stays unchanged.

If a message is parsed and serialized again, it loses digits, duplicate names, spaces and the order of members. So a
scanner goes through the text once and calls a visitor for each string, member name and number, with its position. The
return value replaces the characters between the quotes. A text that is not JSON is not an error: `changed` returns
None, and the caller treats it as plain text.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from mcpspy.json_values import pointer

_SCAN = json.decoder.scanstring  # type: ignore[attr-defined]  # the C version, if there is one
_TOKEN = re.compile(
    r'"(?P<string>[^"\\]*)(?P<whole>")?|(?P<open>[{\[])|(?P<close>[}\]])|(?P<atom>[^\s"{}\[\],:\ufeff]+)'
)
_AHEAD = 8  # how often each character may be parsed ahead, on average
_LENIENT = json.JSONDecoder(strict=False, parse_int=str)


@dataclass(slots=True)
class Level:
    """An object or an array that the scanner is in."""

    closing: str
    key_next: bool = True
    """In an object: the name of a member comes next."""
    count: int = 0
    """In an array: the number of elements so far."""
    step: str | int = ""
    """The name or index of the next member."""
    secret: bool = False
    """It is below a secret name."""
    schema: bool = False
    """It is part of a JSON Schema, where names are no evidence."""
    above: str | int = ""
    """The step from its parent to it."""
    previous: str = ""
    """In an array: the string before; in an object: the value of the member `name` or `key`."""
    value: str = ""
    """In an object: the value of the member `value`."""
    property: bool = False
    """It is the schema of a property with a secret name."""
    sample: bool = False
    """It is an example of a value of such a property."""
    vague: str = ""
    """The name above it, if only some values below that name are secrets: `token`, `keys`."""
    key: bool = False
    """It is a JSON Web Key: it has a member `kty`."""
    parts: list[str] = field(default_factory=list)
    """In an object: values that are secret in a JSON Web Key."""
    numbers: bool = False
    """It is below a name whose numbers are secrets."""
    columns: list[str] = field(default_factory=list)
    """In an object: the names in its member `columns`. In an array: those of the columns of its rows."""
    headed: bool = False
    """In an array: `columns` is known, so its first row has values too."""
    shown: str = ""
    """The name of the next member in the new text, if it differs."""


@dataclass(slots=True)
class Levels:
    """The position of the scanner: the levels from the outside inwards."""

    open: list[Level] = field(default_factory=list)
    at_name: bool = False
    """The name of a member comes next: its position is that of the object."""
    text: str = ""
    """The whole text."""
    at: int = 0
    """Where the object or array begins that is entered."""
    ahead: int = 0
    """The number of characters that `entered` may still parse: without a limit, its time would be quadratic."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """The steps to the next value."""
        return tuple(level.step for level in (self.open[:-1] if self.at_name else self.open))

    @property
    def pointer(self) -> str:
        """The same as a JSON Pointer."""
        return pointer(*(level.shown or level.step for level in (self.open[:-1] if self.at_name else self.open)))

    def entered(self) -> Any:
        """Return the object or array that is entered; None if too much of the text has been parsed already."""
        if self.ahead < 0:
            return None
        try:
            found, end = _LENIENT.raw_decode(self.text, self.at)
        except (ValueError, RecursionError):
            return None
        self.ahead -= end - self.at
        return found


class StringVisitor(Protocol):
    """What is called for each part of a text; `levels` is the position."""

    def enter(self, levels: Levels, level: Level) -> None:
        """Begin an object or array; set in `level` what is known of it."""

    def string(self, text: str, levels: Levels) -> str:
        """Return the replacement of a string."""

    def key(self, text: str, levels: Levels) -> str:
        """Return the replacement of a member name."""

    def number(self, digits: str, levels: Levels) -> str:
        """Return the replacement of a number."""


def is_json(text: str) -> bool:
    """Return whether a text is a JSON object or array, also with unpaired surrogates, NaN or control characters."""
    text = text.removeprefix("\ufeff")
    try:
        return isinstance(orjson.loads(text), dict | list)
    except ValueError:
        pass
    try:
        return isinstance(_LENIENT.decode(text), dict | list)
    except (ValueError, RecursionError):
        return False


def changed(text: str, visitor: StringVisitor) -> str | None:
    """Return the text with the visitor's replacements; None if it is not a JSON object or array."""
    if not is_json(text):
        return None
    levels = Levels(text=text, ahead=_AHEAD * len(text))
    open_ = levels.open
    out: list[str] = []
    done = at = 0
    while at >= 0:
        tokens, at = _TOKEN.finditer(text, at), -1
        for token in tokens:
            mark = "string" if token.lastgroup == "whole" else token.lastgroup
            if mark == "close":
                open_.pop()
                continue
            if open_:
                level = open_[-1]
                if level.closing == "]":
                    level.step = level.count
                    level.count += 1
                elif level.key_next and mark == "string":
                    level.key_next = False
                    at, done = _string(text, token, levels, visitor.key, out, done)
                    if at >= 0:
                        break
                    continue
                level.key_next = True
            if mark == "open":
                levels.at = token.start()
                _enter(levels, visitor, token[0])
            elif mark == "string":
                at, done = _string(text, token, levels, visitor.string, out, done)
                if at >= 0:
                    break
            elif (new := visitor.number(token[0], levels)) != token[0]:
                out += [text[done : token.start()], new]
                done = token.end()
    return "".join([*out, text[done:]]) if out else text


def _enter(levels: Levels, visitor: StringVisitor, bracket: str) -> None:
    level = Level("}" if bracket == "{" else "]")
    if levels.open:
        above = levels.open[-1]
        level.above, level.secret, level.schema, level.sample = above.step, above.secret, above.schema, above.sample
        level.numbers, level.vague = above.numbers, above.vague
    visitor.enter(levels, level)
    levels.open.append(level)


def _string(
    text: str,
    token: re.Match[str],
    levels: Levels,
    visit: Callable[[str, Levels], str],
    out: list[str],
    done: int,
) -> tuple[int, int]:
    """Visit the string or name that begins with a token.

    Return where the scan continues, which is -1 if the token is the whole string, and how far `out` goes.
    """
    start, end = token.start() + 1, token.end() - 1
    value, resume = token["string"], -1
    if token["whole"] is None:  # it contains an escape
        value, resume = _SCAN(text, start, False)
        end = resume - 1
    level = levels.open[-1]
    name = level.closing == "}" and not level.key_next
    levels.at_name = name
    new = visit(value, levels)
    levels.at_name = False
    if name:
        level.step, level.shown = value, new if new != value else ""
    if new != value:
        out += [text[done:start], _escaped(new, text[start:end])]
        done = end
    return resume, done


def _escaped(new: str, old: str) -> str:
    """Return a string escaped like the one that it replaces: non-ASCII characters unescaped if that has some."""
    if old.isascii():
        return json.dumps(new)[1:-1]
    if "\\u" in old:  # an escaped surrogate must not become a byte
        surrogates = _BUT_BYTES if _BYTES.search(old) else _SURROGATES
        new = surrogates.sub(lambda it: f"\0{ord(it[0]):04x}", new.replace("\0", "\0" + "0000"))
        return re.sub(r"\\u0000([0-9a-f]{4})", r"\\u\1", json.dumps(new, ensure_ascii=False)[1:-1])
    return json.dumps(new, ensure_ascii=False)[1:-1]


_SURROGATES = re.compile("[\ud800-\udfff]")
_BYTES = re.compile("[\udc80-\udcff]")
"""The characters that stand for bytes of a text that is not UTF-8 (`surrogateescape`)."""
_BUT_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
