"""The notation for the message shapes of all revisions, and its translation to JSON Schema.

The theory. A definition is written once. It contains in which revisions it exists, and what differs between them:

    "Tool": record(
        {
            "inputSchema": …,                                   a required member
            "description?": STRING,                             an optional one
            "execution?": only(R2025_11_25, "ToolExecution"),   a string in place of a type names another definition
        },
        "BaseMetadata",                                         whose members it has too
    )

A type is such a name, a piece of JSON Schema, or one of the nodes below. What a revision does not have is left out: a
member with its type, an alternative of a union, the members of a base. Any other reference to something that the
revision lacks is an error, which `build` raises.

This module knows neither methods nor messages. Lifetimes are those of `mcpspy.spec.revisions`, so a later revision has
what the one before it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpspy.spec import revisions
from mcpspy.spec.revisions import Revision

Schema = dict[str, Any]
"""A JSON Schema, or a piece of one."""


@dataclass(frozen=True, slots=True)
class Record:
    """An object with known members. Others are allowed, as everywhere in MCP."""

    members: "Mapping[str, Type]"
    bases: "tuple[Type, ...]"
    others: Schema | None = None
    """The schema of other members, if another specification defines them."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of one type."""

    items: "Type"
    at_most: int | None


@dataclass(frozen=True, slots=True)
class Map:
    """An object with any members, all of one type."""

    values: "Type"


@dataclass(frozen=True, slots=True)
class Union:
    """One of several types."""

    alternatives: "tuple[Type, ...]"


@dataclass(frozen=True, slots=True)
class Intersection:
    """All of several types at once."""

    parts: "tuple[Type, ...]"


@dataclass(frozen=True, slots=True)
class Varying:
    """A type that differs between revisions. A revision that is not in it has nothing here."""

    types: "Mapping[Revision, Type]"


@dataclass(frozen=True, slots=True)
class Optional:
    """A member that may be missing, if only some revisions allow that. `"name?"` allows it for all."""

    type: "Type"


@dataclass(frozen=True, slots=True)
class Deprecated:
    """A type that the specification deprecates from a revision on."""

    first: Revision
    type: "Type"


@dataclass(frozen=True, slots=True)
class Named:
    """A definition that has its name only from a revision on. Before, its shape was repeated wherever it was used."""

    first: Revision
    type: "Type"


Type = str | Schema | Record | Array | Map | Union | Intersection | Varying | Optional | Deprecated | Named
Definitions = dict[str, Type]

ANY: Schema = {}
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
URI: Schema = {"type": "string", "format": "uri"}
URI_TEMPLATE: Schema = {"type": "string", "format": "uri-template"}
BASE64: Schema = {"type": "string", "format": "byte"}


def const(value: str | int) -> Schema:
    """Define exactly this string or integer."""
    return {"type": "string" if isinstance(value, str) else "integer", "const": value}


def enum(*values: str) -> Schema:
    """Define one of these strings."""
    return {"type": "string", "enum": list(values)}


def record(members: Mapping[str, Type], *bases: Type) -> Record:
    """Define an object with these members and those of its bases. A name that ends in `?` is optional."""
    return Record(members, bases)


def open_record(members: Mapping[str, Type]) -> Record:
    """Define an object of another specification (a JSON Schema). MCP defines only these members."""
    return Record(members, (), ANY)


def array(items: Type, *, at_most: int | None = None) -> Array:
    """Define an array of `items`."""
    return Array(items, at_most)


def mapping(values: Type) -> Map:
    """Define an object whose members all have the type `values`, whatever their names."""
    return Map(values)


def either(*alternatives: Type) -> Union:
    """Define one of these types."""
    return Union(alternatives)


def both(*parts: Type) -> Intersection:
    """Define all of these types at once."""
    return Intersection(parts)


def optional(type_: Type) -> Optional:
    """Define a member that may be missing, inside `changed`, `since`, `until` or `only`."""
    return Optional(type_)


def deprecated(first: Revision, type_: Type) -> Deprecated:
    """Define a type that is deprecated from `first` on."""
    return Deprecated(first, type_)


def named_since(first: Revision, type_: Type) -> Named:
    """Define a type that is a definition from `first` on, and before part of those that refer to it."""
    return Named(first, type_)


def since(first: Revision, type_: Type) -> Varying:
    """Define a type that exists from `first` on."""
    return Varying(dict.fromkeys(revisions.since(first), type_))


def until(last: Revision, type_: Type) -> Varying:
    """Define a type that exists up to and including `last`."""
    return Varying(dict.fromkeys(revisions.until(last), type_))


def only(revision: Revision, type_: Type) -> Varying:
    """Define a type that exists in one revision."""
    return Varying({revision: type_})


def changed(type_: Type, later: Mapping[Revision, Type]) -> Varying:
    """Define `type_`, replaced from each of the `later` revisions on."""
    types = dict.fromkeys(Revision, type_)
    for first, other in later.items():
        types |= dict.fromkeys(revisions.since(first), other)
    return Varying(types)


def build(definitions: Definitions, revision: Revision) -> dict[str, Schema]:
    """Return the definitions of a revision, by name, as JSON Schema 2020-12 with `#/$defs/…` references.

    Raises ValueError if a definition refers to something that the revision does not have, TypeError for a misplaced
    node.
    """
    builder = _Builder(definitions, revision)
    return {name: builder.definition(name) for name in definitions if builder.has_name(name)}


class _Builder:
    """The definitions in one revision."""

    def __init__(self, definitions: Definitions, revision: Revision) -> None:
        self._definitions = definitions
        self._revision = revision

    def has_name(self, name: str) -> bool:
        """Return whether the revision has a definition of this name."""
        shape = self._shape(name)
        if isinstance(shape, Named) and self._revision not in revisions.since(shape.first):
            return False
        return shape is not None

    def definition(self, name: str) -> Schema:
        """Return the schema of a definition, which must exist."""
        shape = self._shape(name)
        if shape is None:
            raise ValueError(f"{self._revision.value} has no {name}")
        return self._schema(shape.type if isinstance(shape, Named) else shape)

    def _shape(self, name: str) -> Type | None:
        if name not in self._definitions:
            raise ValueError(f"no revision has {name}")
        return self._here(self._definitions[name])

    def _here(self, type_: Type) -> Type | None:
        """Return the type in this revision, or None if it has none."""
        if isinstance(type_, Varying):
            return self._here(type_.types[self._revision]) if self._revision in type_.types else None
        return type_

    def _schema(self, type_: Type) -> Schema:
        match self._here(type_):
            case str(name):
                return {"$ref": f"#/$defs/{name}"} if self.has_name(name) else self.definition(name)
            case dict(schema):
                return schema
            case Record() as shape:
                return self._record(shape)
            case Array(items, at_most):
                bound = {} if at_most is None else {"maxItems": at_most}
                return {"type": "array", "items": self._schema(items)} | bound
            case Map(values):
                return {"type": "object", "additionalProperties": self._schema(values)}
            case Union(alternatives):
                schemas = [self._schema(alternative) for alternative in alternatives if self._is_here(alternative)]
                return {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
            case Intersection(parts):
                return {"allOf": [self._schema(part) for part in parts]}
            case Deprecated(first, inner):
                mark = {"deprecated": True} if self._revision in revisions.since(first) else {}
                return self._schema(inner) | mark
            case other:
                raise TypeError(f"{other!r} cannot stand here in {self._revision.value}")

    def _is_here(self, type_: Type) -> bool:
        here = self._here(type_)
        return here is not None and not (isinstance(here, str) and self._shape(here) is None)

    def _record(self, shape: Record) -> Schema:
        members = self._members(shape)
        schema: Schema = {"type": "object"}
        if members:
            schema["properties"] = {name: self._schema(type_) for name, (type_, _) in members.items()}
        required = [name for name, (_, is_required) in members.items() if is_required]
        if required:
            schema["required"] = required
        return schema if shape.others is None else schema | {"additionalProperties": shape.others}

    def _members(self, shape: Record) -> dict[str, tuple[Type, bool]]:
        """Return each member's type and whether it is required, those of the bases first."""
        members: dict[str, tuple[Type, bool]] = {}
        for base in filter(self._is_here, shape.bases):
            members |= self._members(self._base(base))
        for key, type_ in shape.members.items():
            here = self._here(type_)
            is_optional = key.endswith("?") or isinstance(here, Optional)
            if isinstance(here, Optional):
                here = self._here(here.type)
            if here is not None:
                members[key.removesuffix("?")] = here, not is_optional
        return members

    def _base(self, type_: Type) -> Record:
        """Return the record whose members another one includes."""
        here = self._here(type_)
        while not isinstance(here, Record):
            if isinstance(here, str):
                here = self._shape(here)
            elif isinstance(here, Named | Deprecated):
                here = self._here(here.type)
            else:
                raise TypeError(f"{type_!r} has no members to take over in {self._revision.value}")
        return here
