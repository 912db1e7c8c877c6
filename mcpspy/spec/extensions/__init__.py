"""The extensions whose shapes are known: one row of a table for each, one module for each.

We wrote the shapes ourselves, from the specification of each extension. They are versioned like those of the protocol:
a revision that lacks a definition lacks the method.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar

from mcpspy.spec.definitions import DEFINITIONS
from mcpspy.spec.extensions.extension import Extension
from mcpspy.spec.extensions.skills import SKILLS
from mcpspy.spec.extensions.tasks import TASKS
from mcpspy.spec.extensions.ui import UI
from mcpspy.spec.methods import Method, methods, methods_of
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Schema, build

_Key = TypeVar("_Key")

_AUTHORIZATION = (  # they add nothing to messages
    Extension("io.modelcontextprotocol/oauth-client-credentials"),
    Extension("io.modelcontextprotocol/enterprise-managed-authorization"),
)

EXTENSIONS: dict[str, Extension] = {extension.id: extension for extension in (TASKS, SKILLS, UI, *_AUTHORIZATION)}
"""The known extensions, by id."""


@cache
def all_definitions(revision: Revision) -> dict[str, Schema]:
    """Return the definitions of a revision and of the known extensions, as JSON Schema. Do not change the result."""
    own = {name: shape for extension in EXTENSIONS.values() for name, shape in extension.definitions.items()}
    return build(DEFINITIONS | own, revision)


@cache
def known_extensions(revision: Revision) -> dict[str, Extension]:
    """Return the known extensions by id, each with what it adds to a revision. Do not change the result."""
    there = all_definitions(revision)
    listens = "subscriptions/listen" in methods(revision)
    return {
        extension.id: replace(
            extension,
            result_types={name: _those(by_method, there) for name, by_method in extension.result_types.items()},
            filters=extension.filters if listens else (),
            additions=_those(extension.additions, there),
        )
        for extension in EXTENSIONS.values()
    }


def _those(definitions: Mapping[_Key, str], there: dict[str, Schema]) -> dict[_Key, str]:
    return {key: definition for key, definition in definitions.items() if definition in there}


@cache
def extension_methods(revision: Revision) -> dict[str, tuple[Extension, Method]]:
    """Return the methods that known extensions add to a revision, by name, without its own methods."""
    return {
        name: (extension, method)
        for extension in EXTENSIONS.values()
        if extension.prefix
        for name, method in methods_of(all_definitions(revision), revision, extension.prefix).items()
        if name not in methods(revision)
    }


def extension_with(method: str) -> Extension | None:
    """Return the known extension that adds a method to any revision."""
    owners = (extension_methods(revision).get(method) for revision in Revision)
    return next((owner for owner, _ in filter(None, owners)), None)


def is_known(method: str, revision: Revision) -> bool:
    """Return whether a revision has a method, or a known extension adds it."""
    return method in methods(revision) or method in extension_methods(revision)
