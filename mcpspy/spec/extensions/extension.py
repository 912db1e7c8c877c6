"""What an extension is: the shapes that it adds to revisions, and how its messages are recognized.

A side declares extensions in its capabilities, by id under `extensions` (since 2026-07-28; some do it in earlier
revisions). Private additions of any revision are under `experimental`, by name. For an extension without a row in the
table (`mcpspy.spec.extensions`) only the name is known. Methods and result types with that name belong to it:

- The name is the part after the last `/` of the id, without a version at its end: `turbo` for `com.example/turbo-v2`.
- A method belongs to it if, without `notifications/`, it equals the name or the id, or begins with one of them and a
  `/`. A word with which the protocol's own methods begin, such as `tools`, does not count.
- A result type belongs to it if its first word is the first word of the name, apart from a plural `s`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from typing import Any

from mcpspy.spec.methods import Side, methods
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Definitions

_DECLARED_BY = ("extensions", "experimental")  # members of the capabilities of either side
_MOST = 100  # names of each that are examined
_NOTHING = frozenset[str]()
_VERSION = re.compile(r"[-_.]?v\d+$")
_WORD = re.compile(r"[A-Za-z][a-z]*")


@dataclass(frozen=True, slots=True)
class Extension:
    """What one extension adds to the revisions that have it."""

    id: str
    needs: tuple[Side, ...] = ()
    """The sides that must declare it before it is used."""
    prefix: str = ""
    """The beginning of the names of its definitions: `tasks.`."""
    definitions: Definitions = field(default_factory=dict)
    """Its shapes, in the notation of `mcpspy.spec.shapes`. Unions tell who sends what, as in the protocol's."""
    result_types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By value of `resultType`, then by method whose result may have it: the definition of the result."""
    filters: tuple[str, ...] = ()
    """Members of the filter of `subscriptions/listen` that belong to it."""
    additions: Mapping[tuple[str, type], str] = field(default_factory=dict)
    """By method and kind (Request, Notification, Result) of the protocol's own messages: an additional definition."""


def declared(capabilities: Any) -> frozenset[str]:
    """Return the names of the extensions and experiments that a side declares. Accepts malformed capabilities."""
    if not isinstance(capabilities, dict):
        return _NOTHING
    named = [value for name in _DECLARED_BY if isinstance(value := capabilities.get(name), dict)]
    return frozenset(chain.from_iterable(islice(value, _MOST) for value in named)) if named else _NOTHING


def owns_method(extension: str, method: str) -> bool:
    """Return whether a method has the name of an extension that is known by its id only."""
    name, own = _name(extension), method.removeprefix("notifications/")
    stems = {extension, name} - _first_segments()
    return bool(name) and any(own == stem or own.startswith(f"{stem}/") for stem in stems)


def owns_result_type(extension: str, result_type: str) -> bool:
    """Return whether a `resultType` has the name of an extension that is known by its id only."""
    first = _first_word(_name(extension))
    return bool(first) and _first_word(result_type.rpartition("/")[2]) == first


@cache
def _first_segments() -> frozenset[str]:
    """Return the first segments of the protocol's own methods, in any revision."""
    names = (name for revision in Revision for name in methods(revision))
    return frozenset(name.removeprefix("notifications/").partition("/")[0] for name in names)


def _name(extension: str) -> str:
    return _VERSION.sub("", extension.rpartition("/")[2])


def _first_word(text: str) -> str:
    found = _WORD.match(text)
    return found[0].lower().removesuffix("s") if found else ""
