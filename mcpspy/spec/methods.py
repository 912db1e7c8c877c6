"""The methods of each revision: who may send them, and the definitions for the message and its answer.

The table is derived from the definitions. ClientRequest, ServerRequest, ClientNotification and ServerNotification
define who sends what. A request's method is the constant in its definition. The result of `XRequest` is `XResult` if it
exists, otherwise EmptyResult. `result_definition` decides what a union cannot express: which of two results an answer
is.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from mcpspy.spec.definitions import definitions
from mcpspy.spec.revisions import TASKS, Revision
from mcpspy.spec.shapes import Schema

Side = Literal["client", "server"]
Kind = Literal["request", "notification"]

_UNIONS: tuple[tuple[str, Side, Kind], ...] = (
    ("ClientRequest", "client", "request"),
    ("ServerRequest", "server", "request"),
    ("ClientNotification", "client", "notification"),
    ("ServerNotification", "server", "notification"),
)
_FOR_TASKS = ("tools/call", "sampling/createMessage", "elicitation/create")  # 2025-11-25, tasks#capabilities
RESULT_TYPES = ("complete", "input_required")
"""The values of `resultType` in the protocol itself (2026-07-28, basic#resulttype)."""

_ERRORS = {
    -32042: "URLElicitationRequiredError",
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}


@dataclass(frozen=True, slots=True)
class Method:
    """A method in one revision."""

    name: str
    kind: Kind
    senders: tuple[Side, ...]
    definition: str
    """The definition of the request or notification."""
    result: str | None
    """For a request: the definition of its ordinary result."""
    as_task: bool
    """Whether the request may ask for a task (2025-11-25)."""
    asks_back: bool
    """Whether the answer may be an InputRequiredResult (2026-07-28)."""
    typed: bool
    """Whether the `resultType` of the answer identifies it (2026-07-28)."""


@cache
def methods(revision: Revision) -> dict[str, Method]:
    """Return the methods of a revision, by name. Do not change the result."""
    return methods_of(definitions(revision), revision)


def methods_of(there: dict[str, Schema], revision: Revision, prefix: str = "") -> dict[str, Method]:
    """Return the methods in the definitions of a revision, by name. Only definitions with the prefix are used."""
    found: dict[str, Method] = {}
    for union, side, kind in _UNIONS:
        for definition in _alternatives(there, prefix + union):
            name = there[definition]["properties"]["method"]["const"]
            senders = (*found[name].senders, side) if name in found else (side,)
            found[name] = _method(there, revision, name, kind, senders, definition)
    return found


def _alternatives(there: dict[str, Schema], union: str) -> list[str]:
    schema = there.get(union)
    alternatives = [] if schema is None else schema.get("anyOf", [schema])
    return [_target(alternative) for alternative in alternatives]


def _target(reference: Schema) -> str:
    return str(reference["$ref"].removeprefix("#/$defs/"))


def _method(
    there: dict[str, Schema], revision: Revision, name: str, kind: Kind, senders: tuple[Side, ...], definition: str
) -> Method:
    if kind == "notification":
        return Method(name, kind, senders, definition, None, as_task=False, asks_back=False, typed=False)
    stem = definition.removesuffix("Request")
    result = f"{stem}Result" if f"{stem}Result" in there else "EmptyResult"
    response = there.get(f"{stem}ResultResponse", {})
    return Method(
        name,
        kind,
        senders,
        definition,
        result,
        as_task=name in _FOR_TASKS and revision in TASKS,
        asks_back="anyOf" in response.get("properties", {}).get("result", {}),
        typed="resultType" in there["Result"].get("properties", {}),
    )


def revisions_with_method(name: str) -> tuple[Revision, ...]:
    """Return the revisions that have a method, in the order of publication."""
    return _revisions().get(name, ())


@cache
def _revisions() -> dict[str, tuple[Revision, ...]]:
    names = {name for revision in Revision for name in methods(revision)}
    return {name: tuple(revision for revision in Revision if name in methods(revision)) for name in names}


def result_definition(method: Method, params: Any, result: Any) -> str:
    """Return the definition for the result of a request. `params` are those of the request.

    A request for a task may be answered with a task (2025-11-25, tasks), or as usual by a peer without tasks. A
    `resultType` that the revision does not define belongs to an extension (2026-07-28, basic). It is a Result, and
    nothing more is known. In older revisions it is an ordinary member.
    """
    if method.as_task and _has(params, "task") and _has(result, "task"):
        return "CreateTaskResult"
    result_type = result.get("resultType", "complete") if isinstance(result, dict) else "complete"
    if method.asks_back and result_type == "input_required":
        return "InputRequiredResult"
    known = not method.typed or result_type in RESULT_TYPES or not isinstance(result_type, str)
    return method.result if known and method.result else "Result"


def error_definition(revision: Revision, code: Any) -> str:
    """Return the definition for a response with an error of this code."""
    there = definitions(revision)
    special = _ERRORS.get(code) if type(code) is int else None
    if special in there:
        return str(special)
    return "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in there else "JSONRPCError"


def _has(value: Any, key: str) -> bool:
    return isinstance(value, dict) and key in value
