"""Scrubbed messages and other JSON: which strings are secrets by their position.

A string is a secret if a name above it is that of one, if the member beside it names one (`{"name": "TOKEN", "value":
…}`), or if it follows the name of an option in a list. In a JSON Schema names are no evidence: there, `password` is the
name of a property, except in an example of a value (`default`). Many objects have a member `properties` or `type`:
pages, features of a map. A schema has only keywords as members, and their values have the types that the keywords need.

No member protects a value: only the words that the specification defines for it stay (`is_word_of`). Ids, names of
tools and property names are replaced if they are secrets, alike in every place, so pairing and schemas stay valid.

If a message is parsed and serialized again, it loses digits, duplicate names, spaces and the order of members. So a
scanner goes through the text once and calls a visitor for each string, member name and number, with its position. The
return value replaces the characters between the quotes. A text that is not JSON is not an error: `changed` returns
None, and the caller treats it as plain text.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import orjson

from mcpspy.json_values import pointer
from mcpspy.secrets.patterns import JWK_SECRETS, SCHEMES, is_secret_name
from mcpspy.sharing.scrub.texts import Texts, is_secret_cell, without_keys
from mcpspy.sharing.scrub.values import (
    STATE,
    VAGUE,
    VALUE,
    KnownValues,
    is_member,
    is_phrase,
    is_placeholder,
    is_word_of,
    looks_random,
    looks_secret,
)

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


_SCHEMA_TYPES = frozenset("string number integer boolean object array null".split())
_TEXT_KEYWORDS = frozenset("$id $schema $anchor $comment title description format pattern contentMediaType".split())
_NUMBER_KEYWORDS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties"
    " maxProperties minContains maxContains".split()
)
_FLAG_KEYWORDS = frozenset("uniqueItems deprecated readOnly writeOnly nullable".split())
_SCHEMA_KEYWORDS = frozenset("items additionalProperties propertyNames contains if then else not".split())
_TELLING_KEYWORDS = frozenset("type $ref anyOf oneOf allOf not enum const default properties patternProperties".split())
_SAMPLES = frozenset("const default example examples enum".split())
"""Keywords that contain values of any type, not schemas; below them, a name is evidence again."""


def is_schema(value: Any) -> bool:
    """Return whether a value looks like a schema."""
    return (
        isinstance(value, dict)
        and not _TELLING_KEYWORDS.isdisjoint(value)
        and all(_is_keyword(name, inner) for name, inner in value.items())
    )


def are_schemas(value: Any) -> bool:
    """Return whether a value looks like a member `properties` of a schema: an object of schemas."""
    return isinstance(value, dict) and all(map(_is_inner, value.values()))


def _is_inner(value: Any) -> bool:
    return isinstance(value, bool) or value == {} or is_schema(value)


def _is_keyword(name: str, value: Any) -> bool:
    """Return whether a member of a schema is a keyword with a value of its type."""
    if name == "type":
        return all(
            isinstance(it, str) and it in _SCHEMA_TYPES for it in (value if isinstance(value, list) else [value])
        )
    if name in _TEXT_KEYWORDS or name == "$ref":
        return isinstance(value, str)
    if name in _NUMBER_KEYWORDS:
        return isinstance(value, int | float | str)  # an integer may be parsed as a string
    if name in _FLAG_KEYWORDS:
        return isinstance(value, bool)
    if name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return isinstance(value, list) and all(map(_is_inner, value))
    if name in ("properties", "patternProperties", "$defs", "definitions"):
        return are_schemas(value)
    if name in _SCHEMA_KEYWORDS:
        return _is_inner(value)
    if name == "required":
        return isinstance(value, list) and all(isinstance(it, str) for it in value)
    return name in _SAMPLES or (name.startswith("x-") and isinstance(value, str | bool))


_SCHEMAS = frozenset("inputSchema outputSchema requestedSchema input_schema output_schema $defs".split())
_DESCRIPTIVE = frozenset("type description title format in scheme $ref".split())
"""Members that describe the values beside them, also below a secret name."""
_NAMING = frozenset("name label key keyname parameterkey variable".split())
"""Members that name the value beside them, in lower case."""
_NAMED = frozenset(("value", "parametervalue"))
_PHRASE = "mnemonic"
"""The end of names whose value is a secret if it is a phrase of many words: instructions have mnemonics too."""
_SHORT = frozenset("token auth pass pat".split())
"""Names whose value is not a secret if it is a short word: `{"token": "the"}`."""
_CREDENTIALS = re.compile(rf"(?i)(?:{'|'.join(SCHEMES)})\s+")
_DIGITS = re.compile(
    r"(?:(?:pass(?:word|wd|code|phrase)|pwd|pin|otp|secret|credential|(?:api|access|auth)(?:key|token))s?"
    r"|(?<!progress)(?<!next)(?<!page)token)\d*$"
)
"""Names whose numbers are secrets, in lower case without punctuation."""
_MEASURE = re.compile(
    r"(?:at|time|date|expir\w*|length|size|count|version|port|ttl|age|min|max|id|rounds|iterations|code|exp|nbf)$"
)
"""Names of numbers that are no secrets also below such a name."""
_BESIDE_TOKENS = re.compile(
    rf"(?i){'|'.join(_DESCRIPTIVE - {'$ref'})}|.*(?:id|ur[li]|hash|digest|fingerprint|name|at|path|ref)|[nxye]|x5\w+"
)
"""Members of an object below a name such as `token` or `keys` that are no secrets: ids, public parts of keys."""
_COLUMNS = frozenset("columns fields header headers".split())
_ROWS = frozenset("rows data values results records".split())
_LARGEST = 1 << 20  # maximum length of a string that is searched for JSON
_DEEPEST = 4  # levels of texts in texts


class MessageScrub:
    """Scrubs JSON texts."""

    def __init__(self, texts: Texts, known: KnownValues, keep: tuple[str, ...]) -> None:
        self._levels = Levels()
        self._texts = texts
        self._known = known
        self._keep = frozenset(keep)
        self._above: list[str] = []  # pointers to the strings around the current text
        self._envelope = True

    @property
    def where(self) -> str:
        """The JSON Pointer to the last visited string; a `#` marks where it continues inside a string."""
        return "#".join([*self._above, self._levels.pointer])

    def json(self, text: str, *, envelope: bool = True) -> str | None:
        """Return a scrubbed JSON text; None if it is not JSON. `envelope` means that it may be a message."""
        self._envelope = envelope
        return changed(text, self)

    def member(self, name: str, value: Any) -> Any:
        """Return the scrubbed value of a member of what is not a message; `None` if it is nested too deeply."""
        try:
            text = orjson.dumps({name: value}).decode()
        except TypeError:
            return None
        clean = self.json(text, envelope=False)
        self.forget()
        new: dict[str, Any] = orjson.loads(clean or text)
        return next(iter(new.values()))

    def forget(self) -> None:
        """Reset the position: the next text is not a string of the last one."""
        self._levels = Levels()

    def enter(self, levels: Levels, level: Level) -> None:
        """Begin an object or an array."""
        if not levels.open:
            return
        parent = levels.open[-1]
        name = parent.step
        property_ = parent.schema and parent.above == "properties"
        if name in _SCHEMAS or (not level.schema and not level.secret and _begins_schema(name, levels)):
            level.schema = True
        elif name in _SAMPLES and level.schema and not property_:
            level.schema = False
            level.sample = parent.property
        elif property_:
            level.property = isinstance(name, str) and _is_name(name)
        elif isinstance(name, str) and not level.schema and not level.secret and _is_name(name):
            level.secret = name.lower() not in (VAGUE | _SHORT)
            level.vague = "" if level.secret else name
        if isinstance(name, str) and not level.schema and _has_digits(name):
            level.numbers = level.closing == "]" or name.lower() not in _SHORT
        if parent.closing == "}" and level.closing == "]" and name in _ROWS and parent.columns:
            level.columns, level.headed = parent.columns, True

    def key(self, text: str, levels: Levels) -> str:
        """Return the replacement of a member name."""
        if is_member(text):
            return text
        self._levels = levels
        return text if self._kept(levels) else self._texts.key(text)

    def string(self, text: str, levels: Levels) -> str:
        """Return the replacement of a string."""
        level = levels.open[-1]
        step, before = level.step, level.previous
        member = step.lower() if isinstance(step, str) else ""
        if level.closing == "]" or member in _NAMING:
            _note_column(levels.open, text)
            if member != "label" or not _is_name(level.previous):
                level.previous = text
            if level.value and not level.schema and _is_name(text) and _names(text, level.value):
                self._texts.learn(level.value)  # it came before its name: the second pass replaces it
        elif member in _NAMED:
            level.value = text
        elif step == "kty" or step in JWK_SECRETS:
            self._note_key(level, text)
        if not text or self._kept(levels) or is_word_of(step if isinstance(step, str) else level.above, text):
            return text
        if _is_property(text, levels.open):
            return text
        self._levels = levels
        if step == "requestState" and not level.schema:
            return text if is_placeholder(text) else self._texts.label(STATE, text)
        if self._is_secret(text, level, before) or _is_secret_cell(levels.open, text):
            scheme = _CREDENTIALS.match(text)
            start = scheme.end() if scheme else 0
            return text[:start] + self._texts.secret(text[start:])
        return self._inner(text)

    def number(self, digits: str, levels: Levels) -> str:
        """Return the replacement of a number: one of the same type with as many digits, as a schema may limit it."""
        level = levels.open[-1]
        name = level.step if isinstance(level.step, str) else level.above
        parts = _NUMBER.fullmatch(digits)
        plain = parts["whole"] + (parts["fraction"] or "") if parts else ""
        shortest = _SHORTEST_TOKEN if isinstance(name, str) and _WORDS.search(_plain(name)) else _SHORTEST_NUMBER
        if parts is None or len(plain) < shortest:
            return digits
        named = isinstance(name, str) and not level.schema and _has_digits(name)
        named = named or (level.numbers and not (isinstance(name, str) and _MEASURE.search(_plain(name))))
        named = named or _has_digits(_column(levels.open))
        if not (named or (len(plain) >= _LONG and self._known.whole(digits.lstrip("-")))) or self._kept(levels):
            return digits
        if plain.startswith("10") and int(plain[1:]) < _MOST_NUMBERS:  # it has been replaced already
            return digits
        self._levels = levels
        new = "1" + self._texts.label(VALUE, digits.lstrip("-")).rpartition("-")[2].rjust(len(plain) - 1, "0")
        point = len(new) - len(parts["fraction"] or "")
        return parts["sign"] + new[:point] + (f".{new[point:]}" if parts["fraction"] else "") + parts["exponent"]

    def _inner(self, text: str) -> str:
        """Return the replacement of a string that may contain JSON itself."""
        if text[0] in "{[" and 2 < len(text) < _LARGEST and len(self._above) < _DEEPEST and text[-1] in "]} \n":
            envelope, levels = self._envelope, self._levels
            self._above.append(levels.pointer)
            self._envelope = False
            found = changed(text, self)
            self._above.pop()
            self._envelope, self._levels = envelope, levels
            if found is not None:
                return found
        return without_keys(self._texts.text(text), self._texts)

    def _is_secret(self, text: str, level: Level, before: str) -> bool:
        step = level.step
        if level.sample or (level.property and step in _SAMPLES):
            return looks_secret(text)
        if level.schema:  # a string below a secret name is no part of a schema
            return isinstance(step, str) and _names(step, text)
        if level.secret:
            if step in _DESCRIPTIVE:
                return looks_secret(text) and not text.startswith("#") and " " not in text
            return not is_placeholder(text)
        if level.vague and _is_vague_secret(text, level):
            return True
        if isinstance(step, str):
            if level.key and step in JWK_SECRETS:
                return not is_placeholder(text)
            return _names(before if step.lower() in _NAMED and _is_name(before) else step, text)
        if before.startswith("-"):
            return "=" not in before and not text.startswith("--") and _names(before.lstrip("-"), text)
        return step == 1 and isinstance(level.above, int) and _names(before, text) and looks_secret(text)  # a field

    def _note_key(self, level: Level, text: str) -> None:
        """Note a member of what may be a JSON Web Key (RFC 7517): `kty`, or a private one, which may come before."""
        if level.step != "kty":
            level.parts.append(text)
            return
        level.key = True
        for part in level.parts:
            self._texts.learn(part)

    def _kept(self, levels: Levels) -> bool:
        if not self._keep or self._above:
            return False
        path = levels.path
        return any(pointer(*path[:end]) in self._keep for end in range(len(path) + 1))


def _is_property(text: str, open_: list[Level]) -> bool:
    """Return whether a string is the name of a property that stays, in `required` or `dependentRequired`."""
    level = open_[-1]
    if level.closing != "]" or not is_member(text):
        return False
    return level.above == "required" or (len(open_) > 1 and open_[-2].above == "dependentRequired")


@lru_cache(4096)
def _is_name(name: str) -> bool:
    return is_secret_name(name) or name.lower() in VAGUE


def _note_column(open_: list[Level], text: str) -> None:
    """Note the name of a column: in an array `columns`, in an object in it, or in the first row of an array of rows."""
    level = open_[-1]
    if level.closing == "]" and level.above in _COLUMNS and len(open_) > 1:
        open_[-2].columns.append(text)
    elif level.closing == "}" and len(open_) > 2 and open_[-2].closing == "]" and open_[-2].above in _COLUMNS:
        open_[-3].columns.append(text)
    elif level.closing == "]" and level.above == 0 and len(open_) > 1 and not open_[-2].headed:
        open_[-2].columns.append(text)


def _column(open_: list[Level]) -> str:
    """Return the name of the column of the current value, or an empty string."""
    row = open_[-1]
    if row.closing != "]" or len(open_) < 2 or not isinstance(row.step, int):
        return ""
    rows = open_[-2]
    if rows.closing != "]" or row.schema or row.step >= len(rows.columns) or (row.above == 0 and not rows.headed):
        return ""
    return rows.columns[row.step]


def _is_secret_cell(open_: list[Level], text: str) -> bool:
    """Return whether a string in a row is a secret. Without a member `columns` a row may be a name and a value."""
    name = _column(open_)
    return bool(name) and _is_name(name) and (is_secret_cell(name, text) if open_[-2].headed else looks_secret(text))


def _names(name: str, text: str) -> bool:
    """Return whether a name marks a string as a secret."""
    if not _is_name(name) or is_placeholder(text):
        return False
    if name != text and _plain(name) == _plain(text):  # a choice: `{"label": "API Key", "value": "api_key"}`
        return False
    plain = name.lower()
    if plain in VAGUE:
        return looks_random(text)
    if plain.endswith(_PHRASE):
        return is_phrase(text)
    return plain not in _SHORT or len(text) >= _LONG or looks_secret(text)


def _is_vague_secret(text: str, level: Level) -> bool:
    """Return whether a string in an array or object below a name such as `token` is a secret.

    In an array it is one if it were one directly below the name. In an object, names and sentences are more usual.
    """
    if not _names(level.vague, text):
        return False
    if level.closing == "]" and level.above == level.vague:
        return True
    name = level.step if isinstance(level.step, str) else str(level.above)
    return not _BESIDE_TOKENS.fullmatch(name) and looks_secret(text) and not re.search(r"\s", text)


def _begins_schema(name: str | int, levels: Levels) -> bool:
    """Return whether what is entered is a member `schema` or `properties`, and looks like that of a JSON Schema."""
    if name not in ("schema", "properties"):
        return False
    found = levels.entered()
    return (are_schemas if name == "properties" else is_schema)(found)


@lru_cache(4096)
def _has_digits(name: str) -> bool:
    """Return whether numbers below a name are secrets."""
    return _DIGITS.search(_plain(name)) is not None


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


_LONG = 8  # minimum length of a word that may be a secret below a name such as `token`
_NUMBER = re.compile(r"(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?P<exponent>(?:[eE][+-]?\d+)?)")
_WORDS = re.compile(r"(?<!api)(?<!access)(?<!auth)token$")
_SHORTEST_NUMBER = 4
_SHORTEST_TOKEN = 6  # shorter ones are ids of the words of a language
_MOST_NUMBERS = 1000
