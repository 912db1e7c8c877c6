"""What is in the place of a secret but not a secret: an unexpanded variable, an example, the text of no value.

Such a value is not redacted, because it is what a user has to see. The decision is strict: the whole value has one of
these forms, and no token of a known kind is inside. A value that also holds something else stays a secret. An example
ends with the word for what is missing, because a password may be a sentence that begins like an example.
"""

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import unquote

from mcpspy.secrets.patterns import is_secret_name
from mcpspy.secrets.tokens import replaced

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
