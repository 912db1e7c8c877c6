"""Verdict and explanation: whether a message matches a definition, and if not, where and what was expected.

The theory. `jsonschema_rs` gives the verdict, in microseconds. `jsonschema` is a hundred times slower and is imported
only here. It explains a refusal, on a message that is cut down to the refused part. Both run with formats off, because
they disagree about URIs. `mcpspy.spec.members` has a check of our own. Validators are compiled on first use, each from
the definitions that its own refers to. Neither library may fetch anything.

Messages are what `mcpspy.wire.jsonrpc` decodes, so they may contain lone surrogates, NaN, and integers of any length.
No message makes this module raise an exception.
"""

import json
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from mcpspy.json_values import Number, excerpt, pointer
from mcpspy.spec.definitions import DIALECT
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Schema

_ERRORS = 50  # the most relevant of these is shown; a message may have any number
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


def explain(revision: Revision, definition: str, message: Any) -> Explanation | None:
    """Return why a message is refused, or None if it is valid. Raises KeyError if there is no such definition."""
    message = plain(message)
    try:
        _validator(revision, definition).validate(message)
    except jsonschema_rs.ValidationError as refusal:
        path = list(refusal.instance_path)
        message, places = _narrowed(message, path)
        try:
            found = _explanation(revision, definition, message, places)
        except RecursionError:
            found = None
        return found or Explanation(pointer(*path), "what the definition says", excerpt(_at(message, path, places)))
    return None


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
def _validator(revision: Revision, definition: str) -> jsonschema_rs.Draft202012Validator:
    schema = self_contained(revision, definition)
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False, retriever=refuse)


@cache
def _explainer(revision: Revision, definition: str) -> Any:
    import jsonschema  # type: ignore[import-untyped]  # takes 0.1 s, so only for a refused message
    import referencing

    # a registry of its own: the default one fetches, this one is empty and never does
    return jsonschema.Draft202012Validator(self_contained(revision, definition), registry=referencing.Registry())


def _scalar_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _narrowed(message: Any, path: list[str | int]) -> tuple[Any, dict[int, int]]:
    """Return the message with each array on the path cut down to one element, and that element's index by depth."""
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
            holder, key = holder[key], step
    return found[0], places


def _at(message: Any, path: list[str | int], places: dict[int, int]) -> Any:
    for depth, step in enumerate(path):
        message = message[0 if depth in places else step]
    return message


def _explanation(revision: Revision, definition: str, message: Any, places: dict[int, int]) -> Explanation | None:
    from jsonschema.exceptions import relevance  # type: ignore[import-untyped]

    errors = list(islice(_explainer(revision, definition).iter_errors(message), _ERRORS))
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
    return Explanation(pointer(*_placed(list(error.absolute_path), places)), _expected(error), excerpt(error.instance))


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
        return _one_of([json.dumps(name) for name in dict.fromkeys(names)])
    kinds = [inner.validator_value for inner in error.context if not inner.path and inner.validator == "type"]
    names = [name for kind in kinds for name in ([kind] if isinstance(kind, str) else kind)]
    return _one_of([_TYPES[name] for name in dict.fromkeys(names)]) if names else "one of the known shapes"


_TYPES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def _expected(error: Any) -> str:
    """Return what a keyword requires, in words."""
    value = error.validator_value
    match error.validator:
        case "type":
            return _one_of([_TYPES[name] for name in ([value] if isinstance(value, str) else value)])
        case "required":
            missing = next(name for name in value if name not in error.instance)
            return f"the member {json.dumps(missing)}"
        case "const":
            return json.dumps(value)
        case "enum":
            return _one_of([json.dumps(name) for name in value])
        case "minimum":
            return f"at least {value}"
        case "maximum":
            return f"at most {value}"
        case "maxItems":
            return f"at most {value} items"
    return str(error.message)


def _one_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
