"""The arguments of a tool call compared with the schema of the tool.

The schema comes from a peer, so it may have any form. `mcpspy.spec.peer_schemas` validates the arguments: it neither
fetches anything nor hangs. Here it may not even start a worker process, because the user is waiting.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from mcpspy.json_values import excerpt, member, steps_of
from mcpspy.spec.peer_schemas import Budget, Foreign, Validity

Mark = Literal["fits", "wrong", "missing", "undeclared", "absent", "unknown"]

_MOST = 200  # maximum arguments shown
_CHOICES = 6  # maximum values of an enumeration, and alternatives, shown
_NAME = 40  # maximum characters of a type's name
_LEVELS = 4  # maximum nesting of arrays and alternatives
_RANGES = (("", "minimum", "maximum"), (" characters", "minLength", "maxLength"), (" items", "minItems", "maxItems"))


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument that is given, declared, or both."""

    name: str
    mark: Mark
    """absent: declared, neither required nor given; unknown: the schema cannot be evaluated."""
    type: str = ""
    """As declared: `string`, `integer | null`, `"a" | "b"`, `string[]`."""
    required: bool = False
    value: str | None = None
    """The given value as JSON, shortened; None if it is not given."""
    fault: str = ""
    """Why the value is invalid; empty if it is not."""
    description: str = ""
    limits: str = ""
    """Other declared constraints: `1 to 14`, `date`, `default 3`."""


def arguments(given: Any, schema: Any) -> list[Argument]:
    """Return the declared arguments in their order, then the others; `given` is `params.arguments` of the call."""
    given = given if isinstance(given, dict) else {}
    declared = member(schema, "properties")
    declared = declared if isinstance(declared, dict) else {}
    required = member(schema, "required")
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    names = dict.fromkeys([*declared, *required, *given])
    faults = _Faults(given, schema)
    return [_argument(name, given, declared, name in required, faults) for name in islice(names, _MOST)]


def _argument(
    name: str, given: dict[str, Any], declared: dict[str, Any], required: bool, faults: "_Faults"
) -> Argument:
    about = declared.get(name)
    value = excerpt(given[name]) if name in given else None
    description = member(about, "description")
    fault = faults.of(name) if name in given else ""
    if name not in given:
        mark: Mark = "missing" if required else "absent"
    elif fault:
        mark = "wrong"
    elif name not in declared:
        mark = "undeclared"
    else:
        mark = "fits" if faults.known else "unknown"
    text = description if isinstance(description, str) else ""
    return Argument(name, mark, type_text(about), required, value, fault, text, limits_text(about))


class _Faults:
    """The validation error of each argument."""

    def __init__(self, given: dict[str, Any], schema: Any) -> None:
        alone = schema | {"required": []} if isinstance(schema, dict) else {}
        whole = _ask(schema, given) if isinstance(schema, dict) else None
        self.known = whole is not None and whole.outcome in (Validity.VALID, Validity.INVALID)
        self._given, self._schema = given, alone
        self._wrong = whole is not None and whole.outcome is Validity.INVALID

    def of(self, name: str) -> str:
        """Return why an argument is invalid; empty if it is valid, or if that is unknown."""
        if not self._wrong:
            return ""
        found = _ask(self._schema, {name: self._given[name]})
        here = steps_of(found.pointer)[:1] == (name,)
        refused = not found.pointer and self._schema.get("additionalProperties") is False
        return found.message or "refused" if found.outcome is Validity.INVALID and (here or refused) else ""


def _ask(schema: dict[str, Any], instance: Any) -> Any:
    return Foreign(schema, Budget(0)).judge(instance)


def type_text(schema: Any, levels: int = _LEVELS) -> str:
    """Return the type that a schema declares, in a few words; empty if it declares none."""
    if not isinstance(schema, dict):
        return "never" if schema is False else ""
    choices, kind, reference = schema.get("enum"), schema.get("type"), schema.get("$ref")
    if isinstance(choices, list):
        return _either([excerpt(choice, 20) for choice in choices[:_CHOICES]], len(choices))
    if "const" in schema:
        return excerpt(schema["const"], 20)
    if kind == "array" and levels:
        return f"{type_text(schema.get('items'), levels - 1) or 'any'}[]"
    if isinstance(kind, list):
        return _either([str(name)[:_NAME] for name in kind[:_CHOICES]], len(kind))
    if isinstance(kind, str):
        return kind[:_NAME]
    if isinstance(reference, str):
        return reference.rpartition("/")[2][:_NAME]
    for word in ("anyOf", "oneOf"):
        several = schema.get(word)
        if isinstance(several, list) and levels:
            return _either([type_text(one, levels - 1) or "any" for one in several[:_CHOICES]], len(several))
    return ""


def limits_text(schema: Any) -> str:
    """Return the constraints of a schema other than the type, in a few words."""
    if not isinstance(schema, dict):
        return ""
    found = [str(schema["format"])[:_NAME]] if isinstance(schema.get("format"), str) else []
    for unit, least, most in _RANGES:
        low, high = (excerpt(schema[name], 20) if name in schema else "" for name in (least, most))
        if low or high:
            bounds = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
            found.append(f"{bounds}{unit}")
    if "default" in schema:
        found.append(f"default {excerpt(schema['default'], 20)}")
    return ", ".join(found)


def _either(texts: list[str], number: int) -> str:
    return " | ".join([*texts, *(["…"] if number > len(texts) else [])])
