r"""Searches for tokens of a known kind in frames and in texts. Both searches are built from the table `KINDS`.

A frame may be large, and nearly every frame has no token. So the kinds are grouped by one byte of their literal, and
most of these bytes are rare. The regex of a group begins with its byte, which the regex engine finds at the speed of
`memchr`, and then looks behind for the beginning of the literal. A text is short: each kind is searched for if one of
its literals occurs. Each regex is compiled on first use.

The last character of an escape (`%2F`, `\n`) is not a letter before a token. A token with escapes inside it is found
in the text without them (`mcpspy.secrets.escapes`): in a frame with percent escapes only, in a text with all of them.
"""

import re
from collections.abc import Callable
from functools import cache

from mcpspy.secrets.escapes import BEFORE, Unescaped, has_escapes, without_percent
from mcpspy.secrets.patterns import KINDS, Kind

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
