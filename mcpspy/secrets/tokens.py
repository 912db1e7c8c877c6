"""Tokens of a known kind, looked for in frames and in texts; both searches are made from the table `KINDS`.

A frame may be large, and nearly every frame holds no token. The kinds are grouped by one byte of their literal, and
most of these bytes are rare. The regex of a group begins with its byte, which the regex engine finds at the speed of
`memchr`, and looks back for the beginning of the literal. A text is short, and a kind is looked for where one of its
literals stands. Each regex is compiled when it is needed first.
"""

import re
from collections.abc import Callable
from functools import cache

from mcpspy.secrets.patterns import KINDS, Kind

_ANCHORS = "_JKGA-.p"
"""Bytes of literals, the one to search for first: rare in JSON, and in few groups; the last two are frequent."""
_FREQUENT = _ANCHORS[-2:]
_SHORT = 256  # characters
_ESCAPED = r"(?<=\\[nrt]{})"  # behind a line break, in JSON


def in_frame(raw: bytes) -> tuple[str, bytes] | None:
    """The name of the kind of the first token in a frame, and the token; None where there is none."""
    for byte in _bytes():
        if byte in raw:
            search, kinds = _group(byte)
            if found := search(raw):
                kind, offset = kinds[found.lastindex or 0]
                return kind.name, raw[found.start() - offset : found.end()]
    return None


def replaced(text: str, mark: Callable[[str], str], *, full: bool = False) -> str:
    """A text with `mark` of each token in its place; with `full` only of those whose length and characters fit."""
    if len(text) < _SHORT and not _literals().search(text):
        return text
    for kind in KINDS:
        for literal in kind.literals:
            if literal in text:
                text = _in_text(kind, full).sub(lambda it: it["kept"] + mark(it["token"]), text)
                break
    return text


def kind_of(text: str) -> Kind | None:
    """The kind of the first token in a text, in its full or short form; None where there is none."""
    if _literals().search(text):
        for kind in KINDS:
            if any(literal in text for literal in kind.literals) and _in_text(kind, full=False).search(text):
                return kind
    return None


def _anchor(literal: str) -> int:
    """The place of the character of a literal that is searched for."""
    return literal.rindex(min(literal, key=lambda character: _ANCHORS.find(character) % 100))


def _in_frame(kind: Kind, literal: str, place: int) -> str:
    """The regex of what follows the character of a literal at `place`; what stands before is looked back for."""
    before, behind = re.escape(literal[: place + 1]), re.escape(literal[place + 1 :])
    if kind.after:
        return f"((?<={kind.after}{before}){behind}{kind.rest})"
    free = f"(?<![{kind.not_after}]{before})"
    return f"((?<={before})(?:{free}|{_ESCAPED.format(before)}){behind}{kind.rest})"


_Literals = dict[str, list[tuple[Kind, str, int]]]
"""By the character before the one that is searched for: kinds, each with a literal and the place of its character."""


@cache
def _groups() -> dict[int, _Literals]:
    """The literals by the byte to search for, the rare bytes first."""
    groups: dict[int, _Literals] = {}
    for kind in KINDS:
        for literal in kind.literals:
            place = _anchor(literal)
            before = literal[place - 1] if place else ""
            groups.setdefault(ord(literal[place]), {}).setdefault(before, []).append((kind, literal, place))
    return {byte: groups[byte] for byte in sorted(groups, key=lambda byte: chr(byte) in _FREQUENT)}


@cache
def _bytes() -> tuple[int, ...]:
    """The bytes to search for."""
    return tuple(_groups())


@cache
def _group(byte: int) -> tuple[Callable[[bytes], re.Match[bytes] | None], list[tuple[Kind, int]]]:
    """The search for the literals of a byte, and for each number of a match the kind.

    Each kind with the number of bytes from the token's beginning to the match.
    """
    parts = _groups()[byte]
    forms, kinds = [], [(KINDS[0], 0)]  # a match has a number from 1 on
    beginning = re.escape(chr(byte))
    for before, members in parts.items():
        forms.append(f"(?<={re.escape(before)}{beginning})(?:{'|'.join(_in_frame(*one) for one in members)})")
        kinds += [(kind, place) for kind, _, place in members]
    if "" not in parts:  # most bytes are dismissed by the one before them
        beginning += f"(?<=[{re.escape(''.join(parts))}]{beginning})"
    return re.compile(f"{beginning}(?:{'|'.join(forms)})".encode()).search, kinds


@cache
def _literals() -> re.Pattern[str]:
    """Any literal: one search through a short text is faster than one for each."""
    return re.compile("|".join(re.escape(literal) for kind in KINDS for literal in kind.literals))


@cache
def _in_text(kind: Kind, full: bool) -> re.Pattern[str]:
    """The regex of a token in a text, unless it is to be `full` in its short form too."""
    if kind.text and not full:
        return re.compile(kind.text, re.ASCII)
    literals = "|".join(map(re.escape, kind.literals))
    before = f"(?<={kind.after})" if kind.after else f"(?<![{kind.not_after}])"
    rest = f"(?:{kind.rest}|{kind.short})" if kind.short and not full else kind.whole
    if kind.kept:
        return re.compile(f"{before}(?P<kept>{literals})(?P<token>{rest})", re.ASCII)
    return re.compile(f"{before}(?P<kept>)(?P<token>(?:{literals}){rest})", re.ASCII)
