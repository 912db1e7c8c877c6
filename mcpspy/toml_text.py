"""TOML in files of others, parsed by `tomllib` after a look at what it must not be given.

`tomllib` keeps every beginning of a dotted key and about 1 KiB for each table, and remembers a place for each digit of
a number. So a small text can take gigabytes. The scan here needs no memory and time in proportion to the text. It may
count too much, but not too little: it ends early only at a string without an end, which `tomllib` does not accept
either.
"""

import re
import tomllib
from typing import Any

MOST_PARTS = 32
"""The most parts of a key or of the name of a table."""
MOST_VALUES = 100_000
"""The most values, tables and parts of keys of one text."""
LONGEST = 5000
"""The most characters of a number or of a key without quotes; Python accepts numbers of 4,300 digits."""

_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\[\s\S]|"{1,2}(?!"))*+"{3,5}+'
    r"|'''(?:[^']++|'{1,2}(?!'))*+'{3,5}+"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|#[^\n]*+"
    r"|(?P<unclosed>[\"'])"
    r"|(?P<dot>\.)"
    r"|(?P<mark>[=,\[\]{}])"
    r"|(?P<line>\n\s*+)"
    rf"|(?P<long>[\w+:-]{{{LONGEST + 1}}})"
    r"|[\w+:-]++"
)


def toml_values(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises ValueError with the place as `tomllib` writes it, also if the text is too large to be parsed. Raises
    RecursionError if it is nested too deeply.
    """
    _check(text)
    return tomllib.loads(text)


def _check(text: str) -> None:
    dots = count = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "unclosed":
            return
        if kind == "long":
            raise _refused(text, match.start(), f"a key or a number has more than {LONGEST:,} characters")
        if kind in ("mark", "line"):
            dots = 0
        if kind in ("mark", "dot"):
            count += 1
            dots += kind == "dot"
        if dots >= MOST_PARTS:
            raise _refused(text, match.start(), f"a key has more than {MOST_PARTS} parts")
        if count > MOST_VALUES:
            raise _refused(text, match.start(), f"there are more than {MOST_VALUES:,} values, tables and parts of keys")


def _refused(text: str, at: int, why: str) -> ValueError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return tomllib.TOMLDecodeError(f"{why} (at line {line}, column {column})")
