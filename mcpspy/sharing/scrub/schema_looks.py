"""Whether a JSON value looks like a JSON Schema. In a schema, the name `password` is that of a property, no evidence.

Many objects have a member `properties` or `type`: pages, features of a map. A schema has only keywords as members, and
their values have the types that the keywords need.
"""

from typing import Any

_TYPES = frozenset("string number integer boolean object array null".split())
_TEXTS = frozenset("$id $schema $anchor $comment title description format pattern contentMediaType".split())
_NUMBERS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties"
    " maxProperties minContains maxContains".split()
)
_FLAGS = frozenset("uniqueItems deprecated readOnly writeOnly nullable".split())
_INNER = frozenset("items additionalProperties propertyNames contains if then else not".split())
_TELLING = frozenset("type $ref anyOf oneOf allOf not enum const default properties patternProperties".split())
_SAMPLES = frozenset("const default example examples enum".split())
"""Keywords with a value of any type; below them, a name is evidence again."""


def is_schema(value: Any) -> bool:
    """Return whether a value looks like a schema."""
    return (
        isinstance(value, dict)
        and not _TELLING.isdisjoint(value)
        and all(_is_keyword(name, inner) for name, inner in value.items())
    )


def are_schemas(value: Any) -> bool:
    """Return whether a value looks like a member `properties` of a schema: an object of schemas."""
    return isinstance(value, dict) and all(map(_is_inner, value.values()))


def _is_inner(value: Any) -> bool:
    return isinstance(value, bool) or value == {} or is_schema(value)


def _is_keyword(name: str, value: Any) -> bool:
    """Return whether a member of a schema is a keyword with a value of its type."""
    if name == "type":
        return all(isinstance(it, str) and it in _TYPES for it in (value if isinstance(value, list) else [value]))
    if name in _TEXTS or name == "$ref":
        return isinstance(value, str)
    if name in _NUMBERS:
        return isinstance(value, int | float | str)  # an integer may be parsed as a string
    if name in _FLAGS:
        return isinstance(value, bool)
    if name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return isinstance(value, list) and all(map(_is_inner, value))
    if name in ("properties", "patternProperties", "$defs", "definitions"):
        return are_schemas(value)
    if name in _INNER:
        return _is_inner(value)
    if name == "required":
        return isinstance(value, list) and all(isinstance(it, str) for it in value)
    return name in _SAMPLES or (name.startswith("x-") and isinstance(value, str | bool))
