"""The fast path through the rules about shapes: whether a message matches its definition exactly.

The theory. Nearly every message has only the members of its definition, nothing deprecated, and valid URIs. One
compiled schema that allows no more than that confirms it in a microsecond. Then no rule about shapes can find anything.
A message that it refuses may still be valid, so the rules check it in full.

The closed schema is derived from the definitions: it refuses unknown members and deprecated parts, and has patterns for
formats.
"""

from functools import cache
from typing import Any

import jsonschema_rs

from mcpspy.spec.definitions import DIALECT
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.members import URI
from mcpspy.spec.revisions import Revision
from mcpspy.spec.schema import refuse, self_contained
from mcpspy.spec.shapes import Schema

_PATTERNS = {
    "uri": f"^(?:{URI.pattern})$",
    "byte": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
_OPEN = ("_meta",)  # members that may have any content
_ENVELOPE: Schema = {"jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "integer"]}}


def fits_exactly(revision: Revision, definition: str, value: Any) -> bool:
    """Return whether a message, or the result that the definition is about, matches it exactly.

    Raises KeyError if the revision has no such definition.
    """
    validator = _closed_validator(revision, definition)
    try:
        return validator.is_valid(value)
    except ValueError:  # a Number or a lone surrogate: checked in full
        return False


@cache
def _closed_validator(revision: Revision, definition: str) -> jsonschema_rs.Draft202012Validator:
    envelope = f"JSONRPC{_kind(definition)}"
    others = [envelope] if envelope in all_definitions(revision) else []
    needed = self_contained(revision, definition, *others)["$defs"]
    closed = {name: _closed(shape) for name, shape in needed.items()}
    closed[definition] = _with_envelope(revision, definition, closed[definition])
    schema = {"$schema": DIALECT, "$defs": closed, "$ref": f"#/$defs/{definition}"}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False, retriever=refuse)


def _kind(definition: str) -> str:
    return next((kind for kind in ("Request", "Notification") if definition.endswith(kind)), "")


def _closed(shape: Any, *, part: bool = False) -> Any:
    """Return a shape that allows only what it names. A `part` of several leaves other members to the others."""
    if not isinstance(shape, dict):
        return shape
    if shape.get("deprecated"):
        return False
    closed = dict(shape)
    if "properties" in shape:
        members = shape["properties"].items()
        closed["properties"] = {name: inner if name in _OPEN else _closed(inner) for name, inner in members}
        if "additionalProperties" not in shape and not part:
            closed["additionalProperties"] = False
    if isinstance(shape.get("additionalProperties"), dict):
        closed["additionalProperties"] = _closed(shape["additionalProperties"])
    if "items" in shape:
        closed["items"] = _closed(shape["items"])
    if "anyOf" in shape:
        closed["anyOf"] = [_closed(inner) for inner in shape["anyOf"]]
    if "allOf" in shape:
        closed["allOf"] = [_closed(inner, part=True) for inner in shape["allOf"]]
    if shape.get("format") in _PATTERNS:
        closed["pattern"] = _PATTERNS[shape["format"]]
    return closed


def _with_envelope(revision: Revision, definition: str, closed: Any) -> Any:
    """Return a request or notification with what some revisions leave to JSON-RPC: `jsonrpc`, `id`, `params._meta`."""
    kind = _kind(definition)
    if not kind or closed is False or "properties" not in closed:
        return closed
    names = ("jsonrpc", "id") if kind == "Request" else ("jsonrpc",)
    there = all_definitions(revision)
    members = {name: _ENVELOPE[name] for name in names} | closed["properties"]
    params = there[f"JSONRPC{kind}"]["properties"]["params"]
    own = members.get("params", {"type": "object", "additionalProperties": False})
    if "_meta" in params.get("properties", {}) and "$ref" not in own:
        members["params"] = own | {"properties": {"_meta": params["properties"]["_meta"]} | own.get("properties", {})}
    return closed | {"properties": members, "required": [*{*closed.get("required", ()), *names}]}
