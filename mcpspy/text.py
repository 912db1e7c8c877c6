"""Text for people: captured text made safe for a terminal, and quantities.

Captured text is hostile until it has been through `printable` (F-08).

A server that can put an escape sequence on the screen can hide what it did; one with a right-to-left override can make
it read differently; one with a line of 100 kB can make the screen unusable; one that piles accents on a letter draws
over the lines around it.
"""

from collections.abc import Iterator, Mapping
from unicodedata import category, east_asian_width

from mcpspy.errors import UsageError

SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
"""The units of sizes, in bytes."""
LEAST_CAPTURE = 100_000
"""The least that `--max-capture` may be: a smaller file could not hold the heads of its open channels."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# Controls, surrogates, line and paragraph separators, and all format characters: they hide, join or change direction.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_MARKS = frozenset(("Mn", "Me"))  # they stand on, below or around the character before them
_PILE = 4  # of those on one character: what languages are written with has no more
_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\ufe0f\uffa0")  # seen as nothing, though of other categories


def printable(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, whatever is in it."""
    clipped = text[: limit + 1]  # the text may be megabytes long
    plain = clipped.isprintable() and (clipped.isascii() or _is_latin(clipped))
    safe = clipped if plain else "".join(_shown(clipped))
    return safe if len(safe) <= limit else safe[: max(limit - 1, 0)] + "…"


def _is_latin(text: str) -> bool:
    """Whether all of it is Latin-1 or the mark of our clipping: a column each, and nothing that stands on a letter."""
    others = len(text) - len(text.encode("latin-1", "ignore"))
    return not others or others == text.count("…")


def _shown(text: str) -> Iterator[str]:
    """Each character as it is shown."""
    pile = 0
    for character in text:
        if " " <= character <= "~":
            pile = 0
            yield character
            continue
        kind = category(character)
        pile = pile + 1 if kind in _MARKS else 0
        tag = "\U000e0000" <= character <= "\U000e0fff"  # most of these are not assigned, and none is seen
        if kind in _UNSAFE or character in _BLANK or tag or pile > _PILE:
            yield _escape(character)
        else:
            yield character


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def columns(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    return len(text) if text.isascii() or _is_latin(text) else sum(map(_width, text))


def fitted(text: str, room: int) -> str:
    """`text`, made printable, in at most `room` columns of a terminal."""
    return measured(text, room)[0]


def measured(text: str, room: int) -> tuple[str, int]:
    """`text` as `fitted` makes it, and how many columns that takes."""
    if room <= 0:
        return "", 0
    start = text[:room]
    if start.isascii() and start.isprintable():  # what most texts are; the rest finds the same in more steps
        return (start, len(start)) if len(text) <= room else (f"{start[:-1]}…", room)
    shown = printable(text, room)
    taken = columns(shown)
    if taken > room:
        used, end = 1, 0  # the last one is for `…`
        while used + _width(shown[end]) <= room:
            used += _width(shown[end])
            end += 1
        shown, taken = f"{shown[:end]}…", used
    return shown, taken


def wrapped(text: str, room: int) -> Iterator[str]:
    """The lines of `text`, made printable, broken at blanks into lines of at most `room` columns of a terminal."""
    for line in text.split("\n"):
        shown = printable(line.removesuffix("\r"), 10 * len(line) + 1)  # as long as an escape may be
        start = blank = used = 0
        for end, character in enumerate(shown if columns(shown) > room else ""):
            width = _width(character)
            if used + width > max(room, 1) and end > start:
                cut = end if character == " " or blank <= start else blank
                yield shown[start:cut]
                start = cut + (shown[cut] == " ")
                used = columns(shown[start:end])
            if character == " ":
                blank = end
            used += width
        yield shown[start:]


def _width(character: str) -> int:
    if category(character) in _MARKS:
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def plural(number: int, noun: str) -> str:
    """`1 frame`, `2 frames`, `1,000 frames`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size: float) -> str:
    """Bytes as people read them, in powers of 1000."""
    if size < 1000:
        return f"{size} B" if type(size) is int else f"{size:.0f} B"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.1f} {unit}"


def age_text(seconds: float) -> str:
    """How long ago, in the largest unit that fits."""
    return f"{length_text(seconds)} ago"


def length_text(seconds: float) -> str:
    """How many days, hours, minutes or seconds, in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def duration_text(nanoseconds: int) -> str:
    """How long something took, in the unit that suits it."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1e3:.0f} µs"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1_000_000_000 else f"{nanoseconds / 1e9:.2f} s"


def quantity(text: str, units: Mapping[str, int], option: str, examples: str) -> float:
    """The number that an option's value such as `2GB` stands for. Raises UsageError."""
    import re

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    unit = match[2] if match else ""
    factor = units.get(unit, units.get(unit.upper(), units.get(unit.lower())))
    if not match or factor is None:
        raise UsageError(f"{option} cannot be {text!r}; it is a number with a unit, such as {examples}")
    return float(match[1]) * factor


def capture_limit(text: str | None) -> int | None:
    """The bytes that a value of `--max-capture` stands for, None for none. Raises UsageError."""
    if text is None:
        return None
    size = quantity(text, SIZES, "--max-capture", "500MB, 2GB")
    if size < LEAST_CAPTURE:
        raise UsageError(f"--max-capture must be at least {size_text(LEAST_CAPTURE)}, not {text!r}")
    return int(size)
