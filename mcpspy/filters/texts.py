"""Texts as a filter compares them, and the traces that they leave in the lines of a capture.

The theory. A text in a frame is in most cases JSON: letters may stand there as escapes. The line of the capture holds
the frame as a JSON string, which escapes the quotes and backslashes once more. So a text is looked for in the frame as
it came and with its escapes undone, and of its trace only those letters are kept which have one form in all of that:
no quotes, backslashes, slashes (some peers escape them) or controls, and where case is ignored nothing that has two
cases beyond ASCII. A line that holds an escape by number hides anything; who compares traces must look for that.
"""

import fnmatch
import json
import re
from collections.abc import Callable

from mcpspy.filters.tree import Trace, Value
from mcpspy.timeline import Row


def folded(text: str) -> str:
    """`text` in lower case, but for the two letters (K for kelvin, İ) that would become ASCII by that."""
    return text.lower() if text.isascii() else _FOLDED.sub(lambda match: match[0].lower(), text)


_FOLDED = re.compile("[^\u0130\u212a]+")
_SHORT = {'\\"': '"', "\\/": "/", "\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f"}
_LONG = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def unescaped(text: str) -> str:
    """`text` with the escapes of JSON strings replaced by what they stand for (RFC 8259, 7)."""
    return "\\".join(map(_without_escapes, text.split("\\\\")))


def _without_escapes(text: str) -> str:
    if "\\" in text:
        for escape, letter in _SHORT.items():
            text = text.replace(escape, letter)
        text = _LONG.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)
    return text


def row_text(row: Row) -> str:
    """What free text is looked for in: the frame as it came, or what there is instead of one."""
    return (row.raw + row.tail).decode(errors="replace") if row.raw else row.text or ""


def smart(text: str) -> Callable[[str], str]:
    """How texts are brought to the case of `text`: left alone, if it has capitals (as ripgrep does)."""
    return str if any(letter.isupper() for letter in text) else folded


def contains(text: str) -> Callable[[str], bool]:
    """Whether a frame holds a text: as it came, or with its escapes undone."""
    case = smart(text)
    wanted = case(text)

    def test(found: str) -> bool:
        if wanted in found:  # as it was typed: there is no need to fold
            return True
        return wanted in case(found) or ("\\" in found and wanted in case(unescaped(found)))

    return test


def trace(text: str) -> Trace:
    """The bytes that a line has if `text` is in its frame: what is neither escaped nor has two cases."""
    sensitive = smart(text) is str
    kept = (letter if letter.isascii() or sensitive or letter.upper() == letter.lower() else "\n" for letter in text)
    return tuple(run.encode().lower() for run in _ESCAPED.split("".join(kept)) if run)


_ESCAPED = re.compile('["\\\\/\x00-\x1f\ud800-\udfff]+')


def glob(value: Value) -> Callable[[str], bool]:
    """Whether a whole text is as the value says; unless that is quoted, `*` is any text in it and `?` any letter."""
    case = smart(value.text)
    wanted = case(value.text)
    if value.quoted or not WILD.search(wanted):
        return lambda text: case(text) == wanted
    whole = re.compile(fnmatch.translate(wanted.replace("[", "[[]")))  # without backtracking
    return lambda text: whole.match(case(text)) is not None


WILD = re.compile(r"[*?]+")
"""What stands for other letters in a glob."""
