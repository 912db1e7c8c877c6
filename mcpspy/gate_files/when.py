"""Compile the filter of a gate, which decides what frames it names.

The theory. A gate uses the filters of `docs/filters.md`, but it has only one frame and must decide at once. So a term
is allowed if one frame is enough to evaluate it. A response has the method and name of its request, which the gate
remembers. The terms of a filter become the members of one object. All of them must hold. Two terms with the same key,
brackets and negations become objects within it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from mcpspy.errors import FilterError, GateError
from mcpspy.filters import parse
from mcpspy.filters.terms import WILD, glob, id_of, sizes
from mcpspy.filters.tree import And, Node, Not, Or, Term, Value
from mcpspy.gate_files.values import is_json_number
from mcpspy.text import printable

_START = "1970-01-01T00:00:00Z"  # any time will do: no term that a gate allows depends on it
_KINDS = ("request", "notification", "result", "error")
_SENDERS = ("client", "server")


def compile_when(text: str) -> dict[str, Any]:
    """Return the `when` object of a filter. Raises GateError, whose column is the place in the filter."""
    try:
        tree = parse(text, _START).tree
    except FilterError as error:  # its message names the column in the filter, not in the file
        raise GateError(str(error).replace(f" at column {error.column}", "", 1), 1, error.column) from None
    return _when(tree)


def _when(node: Node) -> dict[str, Any]:
    if isinstance(node, And):
        return _merged(map(_when, node.parts))
    if isinstance(node, Or):
        return {"any": [_when(part) for part in node.parts]}
    if isinstance(node, Not):
        return {"not": _when(node.part)}
    return _term(node)


def _merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return one object for parts that must all hold; a part with a key that is present already is kept separate."""
    whole: dict[str, Any] = {}
    apart = []
    for part in parts:
        if whole.keys() & part.keys() or "all" in part:
            apart.append(part)
        else:
            whole |= part
    return whole | {"all": apart} if apart else whole


def _term(term: Term) -> dict[str, Any]:
    if term.key not in _TERMS:
        sentence = (
            f"{printable(str(term), 60)} needs more than one frame to answer; a gate can ask for {_listed(_TERMS)}"
        )
        raise GateError(sentence, 1, term.column)
    try:
        found = [it for value in term.values for it in _TERMS[term.key](value)]
    except ValueError as error:
        raise GateError(str(error), 1, term.column) from None
    return {term.key: found[0] if len(found) == 1 else found}


def _text(value: Value) -> list[Any]:
    if not value.text:
        raise ValueError('every frame contains ""; name a text, or leave the term out')
    return [value.text]


def _glob(value: Value) -> list[Any]:
    if not value.text:
        raise ValueError("no method or name is empty; to ask for frames without one, negate the glob *")
    return [{"is": value.text} if value.quoted and WILD.search(value.text) else value.text]


def _id(value: Value) -> list[Any]:
    found = id_of(value)
    if found is None:
        return [["glob", value.text]]
    if found.kind == "number" and not is_json_number(found.token):
        raise ValueError(f'{found.token} is not a number in JSON; for an id that is a text write id:"{found.token}"')
    return [[found.kind, found.token]]


def _size(value: Value) -> list[Any]:
    least, most = sizes(value)
    if most is not None and most < max(least or 0, 0):
        raise ValueError(
            f"no frame has size:{printable(value.text, 40)}; the smaller number comes first, as in 1kb..2kb"
        )
    return [[least or 0, most]]


def _one_of(key: str, names: tuple[str, ...]) -> Callable[[Value], list[Any]]:
    def chosen(value: Value) -> list[Any]:
        found: list[Any] = list(filter(glob(value), names))
        if not found:
            raise ValueError(f"{key}:{value.text} never passes a gate; {key} is {_listed(names, 'or')}")
        return found

    return chosen


def _listed(names: Iterable[str], joint: str = "and") -> str:
    *most, last = names
    return f"{', '.join(most)} {joint} {last}"


_TERMS: dict[str, Callable[[Value], list[Any]]] = {
    "method": _glob,
    "name": _glob,
    "id": _id,
    "from": _one_of("from", _SENDERS),
    "kind": _one_of("kind", _KINDS),
    "size": _size,
    "text": _text,
}
"""The allowed terms: by key, a function that converts a value. Raises ValueError if no frame has the value."""
