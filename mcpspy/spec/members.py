"""The members of a message: those that the revision lacks or deprecates, and their formats.

The theory. A validator answers yes or no. This module walks through a message and the definitions together: each value
with the shapes that it may have. In a union, only the alternatives count that agree with the value's own constants. MCP
allows a member that none of the shapes has. It is worth a finding if another revision has it.

The walk accepts any message, valid or not, of any depth, and never raises.
"""

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from mcpspy.json_values import Path, excerpt, pointer
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Schema

_ENOUGH = 50  # limit for members of other revisions in one message

URI = re.compile(  # RFC 3986: a scheme, then only characters that are allowed in a URI, `#` at most once
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
    r"(?:#(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?"
)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_IN_URI = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class BadFormat:
    """A string that violates the format in its definition."""

    pointer: str
    format: str
    """`uri` (RFC 3986), `iri` if only characters outside ASCII are wrong, or `byte` (base64, RFC 4648)."""
    found: str
    why: str
    """The expected format, and why the string violates it: `URI: it has no scheme`."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A member that the revision does not define, but others do."""

    pointer: str
    name: str
    revisions: tuple[Revision, ...]
    """The revisions that define it, in the order of publication."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """A part of a message that the revision deprecates."""

    pointer: str
    """Empty for the message itself."""
    name: str
    """The member, or the definition if it is the whole message."""


def bad_formats(revision: Revision, definition: str, message: Any) -> list[BadFormat]:
    """Return the strings that should be URIs or base64 but are not. The formats of JSON Schema are not used."""
    found = []
    for path, value, shapes in _walk(revision, definition, message):
        for name in {shape["format"] for shape in shapes if "format" in shape} if isinstance(value, str) else ():
            if name == "uri" and not URI.fullmatch(value):
                is_iri = _SCHEME.match(value) and URI.fullmatch(_BEYOND_ASCII.sub("x", value))
                why = f"URI: {_why_no_uri(value)}"
                found.append(BadFormat(pointer(*path), "iri" if is_iri else "uri", excerpt(value), why))
            elif name == "byte" and not _is_base64(value):
                found.append(BadFormat(pointer(*path), "byte", excerpt(value), "base64"))
    return found


def elsewhere(revision: Revision, definition: str, message: Any) -> list[Elsewhere]:
    """Return the members that only other revisions define."""
    found = []
    for path, value, shapes in _walk(revision, definition, message):
        if not isinstance(value, dict) or not _has_members(shapes):
            continue
        known: set[str] = set().union(*(shape.get("properties", ()) for shape in shapes))
        unknown = [name for name in value if name not in known]
        if not unknown:
            continue
        names = {other: _names(other, definition, message, path) for other in Revision}
        moved = [name for name in unknown if any(name in names[other] for other in Revision)]
        named = {other: _names_of_same(revision, other, shapes, value) for other in Revision} if moved else {}
        for name in moved:
            others = tuple(other for other in Revision if name in names[other] | named[other])
            found.append(Elsewhere(pointer(*path, name), name, others))
        if len(found) > _ENOUGH:
            break
    return found


def outdated(revision: Revision, definition: str, message: Any) -> list[Outdated]:
    """Return the outermost parts that the revision deprecates."""
    found: list[Outdated] = []
    covered: set[Path] = set()
    for path, value, shapes in _walk(revision, definition, message):
        if path and path[:-1] in covered:
            covered.add(path)
        elif any(shape.get("deprecated") for shape in shapes) and value != "none":  # `includeContext: none` is allowed
            covered.add(path)
            method = value.get("method") if isinstance(value, dict) else None  # inputRequests: their keys are arbitrary
            name = next((str(step) for step in reversed(path) if isinstance(step, str)), definition)
            found.append(Outdated(pointer(*path), method if isinstance(method, str) else name))
    return found


def _has_members(shapes: list[Schema]) -> bool:
    """Return whether the shapes name their members, and none is a map."""
    return any("properties" in shape for shape in shapes) and not any("additionalProperties" in it for it in shapes)


def _why_no_uri(text: str) -> str:
    """Return the first thing that is wrong with a URI, in words."""
    if not _SCHEME.match(text):
        return "it has no scheme"
    wrong = _NOT_IN_URI.search(text)
    if wrong is None:
        return "it has a % without two hexadecimal digits after it, or a second #"
    encoded = "".join(f"%{byte:02X}" for byte in wrong[0].encode("utf-8", "replace"))
    return f"{excerpt(wrong[0])} must be written as {encoded} (RFC 3986)"


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def _names(revision: Revision, definition: str, message: Any, path: Path) -> set[str]:
    """Return the members that a revision defines for the value at `path`."""
    shapes = _roots(revision, definition, message)
    value = message
    for step in path:
        shapes, value = _below(revision, shapes, step, value[step]), value[step]
    return set().union(*(shape.get("properties", ()) for shape in shapes))


def _names_of_same(revision: Revision, other: Revision, shapes: list[Schema], value: Any) -> set[str]:
    """Return the members that another revision defines for the same definition, even if it is used elsewhere.

    2026-07-28 has the capabilities of a server in `server/discover`, and no `initialize` (R-06).
    """
    there = all_definitions(other)
    same = [name for shape in shapes for name in _definition_names(revision).get(id(shape), ())]
    known = [shape for name in same if name in there for shape in _shapes(other, there[name], value)]
    return set().union(*(shape.get("properties", ()) for shape in known))


@cache
def _definition_names(revision: Revision) -> dict[int, list[str]]:
    """Return the names of the definitions of a revision, by the identity of their schemas."""
    found: dict[int, list[str]] = {}
    for name, shape in all_definitions(revision).items():
        found.setdefault(id(shape), []).append(name)
    return found


def _walk(revision: Revision, definition: str, message: Any) -> Iterator[tuple[Path, Any, list[Schema]]]:
    """Yield each value that the definitions describe, outermost first, with the shapes that it may have."""
    stack: list[tuple[Path, Any, list[Schema]]] = [((), message, _roots(revision, definition, message))]
    while stack:
        path, value, shapes = stack.pop()
        yield path, value, shapes
        for step, inner in reversed(_parts(value)):
            known = _below(revision, shapes, step, inner)
            if known:
                stack.append(((*path, step), inner, known))


def _parts(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _roots(revision: Revision, definition: str, message: Any) -> list[Schema]:
    """Return the shapes of a whole message: its definition, and the envelope that some revisions leave to JSON-RPC."""
    there = all_definitions(revision)
    envelope = [f"JSONRPC{kind}" for kind in ("Request", "Notification") if definition.endswith(kind)]
    names = [name for name in (definition, *envelope) if name in there]
    return [shape for name in names for shape in _shapes(revision, there[name], message)]


def _below(revision: Revision, shapes: list[Schema], step: str | int, value: Any) -> list[Schema]:
    """Return the shapes of a member or an array element of a value with `shapes`."""
    found = []
    for shape in shapes:
        if isinstance(step, int):
            inner = shape.get("items")
        else:
            inner = shape.get("properties", {}).get(step) or shape.get("additionalProperties")
        if inner:
            found += _shapes(revision, inner, value)
    return found


def _shapes(revision: Revision, schema: Schema, value: Any) -> list[Schema]:
    """Return a schema with its references, all parts of an `allOf`, and the alternatives that `value` may be."""
    found = [schema]
    if "$ref" in schema:
        found += _shapes(revision, _target(revision, schema), value)
    for part in schema.get("allOf", ()):
        found += _shapes(revision, part, value)
    for alternative in schema.get("anyOf", ()):
        if _may_be(revision, alternative, value):
            found += _shapes(revision, alternative, value)
    return found


def _target(revision: Revision, schema: Schema) -> Schema:
    return all_definitions(revision)[schema["$ref"].removeprefix("#/$defs/")]


def _may_be(revision: Revision, schema: Schema, value: Any) -> bool:
    """Return whether an alternative agrees with the type of `value` and its constants."""
    while "$ref" in schema:
        schema = _target(revision, schema)
    if schema.get("type") in ("object", "array"):
        if not isinstance(value, dict if schema["type"] == "object" else list):
            return False
        if not set(schema.get("required", ())) <= set(value if isinstance(value, dict) else ()):
            return False
        members = schema.get("properties", {}).items()
        return not any(
            "const" in member and name in value and value[name] != member["const"] for name, member in members
        )
    return True
