"""What extensions add to a revision: one row of a table for each.

A side declares extensions in its capabilities, by id under `extensions` (since 2026-07-28); private additions of any
revision stand by name under `experimental`. What has no row in the table may add anything.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any

from mcpspy.json_values import member

_DECLARED_BY = ("extensions", "experimental")  # members of the capabilities of either side
_MOST = 100  # names of each that are looked at
_WITHOUT_NAME = ""  # stands for a declaration that is no object


@dataclass(frozen=True, slots=True)
class Extension:
    """What one extension adds to a revision."""

    methods: frozenset[str]
    """Of requests and notifications."""
    result_types: frozenset[str]
    """Values of `resultType`."""


EXTENSIONS: dict[str, Extension] = {}
"""The extensions whose additions are known, by id."""


def declared(capabilities: Any) -> frozenset[str]:
    """The names of the extensions and experiments that a side declares, whatever it gave as its capabilities."""
    names: set[str] = set()
    for name in _DECLARED_BY:
        value = member(capabilities, name)
        if isinstance(value, dict):
            names.update(islice(value, _MOST))
        elif value:
            names.add(_WITHOUT_NAME)
    return frozenset(names)
