"""Verdict and explanation: whether a message matches a definition, and if not, where and what was expected.

`jsonschema_rs` gives the verdict, in microseconds. `jsonschema` is a hundred times slower and is imported only here. It
explains a refusal, on a message that is cut down to the refused part. Both run with formats off, because they disagree
about URIs. `mcpspy.spec.members` has a check of our own. Validators are compiled on first use, each from the
definitions that its own refers to. Neither library may fetch anything.

Nearly every message has only the members of its definition, nothing deprecated, and valid URIs. One compiled schema
that allows no more than that confirms it in a microsecond: it is derived from the definitions, refuses unknown members
and deprecated parts, and has patterns for formats. Then no rule about shapes can find anything. A message that it
refuses may still be valid, so the rules check it in full.

Messages are what `mcpspy.wire.jsonrpc` decodes, so they may contain lone surrogates, NaN, and integers of any length.
No message makes this module raise an exception.
"""

import json
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from mcpspy.json_values import Number, excerpt, pointer, resolve
from mcpspy.spec.definitions import DIALECT
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.members import URI
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Schema
from mcpspy.text import series

_ERRORS = 50  # the most relevant of these is shown; a message may have any number
_UNIONS = 4  # refused unions of a message of which the alternative that was meant is found
_ELEMENTS, _VALUES = 500, 20_000  # of each array, and of a whole message in which all errors are searched for
_ANY_SHAPE = "one of the known shapes"
PLACES = 100
"""The places of a message that are explained; a message may have any number."""
_TAGS = ("type", "method", "mode", "status")  # members that identify the alternative of a union


DEPTH = 200
"""The levels of a message that are examined if a library recurses. No shape of MCP goes deeper."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message does not match its definition."""

    pointer: str
    """JSON Pointer (RFC 6901) to the offending value, or to the object that lacks a member."""
    expected: str
    """What should be there: `a string`, `the member "name"`."""
    found: str
    """The offending value as JSON, clipped."""

    def __str__(self) -> str:
        where = self.pointer or "the message"
        return f"{where}: expected {self.expected}, got {self.found}"


def verdict(revision: Revision, definition: str, message: Any) -> bool:
    """Return whether a message, or the part of it that the definition is about, matches the definition.

    Raises KeyError if the revision has no such definition.
    """
    validator = _validator(revision, definition)
    try:
        return validator.is_valid(message)
    except ValueError:  # a Number or a lone surrogate, each of them rare
        return validator.is_valid(plain(message))


def explain(revision: Revision, definition: str, message: Any) -> list[Explanation]:
    """Return why a message is refused at each place, at most PLACES; empty if it is valid.

    The first is the most relevant one of its part of the message. Raises KeyError if there is no such definition.
    """
    message, validator = plain(message), _validator(revision, definition)
    try:
        validator.validate(message)
    except jsonschema_rs.ValidationError as refusal:
        first = _explained(revision, definition, message, list(refusal.instance_path))
    else:
        return []
    found = {(first.pointer, first.expected): first}
    part, unions = _shortened(message), 0
    errors = sorted(validator.iter_errors(part), key=_place) if part is not None else []
    for error in errors[:PLACES]:
        path, keyword, value = list(error.instance_path), str(error.schema_path[-1]), error.instance
        unions += keyword == "anyOf"
        if keyword == "anyOf" and unions <= _UNIONS:
            why = _explained(revision, definition, part, path, only=True)
        elif keyword == "anyOf":
            why = Explanation(pointer(*path), _ANY_SHAPE, excerpt(value))
        else:
            required = resolve(_schema(revision, definition), pointer(*error.schema_path))
            why = Explanation(pointer(*path), _expected(keyword, required, value, error.message), excerpt(value))
        found.setdefault((why.pointer, why.expected), why)
    return list(found.values())[:PLACES]


def _place(error: jsonschema_rs.ValidationError) -> list[tuple[int, str]]:
    """Return where an error belongs in a list of errors: by name, and by index."""
    return [(step, "") if isinstance(step, int) else (0, step) for step in error.instance_path]


def _shortened(message: Any) -> Any:
    """Return a copy whose arrays are cut, so that a validator finds few errors; None if it is too large anyway."""
    found: list[Any] = [message]
    stack, size = [found], 0
    while stack:
        holder = stack.pop()
        size += len(holder)
        if size > _VALUES:
            return None
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(value, dict | list):
                holder[key] = value[:_ELEMENTS] if isinstance(value, list) else dict(value)
                stack.append(holder[key])
    return found[0]


def _explained(
    revision: Revision, definition: str, message: Any, path: list[str | int], *, only: bool = False
) -> Explanation:
    """Explain the refusal at a path. The most relevant one of all in that part of the message, unless `only` it."""
    part, places = _narrowed(message, path)
    try:
        found = _explanation(revision, definition, part, places, path if only else None)
    except RecursionError:
        found = None
    return found or Explanation(pointer(*path), "what the definition says", excerpt(_at(part, path, places)))


def refuse(uri: str) -> NoReturn:
    """Refuse to fetch: the retriever of every validator."""
    raise ValueError(f"{uri} is not fetched")


def plain(message: Any) -> Any:
    """Return a copy that both libraries accept: no Number, no lone surrogate, empty containers from DEPTH levels on."""
    found: list[Any] = [message]
    stack: list[tuple[Any, int]] = [(found, 0)]
    while stack:
        holder, depth = stack.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(value, dict | list):
                holder[key] = value.copy() if depth < DEPTH else type(value)()
                stack.append((holder[key], depth + 1))
            elif type(value) is Number:
                holder[key] = -(10**400) if value.startswith("-") else 10**400
            elif isinstance(value, str) and not value.isascii():
                holder[key] = _scalar_text(value)
            if isinstance(key, str) and not key.isascii():
                holder[_scalar_text(key)] = holder.pop(key)
    return found[0]


def self_contained(revision: Revision, definition: str, *others: str) -> Schema:
    """Return a definition as a self-contained schema: with all that it, or one of `others`, refers to."""
    there = all_definitions(revision)
    needed: dict[str, Schema] = {}
    missing = [definition, *others]
    while missing:
        name = missing.pop()
        needed[name] = there[name]
        missing += [other for other in _references(there[name]) if other not in needed]
    return {"$schema": DIALECT, "$defs": needed, "$ref": f"#/$defs/{definition}"}


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    reference = node.get("$ref")
    own = [reference.removeprefix("#/$defs/")] if isinstance(reference, str) else []
    return own + [name for value in node.values() for name in _references(value)]


@cache
def _schema(revision: Revision, definition: str) -> Schema:
    return self_contained(revision, definition)


@cache
def _validator(revision: Revision, definition: str) -> jsonschema_rs.Draft202012Validator:
    schema = _schema(revision, definition)
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False, retriever=refuse)


@cache
def _explainer(revision: Revision, definition: str) -> Any:
    import jsonschema  # type: ignore[import-untyped]  # takes 0.1 s, so only for a refused message
    import referencing

    # a registry of its own: the default one fetches, this one is empty and never does
    return jsonschema.Draft202012Validator(_schema(revision, definition), registry=referencing.Registry())


def _scalar_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _narrowed(message: Any, path: list[str | int]) -> tuple[Any, dict[int, int]]:
    """Return a copy with each array on the path cut down to one element, and that element's index by depth."""
    places: dict[int, int] = {}
    found = [message]
    holder: Any = found
    key: str | int = 0
    for depth, step in enumerate(path):
        if isinstance(step, int):
            places[depth] = step
            holder[key] = [holder[key][step]]
            holder, key = holder[key], 0
        else:
            holder[key] = dict(holder[key])
            holder, key = holder[key], step
    return found[0], places


def _at(message: Any, path: list[str | int], places: dict[int, int]) -> Any:
    for depth, step in enumerate(path):
        message = message[0 if depth in places else step]
    return message


def _explanation(
    revision: Revision, definition: str, message: Any, places: dict[int, int], path: list[str | int] | None
) -> Explanation | None:
    """Explain the most relevant error, of those at a path if one is given."""
    from jsonschema.exceptions import relevance  # type: ignore[import-untyped]

    errors = list(islice(_explainer(revision, definition).iter_errors(message), _ERRORS))
    errors = [it for it in errors if path is None or _placed(list(it.absolute_path), places) == path]
    if not errors:
        return None
    error = max(errors, key=relevance)
    while error.validator == "anyOf":
        chosen = _meant(error)
        if chosen is None:
            tag = next((tag for tag in _TAGS if isinstance(error.instance, dict) and tag in error.instance), None)
            path = [*error.absolute_path, *([tag] if tag else [])]
            value = error.instance[tag] if tag else error.instance
            return Explanation(pointer(*_placed(path, places)), _alternatives(error, tag), excerpt(value))
        error = chosen
    expected = _missing_tag(error) or _expected(error.validator, error.validator_value, error.instance, error.message)
    return Explanation(pointer(*_placed(list(error.absolute_path), places)), expected, excerpt(error.instance))


def _placed(path: list[str | int], places: dict[int, int]) -> list[str | int]:
    return [places.get(depth, step) if isinstance(step, int) else step for depth, step in enumerate(path)]


def _meant(error: Any) -> Any:
    """Return the error of the alternative of a refused union that was meant, or None if none can be."""
    from jsonschema.exceptions import relevance

    meant: dict[int, list[Any]] = {}
    for inner in error.context:
        meant.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [errors for errors in meant.values() if not any(_rules_out(inner) for inner in errors)]
    fitting.sort(key=len)
    return max(fitting[0], key=relevance) if fitting else None


def _rules_out(error: Any) -> bool:
    """Return whether an error of an alternative shows that another one was meant."""
    path = list(error.path)
    if not path:
        return bool(error.validator == "type")
    return error.validator in ("const", "enum") and len(path) == 1 and path[0] in _TAGS


def _alternatives(error: Any, tag: str | None) -> str:
    if tag:
        values = [inner.validator_value for inner in error.context if list(inner.path) == [tag]]
        names = [name for value in values for name in ([value] if isinstance(value, str) else value)]
        return series([json.dumps(name) for name in dict.fromkeys(names)], "or")
    kinds = [inner.validator_value for inner in error.context if not inner.path and inner.validator == "type"]
    names = [name for kind in kinds for name in ([kind] if isinstance(kind, str) else kind)]
    return series([_TYPES[name] for name in dict.fromkeys(names)], "or") if names else _ANY_SHAPE


_TYPES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def _missing_tag(error: Any) -> str | None:
    """Return what to expect if an alternative of a union lacks the member that identifies it; None otherwise."""
    lacking = error.validator_value if error.validator == "required" and error.parent is not None else ()
    tag = next((tag for tag in _TAGS if tag in lacking and tag not in error.instance), None)
    return f"the member {json.dumps(tag)}" if tag else None


def _expected(keyword: str, value: Any, instance: Any, message: str) -> str:
    """Return what a keyword with a value requires, in words. `message` is what the validator says."""
    match keyword:
        case "type":
            return series([_TYPES[name] for name in ([value] if isinstance(value, str) else value)], "or")
        case "required":
            missing = [json.dumps(name) for name in value if name not in instance]
            return f"the member{'s' if len(missing) > 1 else ''} {series(missing)}"
        case "const":
            return json.dumps(value)
        case "enum":
            return series([json.dumps(name) for name in value], "or")
        case "minimum":
            return f"at least {value}"
        case "maximum":
            return f"at most {value}"
        case "maxItems":
            return f"at most {value} items"
    return str(message)


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
