"""Searches for tokens of a known kind in frames and in texts, and recognises placeholders of secrets.

A frame may be large, and nearly every frame has no token. So the kinds of the table `KINDS` are grouped by one byte of
their literal, and most of these bytes are rare. The regex of a group begins with its byte, which the regex engine finds
at the speed of `memchr`, and then looks behind for the beginning of the literal. A text is short: each kind is searched
for if one of its literals occurs. Each regex is compiled on first use.

The last character of an escape, such as `%2F`, is not a letter before a token. A token with escapes inside it is found
in the text without them: in a frame with percent escapes only, in a text with all of them (percent-encoding of URLs,
escapes of JSON and of source code, references of HTML). Any of them may be applied several times, one after another. So
a text is unescaped until it has no more escapes, and each place in the result is mapped to its place in the original.
Only escapes of ASCII characters count: all tokens consist of these.

A placeholder is in the place of a secret, but is not one: an unexpanded variable, an example, the text of no value. It
is not redacted, because it is what a user has to see. The decision is strict: the whole value has one of these forms,
and no token of a known kind is inside. A value that also holds something else stays a secret. An example ends with the
word for what is missing, because a password may be a sentence that begins like an example.
"""

import re
from binascii import a2b_qp
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal
from urllib.parse import unquote

from mcpspy.secrets.patterns import KINDS, Kind, is_secret_name

_HEX = "[0-9A-Fa-f]"
BEFORE = (
    r"\\[bfnrt]",
    *(rf"{sign}{_HEX}{{2}}" for sign in ("%", "%25", "%2525", r"\\u0025", r"\\x", r"\\u00")),
    "=3D",  # quoted-printable
)
"""Regexes of fixed width for escapes that end with a letter or a digit, which is not part of the word after them."""
_CODE = r"[2-7][0-9A-Fa-f]|0[9AaDd]"  # printable ASCII, and white space
_ESCAPE = re.compile(
    rf"(?:%(?:25)*+|\\{{1,8}}(?:u00|x))(?P<hex>{_CODE})|&#[xX]0{{0,4}}(?P<reference>{_CODE});"
    r"|&#0{0,4}(?P<decimal>9|1[03]|3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]);|\\{1,8}/"
)
_SIGNS = ("%", "&#", "\\u00", "\\x", "\\/")
_ROUNDS = 4  # escapes of escapes that are followed
_PERCENT_ESCAPE = re.compile(b"%" + 2 * _HEX.encode())
_TO_QUOTED, _FROM_QUOTED = bytes.maketrans(b"%=\r\n", b"=\x7f\1\2"), bytes.maketrans(b"\x7f\1\2", b"=\r\n")


def has_escapes(text: str) -> bool:
    """Return whether a text has an escape of an ASCII character."""
    return any(sign in text for sign in _SIGNS) and _ESCAPE.search(text) is not None


def without_percent(raw: bytes) -> bytes:
    """Return bytes without percent-encoding; the same object if there is none. Any other `%` may become `=`.

    The C function for quoted-printable is ten times as fast as `unquote_to_bytes`.
    """
    for _ in range(_ROUNDS):
        if not _PERCENT_ESCAPE.search(raw):
            break
        raw = a2b_qp(raw.translate(_TO_QUOTED)).translate(_FROM_QUOTED)
    return raw


class Unescaped:
    """A text without its escapes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._rounds: list[tuple[list[int], list[int]]] = []
        for _ in range(_ROUNDS):
            if not self._unescape():
                break

    def place(self, at: int) -> int:
        """Return the place in the original of a place in `text`."""
        for befores, afters in reversed(self._rounds):
            last = bisect_right(befores, at) - 1
            at += afters[last] - befores[last] if last >= 0 else 0
        return at

    def _unescape(self) -> bool:
        """Unescape once; for each escape, note where it ends in the new text and in the old one."""
        parts: list[str] = []
        befores, afters = [], []
        done = size = 0
        for found in _ESCAPE.finditer(self.text):
            name = found.lastgroup
            character = chr(int(found[name], 10 if name == "decimal" else 16)) if name else "/"
            parts += [self.text[done : found.start()], character]
            size += found.start() - done + len(character)
            done = found.end()
            befores.append(size)
            afters.append(done)
        if parts:
            self.text = "".join(parts) + self.text[done:]
            self._rounds.append((befores, afters))
        return bool(parts)


_ANCHORS = "_JKGA-.p"
"""Bytes of literals, in the order of preference: rare in JSON, and in few groups. The last two are frequent."""
_FREQUENT = _ANCHORS[-2:]
_ENVELOPE = b'{"jsonrpc":"2.0"'  # how most frames begin; it has two frequent bytes, and no literal has a quote
_SHORT = 256  # characters
_PERCENT = ord("%")


def in_frame(raw: bytes) -> tuple[str, bytes] | None:
    """Return the name of the kind of the first token in a frame, and the token, or None if there is none.

    A token that is percent-encoded is returned without its encoding.
    """
    if _PERCENT in raw:
        raw = without_percent(raw)
    start = len(_ENVELOPE) if raw.startswith(_ENVELOPE) else 0
    for byte, literal in _needles():
        if byte in raw and (literal is None or raw.find(literal) >= 0):  # `in` takes twice as long for a literal
            search, kinds = _group(byte)
            if found := search(raw, start):
                kind, offset = kinds[found.lastindex or 0]
                return kind.name, raw[found.start() - offset : found.end()]
    return None


def replaced(text: str, mark: Callable[[str], str], *, full: bool = False) -> str:
    """Replace each token in a text by the result of `mark`. With `full`, only tokens in their full form."""
    if has_escapes(text):
        text = _replaced_escaped(text, mark, full)
    if len(text) < _SHORT and not _literals().search(text):
        return text
    for kind in KINDS:
        for literal in kind.literals:
            if literal in text:
                text = _in_text(kind, full).sub(lambda it: it["kept"] + mark(it["token"]), text)
                break
    return text


def _replaced_escaped(text: str, mark: Callable[[str], str], full: bool) -> str:
    """Replace the tokens that are found in the text without its escapes."""
    plain = Unescaped(text)
    spans = sorted(
        found.span("token")
        for kind in KINDS
        if any(literal in plain.text for literal in kind.literals)
        for found in _in_text(kind, full).finditer(plain.text)
    )
    clean, done = [], 0
    while spans:
        start, end = spans.pop(0)
        while spans and spans[0][0] < end:  # kinds that overlap: all of it is secret
            end = max(end, spans.pop(0)[1])
        clean += [text[done : plain.place(start)], mark(plain.text[start:end])]
        done = plain.place(end)
    return "".join(clean) + text[done:]


def may_hold_token(text: str) -> bool:
    """Return whether a text may contain a token in its full form. Never wrongly False."""
    return has_escapes(text) or in_frame(text.encode("utf-8", "surrogatepass")) is not None


def kind_of(text: str) -> Kind | None:
    """Return the kind of the first token in a text, in its full or short form, or None if there is none."""
    if _literals().search(text):
        for kind in KINDS:
            if any(literal in text for literal in kind.literals) and _in_text(kind, full=False).search(text):
                return kind
    return None


def _anchor(literal: str) -> int:
    """Return the index of the character of a literal that is searched for."""
    return literal.rindex(min(literal, key=lambda character: _ANCHORS.find(character) % 100))


def _in_frame(kind: Kind, literal: str, place: int) -> str:
    """Return the regex after the character of a literal at `place`. It looks behind for what precedes."""
    before, behind = re.escape(literal[: place + 1]), re.escape(literal[place + 1 :])
    if kind.after:
        return f"((?<={kind.after}{before}){behind}{kind.rest})"
    return f"((?<={before})(?:{_free(kind, before)}){behind}{kind.rest})"


def _free(kind: Kind, literal: str = "") -> str:
    """Return alternatives for what may precede a token, looking behind from the end of `literal`."""
    return "|".join([f"(?<![{kind.not_after}]{literal})", *(f"(?<={escape}{literal})" for escape in BEFORE)])


_Literals = dict[str, list[tuple[Kind, str, int]]]
"""By the character before the one that is searched for: kinds, each with a literal and the index of its character."""


@cache
def _groups() -> dict[int, _Literals]:
    """Return the literals by the byte to search for, the rare bytes first."""
    groups: dict[int, _Literals] = {}
    for kind in KINDS:
        for literal in kind.literals:
            place = _anchor(literal)
            before = literal[place - 1] if place else ""
            groups.setdefault(ord(literal[place]), {}).setdefault(before, []).append((kind, literal, place))
    return {byte: groups[byte] for byte in sorted(groups, key=lambda byte: chr(byte) in _FREQUENT)}


@cache
def _needles() -> tuple[tuple[int, bytes | None], ...]:
    """Return the bytes to search for, each with the literal of its group if there is only one."""
    found: list[tuple[int, bytes | None]] = []
    for byte, parts in _groups().items():
        literals = [literal for members in parts.values() for _, literal, _ in members]
        found.append((byte, literals[0].encode() if len(literals) == 1 else None))
    return tuple(found)


@cache
def _group(byte: int) -> tuple[Callable[[bytes, int], re.Match[bytes] | None], list[tuple[Kind, int]]]:
    """Return the search for the literals of a byte, and by group number of a match its kind.

    Each kind has the number of bytes from the beginning of the token to the match.
    """
    parts = _groups()[byte]
    forms, kinds = [], [(KINDS[0], 0)]  # the groups of a match are numbered from 1
    beginning = re.escape(chr(byte))
    for before, members in parts.items():
        forms.append(f"(?<={re.escape(before)}{beginning})(?:{'|'.join(_in_frame(*one) for one in members)})")
        kinds += [(kind, place) for kind, _, place in members]
    if "" not in parts:  # most bytes are ruled out by the byte before them
        beginning += f"(?<=[{re.escape(''.join(parts))}]{beginning})"
    return re.compile(f"{beginning}(?:{'|'.join(forms)})".encode()).search, kinds


@cache
def _literals() -> re.Pattern[str]:
    """Return a regex for any literal: one search through a short text is faster than one for each."""
    return re.compile("|".join(re.escape(literal) for kind in KINDS for literal in kind.literals))


@cache
def _in_text(kind: Kind, full: bool) -> re.Pattern[str]:
    """Return the regex of a token in a text: its full or short form, or with `full` only the full form."""
    if kind.text and not full:
        return re.compile(kind.text, re.ASCII)
    literals = "|".join(map(re.escape, kind.literals))
    before = f"(?<={kind.after})" if kind.after else f"(?:{_free(kind)})"
    rest = f"(?:{kind.rest}|{kind.short})" if kind.short and not full else kind.whole
    if kind.kept:
        return re.compile(f"{before}(?P<kept>{literals})(?P<token>{rest})", re.ASCII)
    return re.compile(f"{before}(?P<kept>)(?P<token>(?:{literals}){rest})", re.ASCII)


PlaceholderKind = Literal["variable", "example", "no value"]

_LONGEST, _DIGITS = 120, 3
_NOUN = r"(?:(?:api)?keys?|tokens?|secrets?|passwords?|credentials?|values?|here|pat|jwt|id)"
_FORM = re.compile(
    r"(?P<variable>\$\{(?:[A-Za-z_]\w*|(?:env|input|config|vars?|secrets?)[:.][A-Za-z_][\w.-]*)(?::?-)?\}"
    r"|\$\{\{\s?[A-Za-z_][\w.-]*\s?\}\}|\{\{\s?[A-Za-z_][\w.:-]*\s?\}\}|\$env:[A-Za-z_]\w*)"
    r"|\$(?P<shell>[A-Za-z_]\w*)|%(?P<windows>[A-Za-z_]\w*)%"
    r"|<(?P<angle>[A-Za-z][A-Za-z _.-]*)>"
    rf"|(?P<example>(?i:(?:your|insert|replace|enter|paste)(?:[\s_-]+[a-z]+)*[\s_-]+{_NOUN}[\s_.!…-]*))"
    r"|(?P<nothing>(?i:undefined|null|none|nil|\(null\)|\[object object\]))"
)
_OF_SHELL = re.compile(r"[A-Z_]{3,}|[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_EXAMPLE = re.compile(rf"(?i:(?:.*[ _.-])?{_NOUN}|your[ _.-].*)")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where a word of `YourApiKey` begins."""


def placeholder(value: str) -> PlaceholderKind | None:
    """Return what a value in the place of a secret is, if it is not a secret."""
    value = value.strip()
    if value[:1] in ("'", '"') and value[-1:] == value[:1]:
        value = value[1:-1]
    if not 0 < len(value) <= _LONGEST or replaced(value, lambda _: "", full=False) != value:
        return None
    found = _FORM.fullmatch(value) or ("%" in value and _FORM.fullmatch(unquote(value))) or None
    if found is None:
        return None
    if sum(map(str.isdigit, found.string)) > _DIGITS:  # it looks random
        return None
    name = found["shell"] or found["windows"]
    if name:
        return "variable" if _OF_SHELL.fullmatch(name) else None
    if found["angle"]:
        return "example" if _EXAMPLE.fullmatch(_HUMP.sub("-", found["angle"])) else None
    return "variable" if found["variable"] else "example" if found["example"] else "no value"


def unfilled(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the placeholders of a command line, each with the option or variable that it belongs to, if it has one.

    A variable counts as a whole word and after `=`; the other kinds only below the name of a secret.
    """
    before = ""
    for word in words:
        name, equals, value = word.partition("=")
        owner, value = (name, value) if equals and not word.startswith("$") else (before, word)
        kind = placeholder(value)
        if kind == "variable" or (kind and is_secret_name(owner.lstrip("-"))):
            yield owner, value
        before = word if word.startswith("-") else ""
