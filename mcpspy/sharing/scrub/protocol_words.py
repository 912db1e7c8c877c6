"""Words that a scrub keeps, because the specification defines them: closed sets of values, and names of members.

Such a word is no secret where the specification puts it, even if it is somebody's password. Everything else that was
once a secret is replaced under any name.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from mcpspy.capture.records import Framing, How, Role, Sender, Target
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.methods import RESULT_TYPES
from mcpspy.spec.revisions import Revision

_SCHEMA_TYPES = "null array boolean integer number object string".split()
_FORMATS = (
    "date date-time duration email hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference json-pointer password"
    " regex relative-json-pointer time uri uri-reference uri-template uuid byte binary int32 int64 float double"
).split()
_OTHER = {
    "type": [*_SCHEMA_TYPES, "password", "basic", "bearer", "oauth2", "apiKey", "http"],
    "format": _FORMATS,
    "resultType": RESULT_TYPES,
    "method": "GET HEAD POST PUT PATCH DELETE OPTIONS".split(),  # of a head
    "protocolVersion": [revision.value for revision in Revision],
    "io.modelcontextprotocol/protocolVersion": [revision.value for revision in Revision],
    "$schema": [f"http://json-schema.org/draft-0{n}/schema{end}" for n in (4, 6, 7) for end in ("", "#")]
    + [f"https://json-schema.org/draft/{draft}/schema" for draft in ("2019-09", "2020-12")],
    "from": get_args(Sender),
    "role": get_args(Role),
    "framing": get_args(Framing),
    "how": get_args(How),
    "to": get_args(Target),
    "transport": ("stdio", "http", "mitm"),
    "kind": "frame release gates open close gap signal end continued".split(),
}
"""Words that no definition lists: those of JSON Schema, of HTTP, and of captures."""
_KEYWORDS = frozenset(
    "$schema $id $ref $defs $anchor $comment definitions type format enum const default examples title description"
    " properties required items prefixItems additionalItems additionalProperties patternProperties propertyNames"
    " minProperties maxProperties minItems maxItems uniqueItems contains minLength maxLength pattern minimum maximum"
    " exclusiveMinimum exclusiveMaximum multipleOf allOf anyOf oneOf not if then else dependentRequired"
    " dependentSchemas unevaluatedItems unevaluatedProperties readOnly writeOnly deprecated contentEncoding"
    " contentMediaType nullable headers target version message code".split()
)


def is_word_of(member: str | int, text: str) -> bool:
    """Return whether a string is one of the words that the specification defines for a member."""
    return isinstance(member, str) and text in _words().get(member, ())


def is_member(name: str) -> bool:
    """Return whether the specification, or JSON Schema, has a member with this name."""
    return name in members()


@cache
def members() -> frozenset[str]:
    """Return the names of all members of the specification, of JSON Schema and of captures."""
    return _KEYWORDS | {name for revision in Revision for name, _ in _shapes(all_definitions(revision))}


@cache
def _words() -> dict[str, frozenset[str]]:
    found = {name: set(words) for name, words in _OTHER.items()}
    for revision in Revision:
        definitions = all_definitions(revision)
        for name, shape in _shapes(definitions):
            found.setdefault(name, set()).update(_closed_set(shape, definitions))
    return {name: frozenset(words) for name, words in found.items() if words}


def _shapes(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield each member in a schema, with its own schema."""
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _shapes(inner)
    properties = node.get("properties") if isinstance(node, dict) else None
    if isinstance(properties, dict):
        yield from properties.items()


def _closed_set(shape: Any, definitions: dict[str, Any]) -> set[str]:
    """Return the strings that a schema allows, if it lists them."""
    if not isinstance(shape, dict):
        return set()
    found = {value for value in (shape.get("const"), *shape.get("enum", ())) if isinstance(value, str)}
    if reference := shape.get("$ref"):
        shape = definitions.get(reference.rpartition("/")[2], {})
        found |= {value for value in shape.get("enum", ()) if isinstance(value, str)}
    for part in (shape.get("items"), *shape.get("anyOf", ()), *shape.get("oneOf", ())):
        found |= _closed_set(part, definitions)
    return found
