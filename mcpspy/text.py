"""Text for people: captured text made safe for a terminal, and quantities.

Captured text is untrusted until `printable` has processed it (F-08). Invisible characters stay only where they do what
they are for: they join the pictures of an emoji (UTS #51), or letters of Arabic and Indic scripts (UAX #31, 2.3).
`escaped` is the last barrier: whatever is written to a terminal passes it, so text that nobody has made printable is
escaped there (`cli/output.py`, `tui/app.py`).

A server can hide what it did with an escape sequence. It can change how text reads with a right-to-left override. It
can make the screen unusable with a line of 100 kB. It can draw over the lines above and below with many combining
accents on one letter.
"""

from unicodedata import category, combining, east_asian_width

from mcpspy.errors import UsageError

TYPE_CHECKING = False  # each Tab imports this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
"""The units of sizes, in bytes."""
LEAST_CAPTURE = 100_000
"""The minimum of `--max-capture`: a smaller file could not contain the heads of its open channels."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# Controls, surrogates, line and paragraph separators, and all format characters: they hide or join text, or change its
# direction.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_MARKS = frozenset(("Mn", "Me"))  # drawn above, below or around the preceding character
_COMPARED = 100  # characters of a wrong name: the time grows with the square
LONGEST_NAME = 300
"""The maximum characters of a name that are shown."""
_SHORTEST_NAME = 8  # columns of a name that is shortened in the middle, at least
_PILE = 4  # maximum marks on one character: no written language uses more
_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\ufe0f\uffa0")  # invisible, although in other categories
_JOINER, _NON_JOINER, _AS_PICTURE = "\u200d", "\u200c", "\ufe0f"
_JOINS = 4  # maximum joined pictures in one: no emoji has more
_VIRAMA = 9  # the combining class of the signs that join letters of Indic scripts
_BINDING = frozenset((_JOINER, _NON_JOINER, _AS_PICTURE))
_BETWEEN = _JOINER + _NON_JOINER  # they do nothing at the end of a text
_KEYCAPS = frozenset("0123456789#*")


def printable(text: str, limit: int) -> str:
    """Return `text` as one safe line of at most `limit` characters."""
    safe = printable_whole(text[: limit + 1])  # the text may be megabytes long
    return safe if len(safe) <= limit else safe[: max(limit - 1, 0)].rstrip(_BETWEEN) + "…"


def printable_whole(text: str) -> str:
    """Return `text` as one safe line, however long it is."""
    plain = text.isprintable() and (text.isascii() or _is_latin(text))
    return text if plain else "".join(_shown(text, _escape))


def escaped(text: str) -> str:
    """Return text of several lines, whole, with unsafe characters as escapes of JSON.

    JSON keeps its value, because its text has unsafe characters only within strings.
    """
    return "".join(_shown(text, _json_escape))


def without_unsafe(text: str) -> str:
    """Return text without its unsafe characters, for a line that the user edits."""
    return "".join(_shown(text, lambda _: ""))


def _is_latin(text: str) -> bool:
    """Return whether all characters are Latin-1 or our `…`: each takes one column, and none is a combining mark."""
    others = len(text) - len(text.encode("latin-1", "ignore"))
    return not others or others == text.count("…")


def _shown(text: str, escape: "Callable[[str], str]") -> "Iterator[str]":
    """Yield each character as it is shown; `escape` returns what is shown of an unsafe one."""
    pile = joined = 0
    for at, character in enumerate(text):
        if " " <= character <= "~":
            pile = joined = 0
            yield character
            continue
        kind = category(character)
        pile = pile + 1 if kind in _MARKS else 0
        tag = "\U000e0000" <= character <= "\U000e0fff"  # most of these are unassigned, and all are invisible
        if character not in _BINDING and text[at - 1 : at] not in _BINDING:
            joined = 0
        if character in _BINDING and pile <= _PILE and joined < _JOINS and _binds(text, at):
            joined += character == _JOINER
            yield character
        elif character in _BETWEEN and _is_cut(text, at):
            continue
        elif kind in _UNSAFE or character in _BLANK or tag or pile > _PILE:
            yield escape(character)
        else:
            yield character


def _binds(text: str, at: int) -> bool:
    """Return whether an invisible character joins pictures or letters, or keeps letters apart, as it is meant to."""
    character, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    if character == _AS_PICTURE:
        return _is_picture(before) or (before in _KEYCAPS and after == "\u20e3")
    if not after:
        return False
    if character == _JOINER and (before == _AS_PICTURE or _is_tone(before) or _is_picture(before)):
        return _is_picture(after)
    letters = _script(before) == _script(after) != 0 and category(after) == "Lo"
    return letters and (character == _NON_JOINER or combining(before) == _VIRAMA)


def _is_cut(text: str, at: int) -> bool:
    """Return whether a text is shortened behind a joiner, so that the joiner has nothing to join."""
    before = text[at - 1 : at]
    joins = before and (before == _AS_PICTURE or _is_tone(before) or _is_picture(before) or _script(before))
    return bool(joins) and text[at + 1 : at + 2] == "…"


def _is_picture(character: str) -> bool:
    return category(character) == "So"


def _is_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff"


def _script(character: str) -> int:
    """Return 1 for letters of Arabic, 2 for those of the Indic scripts, which are joined too, and 0 for others."""
    return 1 if "\u0600" <= character <= "\u08ff" else 2 if "\u0900" <= character <= "\u0dff" else 0


def _escape(character: str) -> str:
    code = ord(character)
    digits = f"x{code:02x}" if code < 0x100 else f"u{code:04x}" if code < 0x10000 else f"U{code:08x}"
    return _NAMED.get(character) or f"\\{digits}"


def _json_escape(character: str) -> str:
    """Return an unsafe character as an escape of JSON; line ends and tabs stay, as JSON has them between values."""
    if character in "\n\t":
        return character
    code = ord(character)
    units = (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))
    return "".join(f"\\u{unit:04x}" for unit in units)


def columns(text: str) -> int:
    """Return the width of a printable text in terminal columns."""
    return len(text) if text.isascii() or _is_latin(text) else sum(_widths(text))


def fitted(text: str, room: int) -> str:
    """Return `text`, made printable, in at most `room` terminal columns."""
    return measured(text, room)[0]


def measured(text: str, room: int) -> tuple[str, int]:
    """Return the result of `fitted`, and its width in columns."""
    if room <= 0:
        return "", 0
    start = text[:room]
    if start.isascii() and start.isprintable():  # true for most texts; the code below gives the same result more slowly
        return (start, len(start)) if len(text) <= room else (f"{start[:-1]}…", room)
    shown = printable(text, room)
    taken = columns(shown)
    if taken > room:
        used, end = 1, 0  # one column is reserved for `…`
        for width in _widths(shown):
            if used + width > room:
                break
            used += width
            end += 1
        shown, taken = f"{shown[:end].rstrip(_BETWEEN)}…", used
    return shown, taken


def fitted_name(name: str, room: int) -> str:
    """Return a name like `fitted`, but shortened in the middle, because long names often differ only at the end."""
    shown = printable(name, LONGEST_NAME)
    if room < _SHORTEST_NAME or columns(shown) <= room:
        return fitted(name, room)
    widths = list(_widths(shown))
    end, taken = len(shown), 0
    while taken + widths[end - 1] <= room // 2:
        end -= 1
        taken += widths[end]
    while not widths[end]:  # what is drawn on the character before, or joined with it
        end += 1
    return f"{fitted(shown, room - taken)}{shown[end:]}"


def wrapped(text: str, room: int) -> "Iterator[str]":
    """Yield the lines of `text`, made printable, and broken at blanks to at most `room` terminal columns."""
    for line in text.split("\n"):
        shown = printable(line.removesuffix("\r"), 10 * len(line) + 1)  # no escape has more than 10 characters
        start = blank = used = 0
        broken = shown if columns(shown) > room else ""
        for end, (character, width) in enumerate(zip(broken, _widths(broken), strict=True)):
            if width and used + width > max(room, 1) and end > start:
                cut = end if character == " " or blank <= start else blank
                yield shown[start:cut].rstrip(_BETWEEN)
                start = cut + (shown[cut] == " ")
                used = columns(shown[start:end])
            if character == " ":
                blank = end
            used += width
        yield shown[start:]


def _widths(text: str) -> "Iterator[int]":
    """Yield how many columns each character of a printable text adds, as terminals that join pictures show it."""
    before, last = "", 0
    for character in text:
        if character == _AS_PICTURE:
            width = 1 if last == 1 else 0
        elif (
            before == _JOINER
            or character in _BINDING
            or category(character) in _MARKS
            or (_is_tone(character) and last)
        ):
            width = 0
        else:
            width = 2 if east_asian_width(character) in ("W", "F") else 1
        before, last = character, width
        yield width


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 frame`, `2 frames`, `1,000 frames`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def series(words: "Sequence[str]", last: str = "and") -> str:
    """Return words as a list in a sentence: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def suggestion(name: str, known: "Iterable[str]", otherwise: str, most: int = 1) -> str:
    """Return `did you mean 'a'?` with the known names that are nearest to a wrong one; `otherwise` if none is near."""
    from difflib import get_close_matches  # imported only for a mistake

    by_case = {it.lower(): it for it in known}
    near = [repr(by_case[it]) for it in get_close_matches(name[:_COMPARED].lower(), by_case, most)]
    return f"did you mean {series(near, 'or')}?" if near else otherwise


def size_text(size: float) -> str:
    """Return a number of bytes for people to read, in powers of 1000."""
    if size < 1000:
        return f"{size} B" if type(size) is int else f"{size:.0f} B"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.1f} {unit}"


def age_text(seconds: float) -> str:
    """Return how long ago something was, in the largest unit that fits: `3 h ago`."""
    return f"{length_text(seconds)} ago"


def length_text(seconds: float) -> str:
    """Return a number of days, hours, minutes or seconds, in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def duration_text(nanoseconds: int) -> str:
    """Return a duration in µs, ms or s, whichever suits it."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1e3:.0f} µs"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1_000_000_000 else f"{nanoseconds / 1e9:.2f} s"


def quantity(text: str, units: "Mapping[str, int]", option: str, examples: str) -> float:
    """Return the number that an option's value such as `2GB` means. Raises UsageError."""
    import re

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    unit = match[2] if match else ""
    factor = units.get(unit, units.get(unit.upper(), units.get(unit.lower())))
    if not match or factor is None:
        raise UsageError(f"{option} cannot be {text!r}; it is a number with a unit, such as {examples}")
    return float(match[1]) * factor


def capture_limit(text: str | None) -> int | None:
    """Return the bytes that a value of `--max-capture` means; None if there is no value. Raises UsageError."""
    if text is None:
        return None
    size = quantity(text, SIZES, "--max-capture", "500MB, 2GB")
    if size < LEAST_CAPTURE:
        raise UsageError(f"--max-capture must be at least {size_text(LEAST_CAPTURE)}, not {text!r}")
    return int(size)
