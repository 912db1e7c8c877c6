"""What an extension is: the shapes that it adds to revisions, and by what its messages are told from others.

A side declares extensions in its capabilities, by id under `extensions` (since 2026-07-28, and before that by some);
private additions of any revision stand by name under `experimental`. Of an extension that has no row in the table
(`mcpspy.spec.extensions`) only the name is known. Its methods and result types are those that carry that name:

- The name is what follows the last `/` of the id, without a version at its end: `turbo` of `com.example/turbo-v2`.
- A method is its own if, without `notifications/`, it is the name or the id, or begins with one of them and a `/`. A
  word that the protocol's own methods begin with, such as `tools`, tells nothing.
- A result type is its own if the first word of it is the first word of the name, a plural `s` aside.
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
_MOST = 100  # names of each that are looked at
_NOTHING = frozenset[str]()
_VERSION = re.compile(r"[-_.]?v\d+$")
_WORD = re.compile(r"[A-Za-z][a-z]*")


@dataclass(frozen=True, slots=True)
class Extension:
    """What one extension adds to the revisions that have it."""

    id: str
    needs: tuple[Side, ...] = ()
    """The sides that have to declare it before it is used."""
    prefix: str = ""
    """What the names of its definitions begin with: `tasks.`."""
    definitions: Definitions = field(default_factory=dict)
    """Its shapes, in the notation of `mcpspy.spec.shapes`; who sends what stands in unions, as in the protocol's."""
    result_types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By value of `resultType`, and by the method whose result may have it: the definition of such a result."""
    filters: tuple[str, ...] = ()
    """Members of the filter of `subscriptions/listen` that are its own."""
    additions: Mapping[tuple[str, type], str] = field(default_factory=dict)
    """By method and kind (Request, Notification, Result) of one of the protocol's own messages: the definition that
    judges it besides its own."""


def declared(capabilities: Any) -> frozenset[str]:
    """The names of the extensions and experiments that a side declares, whatever it gave as its capabilities."""
    if not isinstance(capabilities, dict):
        return _NOTHING
    named = [value for name in _DECLARED_BY if isinstance(value := capabilities.get(name), dict)]
    return frozenset(chain.from_iterable(islice(value, _MOST) for value in named)) if named else _NOTHING


def owns_method(extension: str, method: str) -> bool:
    """Whether a method carries the name of an extension, of which no more than its id is known."""
    name, own = _name(extension), method.removeprefix("notifications/")
    stems = {extension, name} - _first_segments()
    return bool(name) and any(own == stem or own.startswith(f"{stem}/") for stem in stems)


def owns_result_type(extension: str, result_type: str) -> bool:
    """Whether a `resultType` carries the name of an extension, of which no more than its id is known."""
    first = _first_word(_name(extension))
    return bool(first) and _first_word(result_type.rpartition("/")[2]) == first


@cache
def _first_segments() -> frozenset[str]:
    """What the protocol's own methods begin with, in any revision."""
    names = (name for revision in Revision for name in methods(revision))
    return frozenset(name.removeprefix("notifications/").partition("/")[0] for name in names)


def _name(extension: str) -> str:
    return _VERSION.sub("", extension.rpartition("/")[2])


def _first_word(text: str) -> str:
    found = _WORD.match(text)
    return found[0].lower().removesuffix("s") if found else ""
