"""Readers for the values of a gate file: each validates a value, converts it, and raises ValueError in plain words."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import jsonpatch
import jsonpointer

from mcpspy.gate.check import BOUNDS
from mcpspy.json_values import excerpt
from mcpspy.text import printable, suggestion

Reader = Callable[[Any], Any]

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z/]+)")
_TIMES = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_RATES = {"b/s": 1, "kb/s": 1_000, "mb/s": 1_000_000, "kib/s": 1 << 10, "mib/s": 1 << 20}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NEEDS = {
    "add": ("path", "value"),
    "replace": ("path", "value"),
    "test": ("path", "value"),
    "remove": ("path",),
    "move": ("from", "path"),
    "copy": ("from", "path"),
}  # RFC 6902, 4


def duration(value: Any) -> int:
    """Read a text such as `2s` as nanoseconds."""
    return _quantity(value, _TIMES, 'a time with its unit (us, ms or s), such as "500ms" or "1.5s"', "hold", "86400s")


def rate(value: Any) -> int:
    """Read a text such as `10kB/s` as bytes per second."""
    wanted = 'a rate with its unit (B/s, kB/s, MB/s, KiB/s or MiB/s), such as "10kB/s"'
    return _quantity(value, _RATES, wanted, "throttle", "1000000MB/s")


def _quantity(value: Any, units: dict[str, int], wanted: str, key: str, most_text: str) -> int:
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"it is {shown(value)}; write {wanted}")
    found = int(Decimal(match[1]) * unit)
    least, most = BOUNDS[key]
    if not least <= found <= most:
        raise ValueError(f"it is {shown(value)}; it must be more than 0 and at most {most_text}")
    return found


def whole(least: int, most: int) -> Reader:
    """Return a reader for whole numbers."""

    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"it is {shown(value)}; write a whole number from {least} to {most}")
        return value

    return read


def one_of(*names: str) -> Reader:
    """Return a reader for one of some texts."""

    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(f"it is {shown(value)}; {instead(str(value), names)}")
        return str(value)

    return read


def true(value: Any) -> bool:
    """Read true; false is not allowed, because the key can be left out."""
    if value is not True:
        raise ValueError(f"it is {shown(value)}; write true, or leave it out")
    return True


def share(value: Any) -> float:
    """Read a number from 0 to 1."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"it is {shown(value)}; write a number from 0 to 1, such as 0.2")
    return value  # type: ignore[no-any-return]


def text(value: Any) -> str:
    """Read a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"it is {shown(value)}; write a text in quotes")
    return value


def texts(value: Any) -> str | list[str]:
    """Read a text, or an array of texts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(isinstance(it, str) for it in value):
        raise ValueError(f"it is {shown(value)}; write a text in quotes, or an array of texts")
    return value


def seed(value: Any) -> int | str:
    """Read a whole number or a text."""
    if isinstance(value, str) or (type(value) is int and BOUNDS["seed"][0] <= value <= BOUNDS["seed"][1]):
        return value
    raise ValueError(f"it is {shown(value)}; write a whole number or a text")


def answer(value: Any) -> str:
    """Read the value of `answer`; return it as the JSON text of a response without its id."""
    if not isinstance(value, dict) or ("result" in value) == ("error" in value):
        raise ValueError(f"it is {shown(value)}; write a table with result or error, such as {{ result = {{}} }}")
    for key in value:
        if key not in ("result", "error"):
            raise ValueError(f"it has the unknown key {shown(key)}; it takes result or error")
    return json_text(value)


def json_text(value: Any) -> str:
    """Encode a TOML value as JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except TypeError:
        raise ValueError("it holds a date or time, which JSON does not have; write it as a text in quotes") from None
    except ValueError:
        raise ValueError("it holds a number that JSON cannot hold; write a smaller one, or a text in quotes") from None


def edits(value: Any) -> list[dict[str, Any]]:
    """Read the operations of a JSON Patch (RFC 6902)."""
    if not isinstance(value, list) or not value or not all(isinstance(it, dict) for it in value):
        example = '[{ op = "replace", path = "/params/name", value = "x" }]'
        raise ValueError(f"it is {shown(value)}; write an array of operations, such as {example}")
    for number, operation in enumerate(value, 1):
        try:
            _check(operation)
        except ValueError as error:
            raise ValueError(f"operation {number}: {error}") from None
    json_text(value)
    return value


def _check(operation: dict[str, Any]) -> None:
    """Raise ValueError if this is not an operation of a JSON Patch."""
    op = operation.get("op")
    if not isinstance(op, str) or op not in _NEEDS:
        has = f"op is {shown(op)}" if "op" in operation else "it has no op"
        raise ValueError(f"{has}; {instead(str(op), _NEEDS)}")
    for key in operation:
        if key not in ("op", *_NEEDS[op]):
            raise ValueError(f"{op} takes no {shown(key)}; {instead(key, _NEEDS[op])}")
    for key in _NEEDS[op]:
        if key not in operation:
            raise ValueError(f"{op} needs {key}; it takes {' and '.join(_NEEDS[op])}")
        if key != "value" and not isinstance(operation[key], str):
            raise ValueError(f'{key} is {shown(operation[key])}; write a JSON Pointer in quotes, such as "/params"')
    try:
        jsonpatch.JsonPatch([operation])
        jsonpointer.JsonPointer(operation.get("from", ""))
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise ValueError(f'{str(error).lower()}; a JSON Pointer begins with / (RFC 6901), such as "/params"') from None


def shown(value: Any) -> str:
    """Return a value in the form for a message."""
    if isinstance(value, bool | int | float | str | list | dict):
        return printable(excerpt(value), 80)
    return "missing" if value is None else printable(str(value), 80)


def instead(word: str, known: Any) -> str:
    """Return the advice for an unknown word: the nearest known one, or all known ones."""
    return suggestion(word, known, f"it takes {', '.join(known)}")


def is_json_number(text: str) -> bool:
    """Return whether a text is a JSON number."""
    return _NUMBER.fullmatch(text) is not None
