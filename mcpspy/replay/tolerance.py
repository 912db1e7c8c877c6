"""What may change between a recorded session and another one, by place and by the form of the values.

A place is written as `[METHOD [NAME]] /POINTER`. A difference there is expected if the place is ignored, or if the
values of both sides have the stated form (`is`), match a regular expression (`matches`), or are near each other
(`within`). It counts on both sides: if a recorded value has another form, the settings do not fit the capture.

Some values come from the client, and the server repeats them: a nonce, the time of a request. An `Echo` names the place
in the answer and the one in the request. A recorded answer then has the value of the current request.

Values are hostile: all patterns here take linear time, and those of the user run on an engine that does.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from typing import Any, Literal

from mcpspy.errors import UsageError
from mcpspy.json_values import Number, Path, pointer, resolve, steps_of
from mcpspy.replay.differences import ABSENT, Difference
from mcpspy.replay.issued_values import begins
from mcpspy.spec.peer_schemas import linear_pattern
from mcpspy.text import printable, suggestion

By = Literal["ignore", "is", "matches", "within"]
WAYS: tuple[By, ...] = ("ignore", "is", "matches", "within")
"""The ways to allow a difference, by the name of the option and of the table in a settings file."""

_SHOWN = 200  # characters of the user's text in a message
_NOT_ESCAPED = re.compile("~(?![01])")


@dataclass(frozen=True, slots=True)
class PlacePattern:
    """A place below a pointer, in all messages or in those of one method and name."""

    method: str = "*"
    name: str = "*"
    path: Path = ()
    """`*` matches any one step. An empty path is the whole message, also whether it came at all."""

    @classmethod
    def parse(cls, text: str) -> "PlacePattern":
        """Parse `[METHOD [NAME]] [/POINTER]`. Raises UsageError."""
        shown = repr(printable(text, _SHOWN))
        words, steps = text.strip(), ""
        if words.startswith("/") or " /" in words:
            words, _, steps = f" {words}".rpartition(" /")
        method, _, name = words.strip().partition(" ")
        if not method and not steps:
            raise UsageError(f"{shown} names no place; a pointer looks like /result/content/0/text")
        if method.split("/")[0] in ("result", "error", "params"):
            raise UsageError(
                f"{shown} is not a method; a JSON Pointer begins with a slash: '/{printable(method, _SHOWN)}'"
            )
        if _NOT_ESCAPED.search(steps):
            raise UsageError(f"{shown} is not a JSON Pointer: write ~ in a name as ~0, and / as ~1")
        path = steps_of(f"/{steps}") if steps else ()
        return cls(method or "*", name.strip() or "*", path)

    def __str__(self) -> str:
        """Return the text that `parse` accepts."""
        named = [self.method, *([self.name] if self.name != "*" else [])] if self.method != "*" else []
        return " ".join([*named, *([pointer(*self.path)] if self.path else [])])

    def concerns(self, method: str | None, name: str | None) -> bool:
        """Return whether the place is in messages of this method and name."""
        return self.method in ("*", method) and self.name in ("*", name)

    def covers(self, method: str | None, name: str | None, path: Path) -> bool:
        """Return whether `path` in such a message is this place, or below it."""
        return self.concerns(method, name) and begins(path, self.path)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A place where values may differ, and how."""

    place: PlacePattern
    by: By = "ignore"
    value: str | float = ""
    """The name of a form, a regular expression, or a number."""

    @classmethod
    def parse(cls, by: By, place: str, value: Any = "") -> "Tolerance":
        """Parse a place, and check the value. Raises UsageError."""
        found = cls(PlacePattern.parse(place), by, value)
        if by != "ignore" and not found.place.path:
            raise UsageError(f"{printable(place, _SHOWN)!r} has no JSON Pointer; '{by}' needs one, such as /result/x")
        _CHECKS[by](value)
        return found

    @classmethod
    def option(cls, by: By, text: str) -> "Tolerance":
        """Parse the value of an option, `PLACE=VALUE`, for `ignore` only `PLACE`. Raises UsageError."""
        if by == "ignore":
            return cls.parse(by, text)
        start = 0 if text.startswith("/") else max(text.find(" /"), 0)
        at = text.find("=", start)
        if at < 0:
            raise UsageError(f"{printable(text, _SHOWN)!r} has no value; write {_EXAMPLES[by]!r}")
        value: str | float = text[at + 1 :]
        if by == "within" and (number := _number(value)) is not None:
            value = float(number)
        return cls.parse(by, text[:at], value)

    def __str__(self) -> str:
        """Return the text that `option` accepts."""
        return str(self.place) if self.by == "ignore" else f"{self.place}={self.value}"

    def accepts(self, method: str | None, name: str | None, it: Difference) -> bool:
        """Return whether a difference is expected."""
        if not self.place.covers(method, name, it.path):
            return False
        if self.by == "ignore":
            return True
        if len(it.path) > len(self.place.path):  # within a value that is an object or array
            return (self.by, self.value) == ("is", "any")
        values = it.recorded, it.observed
        return ABSENT not in values and _ACCEPT[self.by](self.value, *values)


@dataclass(frozen=True, slots=True)
class Echo:
    """A place in an answer that repeats a value of the request."""

    place: PlacePattern
    source: str
    """A JSON Pointer into the request, which begins with `/params/`."""

    @classmethod
    def parse(cls, place: str, source: Any) -> "Echo":
        """Parse a place in answers and a pointer into the request. Raises UsageError."""
        if not isinstance(source, str) or not source.startswith("/params/") or _NOT_ESCAPED.search(source):
            shown = repr(printable(str(source), _SHOWN))
            raise UsageError(f"{shown} is not a pointer into the request, such as /params/arguments/nonce")
        found = cls(PlacePattern.parse(place), source)
        if found.place.path[:1] not in (("result",), ("error",)):
            raise UsageError(f"{printable(place, _SHOWN)!r} is not in an answer; it begins with /result or /error")
        return found


@dataclass(frozen=True, slots=True)
class Rules:
    """How to compare."""

    tolerances: tuple[Tolerance, ...] = ()
    echoes: tuple[Echo, ...] = ()
    shape: bool = False
    """Compare only the structure."""
    strict: bool = False
    """Also compare log messages."""

    def __add__(self, other: "Rules") -> "Rules":
        """Return these rules and others."""
        return Rules(
            self.tolerances + other.tolerances,
            self.echoes + other.echoes,
            self.shape or other.shape,
            self.strict or other.strict,
        )

    def concern(self, method: str | None, name: str | None, path: Path) -> bool:
        """Return whether there is a rule for a place."""
        return any(rule.place.covers(method, name, path) for rule in self.tolerances)

    def unexpected(self, method: str | None, name: str | None, found: Iterable[Difference]) -> list[Difference]:
        """Return the differences that may not be; one at a place with a matcher names that."""
        left = []
        for it in found:
            rules = [rule for rule in self.tolerances if rule.place.covers(method, name, it.path)]
            if not any(rule.accepts(method, name, it) for rule in rules):
                exact = [rule for rule in rules if len(rule.place.path) == len(it.path)]
                left.append(replace(it, matcher=f"{exact[0].by} {exact[0].value}") if exact else it)
        return left

    def echoed(self, method: str, name: str | None, recorded: Any, params: Any, answer: Any) -> dict[Path, Any]:
        """Return the changes to a recorded answer for a request with other params.

        Where the answer has the recorded value, or a text that contains it, it gets the current value.
        """
        changes: dict[Path, Any] = {}
        for echo in self.echoes if recorded != params else ():
            if not echo.place.concerns(method, name):
                continue
            try:
                before, now = (resolve({"params": it}, echo.source) for it in (recorded, params))
            except LookupError:
                continue
            for path, value in _places(answer, echo.place.path):
                changed = _replaced(changes.get(path, value), before, now)
                if changed is not ABSENT:
                    changes[path] = changed
        return changes


NO_RULES = Rules()
"""Every difference counts."""


def with_changes(value: Any, changes: dict[Path, Any]) -> Any:
    """Return a value with others in some places, which exist."""
    for path, now in changes.items():
        value = _put(value, path, now)
    return value


def _put(value: Any, path: Path, now: Any) -> Any:
    if not path:
        return now
    copy = value.copy()
    copy[path[0]] = _put(value[path[0]], path[1:], now)
    return copy


def _places(value: Any, pattern: Path, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the paths that match a pattern, with the values there; a text stands for the JSON that it may contain."""
    if not pattern or isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if pattern[0] in ("*", str(step)):
                yield from _places(inner, pattern[1:], (*path, step))


def _replaced(value: Any, before: Any, now: Any) -> Any:
    """Return a value of an answer for the current request; ABSENT if it does not repeat the recorded one."""
    if type(value) is type(before) and value == before:
        return now
    if isinstance(value, str) and isinstance(before, str) and isinstance(now, str) and before and before in value:
        return value.replace(before, now)
    return ABSENT


# The forms of values

_MOST_DIGITS = 400
_DATE_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:[.,][0-9]{1,12})?(?: ?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2}))?"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def _is_date_time(value: Any) -> bool:
    match = _DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    return match is not None and _exists(date.fromisoformat, match[1]) and _exists(time.fromisoformat, match[2])


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE.fullmatch(value) is not None and _exists(date.fromisoformat, value)


def _exists(parse: Callable[[str], Any], text: str) -> bool:
    """Return whether there is such a day or time: 30 February matches the pattern only."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _number(value: Any) -> Decimal | None:
    """Return the value of a number, or of a text that is one; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = value if isinstance(value, str) else repr(value)
    return Decimal(text) if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text) else None


def _is_integer(value: Any) -> bool:
    number = _number(value)
    return number is not None and number == number.to_integral_value()


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str) or not _BASE64.fullmatch(value) or (value.endswith("=") and len(value) % 4):
        return False
    return _exists(base64.urlsafe_b64decode, value + "=" * (-len(value) % 4))


FORMS: dict[str, Callable[[Any], bool]] = {
    "date-time": _is_date_time,
    "date": _is_date,
    "uuid": lambda value: isinstance(value, str) and _UUID.fullmatch(value) is not None,
    "integer": _is_integer,
    "number": lambda value: _number(value) is not None,
    "url": lambda value: isinstance(value, str) and _URL.fullmatch(value) is not None,
    "base64": _is_base64,
    "any": lambda _: True,
}
"""The forms that `is` names. A number may be written in a text, because results often contain only text."""


def _is(form: Any, one: Any, other: Any) -> bool:
    return all(map(FORMS[form], (one, other))) and (form == "any" or _is_text(one) == _is_text(other))


def _match(pattern: Any, one: Any, other: Any) -> bool:
    return all(_is_text(it) and linear_pattern(pattern)(it) for it in (one, other))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _near(distance: Any, one: Any, other: Any) -> bool:
    first, second = _number(one), _number(other)
    return first is not None and second is not None and abs(first - second) <= Decimal(repr(distance))


_ACCEPT: dict[str, Callable[[Any, Any, Any], bool]] = {"is": _is, "matches": _match, "within": _near}


def _check_form(value: Any) -> None:
    if value not in FORMS:
        hint = suggestion(str(value), FORMS, f"the forms are {', '.join(FORMS)}")
        raise UsageError(f"{printable(str(value), _SHOWN)!r} is not a form of values; {hint}")


def _check_pattern(value: Any) -> None:
    try:
        linear_pattern(value)
    except ValueError:
        shown = repr(printable(str(value), _SHOWN))
        raise UsageError(f"{shown} is not a regular expression without look-around and back-references") from None


def _check_distance(value: Any) -> None:
    number = None if isinstance(value, str) else _number(value)
    if number is None or number < 0:
        raise UsageError(f"{printable(str(value), _SHOWN)!r} is not a distance; write a number, such as 0.5")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "ignore": lambda _: None,
    "is": _check_form,
    "matches": _check_pattern,
    "within": _check_distance,
}
_EXAMPLES = {
    "is": "/result/structuredContent/at=date-time",
    "matches": "/result/content/0/text=^[0-9]+ rooms$",
    "within": "/result/structuredContent/temperature=0.5",
}
