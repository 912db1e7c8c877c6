"""The values that are replaced, each with its label, and their places in a text.

Equal values have equal labels, numbered in the order in which they first appear. A value that was once below a secret
name is a secret everywhere. A long or random value is found wherever its characters are, also percent-encoded or
escaped for JSON; a shorter one only as a whole word; any other only as a whole string. One search per value would take
longer with each value. So from a certain number on, the positions in a text are compared with the beginnings of all
values at once.
"""

import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

from mcpspy.sharing.scrub.categories import HOME, USER, Category
from mcpspy.sharing.scrub.looks import is_distinctive, is_word

_FEW = 100  # number of forms up to which one search each is faster
_GRAM = 6  # minimum length of a value that is searched for
_ANCHOR = 3  # minimum length of the part of a value that is searched for to find the value
_PERCENT = re.compile("%[0-9A-F]{2}")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")  # no encoding changes these characters
_NAMES = frozenset(
    "admin administrator api app apps backup bin build cache code codespace coder data default dev developer docker"
    " email git guest home host jenkins key linuxbrew local mcp media me name node nobody public redacted root runner"
    " sandbox secret service session shared src state system temp test testuser tmp token ubuntu user username users"
    " value var vagrant vscode web work workspace www x xxx you your".split()
)
"""Names of accounts that belong to no person, and words that are not names."""


def is_personal(name: str) -> bool:
    """Return whether the name of a home directory may be that of a person."""
    plain = name.lower().strip(".")
    return plain not in _NAMES and any(map(str.isalpha, plain)) and not re.fullmatch(r"user-\d+", plain)


class KnownValues:
    """The values that were found so far."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], str] = {}  # by stem and value
        self._numbers: dict[str, int] = {}
        self._whole: dict[str, tuple[Category, str]] = {}
        self._forms: dict[str, tuple[str, bool]] = {}  # the value, and whether it must be a whole word
        self._grams: set[str] = set()  # the beginnings of forms
        self._anchors: set[str] = set()  # the longest part of each form and user name that no encoding changes
        self._anchor_grams: set[str] = set()
        self._foreign = False  # whether a value has characters that JSON may escape
        self._wholes: set[str] = set()  # values that are found only as a whole string
        self._users: dict[str, re.Pattern[str]] = {}

    def label(self, category: Category, value: str) -> str:
        """Return the replacement of a value, which is known from now on."""
        key = (category.stem, value)
        found = self._labels.get(key)
        if found is None:
            if value in self._whole and category not in (HOME, USER):  # known before as another kind
                return self._whole[value][1]
            number = self._numbers[category.stem] = self._numbers.get(category.stem, 0) + 1
            found = self._labels[key] = f"{category.stem}{number}{category.ending}"
            if category in (HOME, USER):
                self._add_user(value)
            else:
                self._add(category, value, found)
        return found

    def whole(self, text: str) -> tuple[Category, str] | None:
        """Return the category and label of a whole string."""
        return self._whole.get(text)

    def may_stand_in(self, line: str) -> bool:
        """Return whether a line of a capture may contain a value or user name in any encoding; never wrongly False."""
        if self._foreign and ("\\u" in line or "%" in line):
            return True
        if self._wholes and not self._wholes.isdisjoint(part.rstrip("\\") for part in line.split('"')):
            return True
        if len(self._anchors) <= _FEW:
            return any(anchor in line for anchor in self._anchors)
        grams = self._anchor_grams
        return any(line[at : at + _ANCHOR] in grams for at in range(len(line) - _ANCHOR + 1))

    def __len__(self) -> int:
        return len(self._labels)

    def replaced(self, text: str, found: Callable[[Category, str], None], *, users: bool = True) -> str:
        """Return a text without the values in it, and without user names unless `users` is false.

        `found` is called for each with its label.
        """
        for form, value, word in self._present(text):
            category, label = self._whole[value]
            if word:
                text, times = re.subn(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", label, text)
            else:
                times = text.count(form)
                text = text.replace(form, label)
            for _ in range(times):
                found(category, label)
        for user, pattern in self._users.items() if users else ():
            if user in text:
                label = self._labels[USER.stem, user]
                text, times = pattern.subn(label, text)
                for _ in range(times):
                    found(USER, label)
        return text

    def _present(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the forms in a text, long ones first, with their values."""
        if len(self._forms) <= _FEW:
            found = [form for form in self._forms if form in text]
        else:
            grams = {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)} & self._grams
            found = [form for form in self._forms if form[:_GRAM] in grams and form in text] if grams else []
        for form in sorted(found, key=len, reverse=True):
            value, word = self._forms[form]
            yield form, value, word

    def _add(self, category: Category, value: str, label: str) -> None:
        self._whole[value] = category, label
        distinctive = is_distinctive(value)
        if not distinctive and not is_word(value):
            self._foreign = self._foreign or not value.isascii()
            self._wholes.add(value.rstrip("\\"))
            return
        for form in (value,) if _PLAIN.fullmatch(value) else _forms(value):
            if len(form) >= _GRAM and form not in self._forms:
                self._forms[form] = value, not distinctive
                self._grams.add(form[:_GRAM])
        self._add_anchor(value)

    def _add_user(self, name: str) -> None:
        if len(name) >= 3:
            self._users[name] = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
            self._add_anchor(name)

    def _add_anchor(self, value: str) -> None:
        anchor = max(_PLAIN.findall(value), key=len, default="")
        if len(anchor) < _ANCHOR:  # then any line with a character of it is examined
            self._foreign = True
            anchor = value[:_ANCHOR]
        self._foreign = self._foreign or not value.isascii()
        self._anchors.add(anchor)
        self._anchor_grams.add(anchor[:_ANCHOR])


def _forms(value: str) -> Iterator[str]:
    """Yield a value as it is, and as written in JSON and in URLs."""
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    yield from (value, *escaped, *(json.dumps(form)[1:-1] for form in escaped))  # JSON in a string of JSON
    if value.isprintable() and _encodable(value):
        yield from _in_urls(value)


def _in_urls(value: str) -> Iterator[str]:
    """Yield a value as written in URLs by Python, `encodeURIComponent` and forms; hexadecimal digits in either case."""
    for form in (quote(value), quote(value, safe=""), quote(value, safe="!'()*"), quote_plus(value)):
        yield form
        yield _PERCENT.sub(lambda it: it[0].lower(), form)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
    return True
