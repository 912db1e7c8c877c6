"""What a server offers in a session, and how that changed: capabilities, tools, resources, templates, prompts.

A change is breaking if a value that was valid before may be invalid now. The client sends the arguments of a tool, so
the input schema must not become narrower. The server sends the output, so the output schema must not become wider. A
removed property is breaking in both. Keywords that combine schemas are not analysed: if they change, that counts as
breaking. Descriptions, titles, defaults and examples are not binding. But a text that becomes an instruction to a model
(`mcpspy.rules.instructions`) is never compatible.

Pure, and it follows no `$ref`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from mcpspy.conversation.offers import HANDSHAKES, page
from mcpspy.json_values import Path, member, pointer
from mcpspy.replay.differences import ABSENT, LISTINGS, Difference, by_name, differences
from mcpspy.replay.script import Script
from mcpspy.rules.instructions import instructions_in

_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_EXACT = (
    "pattern format const multipleOf uniqueItems anyOf oneOf allOf not if then else $ref dependentRequired"
    " dependentSchemas patternProperties propertyNames prefixItems contains"
).split()


@dataclass(slots=True)
class Surface:
    """What a server offers."""

    told: dict[str, Any] = field(default_factory=dict)
    """What it stated about itself: capabilities, protocolVersion, serverInfo, instructions."""
    listings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The entries of the last listing of each kind, by their names."""
    told_in: int | None = None
    """The line of the last response in which it stated something about itself."""
    listed_in: dict[str, dict[str, int]] = field(default_factory=dict)
    """The lines on which the entries of each kind were listed last, by their names."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a tool, resource, template or prompt changed."""

    kind: str
    """tools, resources, resourceTemplates or prompts."""
    name: str
    change: Literal["added", "removed", "changed"]
    differences: tuple[Difference, ...] = ()
    breaking: tuple[str, ...] = ()
    """The changes that may break a client, as JSON Pointers; `""` for an entry that was removed."""


def surface(script: Script) -> Surface:
    """Return what the server offered; if there are several listings of one kind, the last one counts."""
    found = Surface()
    for turn in script.turns:
        result = turn.response.body.value.get("result") if turn.response else None
        if not isinstance(result, dict):
            continue
        assert turn.response
        if turn.method in HANDSHAKES:
            found.told_in = turn.response.n
            kept = ("protocolVersion", "supportedVersions", "capabilities", "serverInfo", "instructions")
            found.told |= {name: result[name] for name in kept if name in result}
        listed = page(turn.response)
        if listed:
            named = by_name(listed.entries, ("result", listed.kind)) if listed.entries is not None else None
            before = {} if listed.first else found.listings.get(listed.kind, {})
            found.listings[listed.kind] = before | (named or {})
            found.listed_in.setdefault(listed.kind, {}).update(dict.fromkeys(named or (), turn.response.n))
    return found


def told_differences(old: Surface, new: Surface) -> list[Difference]:
    """Return the differences between what two servers state about themselves, as in the result of `initialize`."""
    return differences({"result": old.told}, {"result": new.told})


def changes(old: Surface, new: Surface) -> list[Change]:
    """Return what changed in the listings that both sessions have."""
    found = []
    for kind in LISTINGS:
        if kind in old.listings and kind in new.listings:
            before, now = old.listings[kind], new.listings[kind]
            for name in [*before, *(name for name in now if name not in before)]:
                change = _change(kind, name, before.get(name, ABSENT), now.get(name, ABSENT))
                found += [change] if change else []
    return found


def _change(kind: str, name: str, old: Any, new: Any) -> Change | None:
    if old is ABSENT:
        return Change(kind, name, "added")
    if new is ABSENT:
        return Change(kind, name, "removed", breaking=("",))
    found = differences(old, new)
    if not found:
        return None
    breaking = [pointer(*path) for path in chain(_breaking(kind, old, new), _poisoned(old, new))]
    return Change(kind, name, "changed", tuple(found), tuple(dict.fromkeys(breaking)))


def _breaking(kind: str, old: Any, new: Any) -> Iterator[Path]:
    if kind == "tools":
        before, now = member(old, "inputSchema") or {}, member(new, "inputSchema") or {}
        yield from narrowings(before, now, ("inputSchema",))
        before, now = member(old, "outputSchema"), member(new, "outputSchema")
        if before is not None:
            yield from (it for it in narrowings(now or {}, before, ("outputSchema",)) if it[-2:-1] != ("properties",))
            yield from _removed(before, now or {}, ("outputSchema",))
    elif kind == "prompts":
        known = _arguments(old)
        yield from (("arguments", name) for name, needed in _arguments(new).items() if needed and not known.get(name))


def _arguments(prompt: Any) -> dict[str, bool]:
    """Return the names of the arguments of a prompt, and whether each is required."""
    found = member(prompt, "arguments")
    arguments = found if isinstance(found, list) else []
    return {str(member(it, "name")): member(it, "required") is True for it in arguments if isinstance(it, dict)}


def _poisoned(old: Any, new: Any) -> Iterator[Path]:
    """Yield where a text has become an instruction to a model: users may have approved the earlier text."""
    known = {it.quoted for _, it in instructions_in(old)}
    return (path for path, it in instructions_in(new) if it.quoted not in known)


def narrowings(old: Any, new: Any, path: Path) -> Iterator[Path]:
    """Yield where a value that is valid under the schema `old` may be invalid under `new`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        if new is False and old is not False:
            yield path
        return
    yield from (
        (*path, "required", str(name)) for name in _names(new, "required") if name not in _names(old, "required")
    )
    yield from _removed(old, new, path)
    if not _types(old) <= _types(new):
        yield (*path, "type")
    enum, before = new.get("enum"), old.get("enum")
    if isinstance(enum, list) and not (isinstance(before, list) and all(value in enum for value in before)):
        yield (*path, "enum")
    for name, sign in [*((it, 1) for it in _LOWER), *((it, -1) for it in _UPPER)]:
        if _number(new.get(name)) and not (_number(old.get(name)) and sign * old[name] >= sign * new[name]):
            yield (*path, name)
    yield from ((*path, name) for name in _EXACT if name in new and new[name] != old.get(name))
    yield from narrowings(old.get("items", True), new.get("items", True), (*path, "items"))
    open_before, open_now = old.get("additionalProperties", True), new.get("additionalProperties", True)
    yield from narrowings(open_before, open_now, (*path, "additionalProperties"))
    for name, inner in _properties(old).items():
        if name in _properties(new):
            yield from narrowings(inner, _properties(new)[name], (*path, "properties", name))


def _removed(old: Any, new: Any, path: Path) -> Iterator[Path]:
    """Yield the properties of one schema that another schema lacks, at any depth."""
    for name, inner in _properties(old).items():
        if name not in _properties(new):
            yield (*path, "properties", name)
        elif isinstance(inner, dict):
            yield from _removed(inner, _properties(new)[name], (*path, "properties", name))


def _properties(schema: Any) -> dict[str, Any]:
    found = member(schema, "properties")
    return found if isinstance(found, dict) else {}


def _names(schema: dict[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _types(schema: dict[str, Any]) -> set[str]:
    """Return the types that a schema allows; an integer is a number."""
    found = schema.get("type", ["null", "boolean", "object", "array", "number", "string"])
    types = {str(name) for name in (found if isinstance(found, list) else [found])}
    return types | ({"integer"} if "number" in types else set())


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
