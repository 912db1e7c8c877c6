"""Texts as a filter compares them, and the traces that they leave in the lines of a capture.

The theory. A frame is usually JSON, which may contain letters as escapes. The line of the capture contains the frame as
a JSON string, which escapes the quotes and backslashes again. So a text is searched in the frame as received and with
its escapes decoded. Its trace contains only letters that have one form in all of these: no quotes, backslashes, slashes
(some peers escape them) or control characters, and, if case is ignored, no letters beyond ASCII that have two cases. A
line with a Unicode escape may hide anything; code that compares traces must check for that.
"""

import fnmatch
import json
import re
from collections.abc import Callable

from mcpspy.filters.tree import Trace, Value
from mcpspy.timeline import Row


def folded(text: str) -> str:
    """Return `text` in lower case, except the two letters (kelvin sign, İ) that would become ASCII."""
    return text.lower() if text.isascii() else _FOLDED.sub(lambda match: match[0].lower(), text)


_FOLDED = re.compile("[^\u0130\u212a]+")
_SHORT = {'\\"': '"', "\\/": "/", "\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f"}
_LONG = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def unescaped(text: str) -> str:
    """Return `text` with the escapes of JSON strings decoded (RFC 8259, 7)."""
    return "\\".join(map(_without_escapes, text.split("\\\\")))


def _without_escapes(text: str) -> str:
    if "\\" in text:
        for escape, letter in _SHORT.items():
            text = text.replace(escape, letter)
        text = _LONG.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)
    return text


def row_text(row: Row) -> str:
    """Return the text that free text is searched in: the frame as received, or the text of a row without one."""
    return (row.raw + row.tail).decode(errors="replace") if row.raw else row.text or ""


def smart(text: str) -> Callable[[str], str]:
    """Return the function that folds texts: lower case, or no change if `text` has capitals (as in ripgrep)."""
    return str if any(letter.isupper() for letter in text) else folded


def contains(text: str) -> Callable[[str], bool]:
    """Return a test whether a frame contains a text, as received or with its escapes decoded."""
    case = smart(text)
    wanted = case(text)

    def test(found: str) -> bool:
        if wanted in found:  # as typed: no folding needed
            return True
        return wanted in case(found) or ("\\" in found and wanted in case(unescaped(found)))

    return test


def trace(text: str) -> Trace:
    """Return the bytes of a line with `text` in its frame: those that are neither escaped nor have two cases."""
    sensitive = smart(text) is str
    kept = (letter if letter.isascii() or sensitive or letter.upper() == letter.lower() else "\n" for letter in text)
    return tuple(run.encode().lower() for run in _ESCAPED.split("".join(kept)) if run)


_ESCAPED = re.compile('["\\\\/\x00-\x1f\ud800-\udfff]+')


def glob(value: Value) -> Callable[[str], bool]:
    """Return a test whether a whole text matches the value; unless quoted, `*` is any text in it and `?` any letter."""
    case = smart(value.text)
    wanted = case(value.text)
    if value.quoted or not WILD.search(wanted):
        return lambda text: case(text) == wanted
    whole = re.compile(fnmatch.translate(wanted.replace("[", "[[]")))  # without backtracking
    return lambda text: whole.match(case(text)) is not None


WILD = re.compile(r"[*?]+")
"""The wildcards in a glob."""
