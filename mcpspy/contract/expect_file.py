"""A file of expectations: its tables and keys, and the expectations that they define.

    server = "weather"                  # optional: only captures of this server
    [[tool]]
    name = "get_forecast"
    times = ">=1"
    arguments = { city = "Oslo" }       # the calls that count: by name or JSON Pointer
    max_duration = "2s"
    [session]
    no_errors = true

The options of `check` and the pytest plugin use the same keys. An error is one line: where, what is wrong, and what to
do instead.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from mcpspy.contract.expectations import (
    CallOrder,
    Expectation,
    Expectations,
    NoErrors,
    SessionDuration,
    SessionTokens,
    StartedWithin,
    StderrWithout,
    ToolArguments,
    ToolCalled,
    ToolDuration,
    ToolForbidden,
    Wanted,
)
from mcpspy.conversation.facts import Operations
from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.gate_files.values import duration, instead, json_text, shown, text, true, whole
from mcpspy.json_values import pointer
from mcpspy.spec.peer_schemas import Foreign, Validity
from mcpspy.text import printable
from mcpspy.toml_text import toml_values

LARGEST = 1 << 20
"""The size limit of a file of expectations, in bytes."""
_MOST = 1_000_000_000  # limit for counts
_TIMES = re.compile(r"(>=|<=|>|<)?\s*([0-9]{1,9})|([0-9]{1,9})\s*(?:-|\.\.)\s*([0-9]{1,9})")
_BAD_ESCAPE = re.compile("~(?![01])")

Range = tuple[int, int | None]
_BOUNDS: dict[str | None, Callable[[int], Range]] = {
    None: lambda number: (number, number),
    ">=": lambda number: (number, None),
    ">": lambda number: (number + 1, None),
    "<=": lambda number: (0, number),
    "<": lambda number: (0, number - 1),
}


def read(path: str) -> Expectations:
    """Read the expectations in a file. Raises UsageError with the file, the place and what is wrong."""
    try:
        found = toml_values(read_foreign(path, LARGEST, named=True).decode("utf-8-sig").replace("\r\n", "\n"))
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply; take out some levels") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not TOML: it is not UTF-8") from None
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {printable(str(error), 200)}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    expected = expectations(found, path)
    if not expected.every and expected.slow_call is None:
        raise UsageError(f"{path} expects nothing; write a [[tool]], order, [session] or [ops]")
    return expected


def expectations(found: dict[str, Any], where: str) -> Expectations:
    """Return the expectations that the keys of a file define. `where` is the beginning of a UsageError."""
    _refuse_unknown(where, "the file", found, ("server", "tool", "order", "session", "ops"))
    server = _read(where, "server", text, found["server"]) if "server" in found else None
    tools, session, ops = found.get("tool", []), found.get("session", {}), found.get("ops")
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        _fail(where, "tool must be a table in an array; write [[tool]] above each")
    for name, table in (("session", session), ("ops", {} if ops is None else ops)):
        if not isinstance(table, dict):
            _fail(where, f"{name} must be a table; write [{name}]")
    every: list[Expectation] = []
    for number, tool in enumerate(tools, 1):
        every += _of_tool(f"{where}, tool {number}", tool, server)
    refuse_contradictions(where, every)
    if "order" in found:
        every.append(CallOrder(server, _read(where, "order", _names, found["order"])))
    every += _of_session(f"{where}, session", session, server)
    slow = None if ops is None else _slow_call(f"{where}, ops", ops)
    return Expectations(tuple(every), slow)


def refuse_contradictions(where: str, every: Iterable[Expectation]) -> None:
    """Raise UsageError if no session can meet two expectations about how often the same calls are made."""
    counts: dict[str, tuple[Expectation, Range]] = {}
    for it in every:
        if not isinstance(it, ToolCalled | ToolForbidden):
            continue
        least, most = (it.least, it.most) if isinstance(it, ToolCalled) else (0, 0)
        key = repr((it.server, it.tool, it.wanted))
        other, (low, high) = counts.get(key, (it, (least, most)))
        least, most = max(least, low), min((end for end in (most, high) if end is not None), default=None)
        if most is not None and most < least:
            _fail(where, f"no session can meet both: {other.title}; {it.title}. Take out one of them")
        counts[key] = it, (least, most)


def _of_tool(where: str, found: dict[str, Any], server: str | None) -> Iterator[Expectation]:
    _refuse_unknown(where, "a tool", found, TOOL_KEYS)
    if "name" not in found:
        _fail(where, 'it has no name; write name = "NAME", where * is any text')
    values = {key: _read(where, key, _TOOL[key], value) for key, value in found.items()}
    about = values.get("server", server), values["name"], values.get("arguments", ())
    if "never" in values:
        for key in ("times", "schema", "max_duration"):
            if key in values:
                _fail(where, f"{key} cannot be met by a tool that is never called; take out {key} or never")
        yield ToolForbidden(*about)
        return
    least, most = values.get("times", (1, None))
    if most == 0:
        for key in ("schema", "max_duration"):
            if key in values:
                _fail(where, f"{key} cannot be met by a tool that is never called; take out {key} or times")
        yield ToolForbidden(*about)
    elif (least, most) != (0, None):
        yield ToolCalled(*about, least, most)
    if "schema" in values:
        yield ToolArguments(*about, values["schema"])
    if "max_duration" in values:
        yield ToolDuration(*about, values["max_duration"])


def _of_session(where: str, found: dict[str, Any], server: str | None) -> Iterator[Expectation]:
    _refuse_unknown(where, "a session", found, tuple(_SESSION))
    for key, (reader, make) in _SESSION.items():
        if key in found:
            yield from make(server, _read(where, key, reader, found[key]))


def _slow_call(where: str, found: dict[str, Any]) -> int:
    _refuse_unknown(where, "ops", found, ("slow_call",))
    return _read(where, "slow_call", duration, found["slow_call"]) if "slow_call" in found else Operations().slow


def _names(value: Any) -> tuple[str, ...]:
    """Read an array of at least two tool names."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(it, str) and it for it in value):
        raise ValueError(f'it is {shown(value)}; write an array of two names or more, such as ["login", "search"]')
    return tuple(value)


def _texts(value: Any) -> tuple[str, ...]:
    """Read the texts that no line may contain."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(it, str) and it for it in texts):
        raise ValueError(f'it is {shown(value)}; write an array of texts, such as ["Traceback"]')
    return tuple(texts)


def _range(value: Any) -> Range:
    """Read how often: `2`, `">=1"`, `"<3"`, `"2-4"`."""
    if type(value) is int and 0 <= value <= _MOST:
        return value, value
    match = _TIMES.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'it is {shown(value)}; write a number, or a text such as ">=1", "<=3" or "2-4"')
    least, most = (int(match[3]), int(match[4])) if match[3] else _BOUNDS[match[1]](int(match[2]))
    if most is not None and most < least:
        instead_of = "write the smaller one first" if match[3] else 'write "<1", or never = true'
        raise ValueError(f"it is {shown(value)}, which matches no number; {instead_of}")
    return least, most


def _arguments(value: Any) -> Wanted:
    """Read the arguments that a call must have to count, by name or JSON Pointer."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f'it is {shown(value)}; write a table such as {{ city = "Oslo" }} or {{ "/a/0" = 1 }}')
    if "type" in value and isinstance(value.get("properties"), dict):
        raise ValueError("it looks like a JSON Schema; write that under schema, and values of arguments here")
    json_text(value)
    for key in value:
        if key.startswith("/") and _BAD_ESCAPE.search(key):
            raise ValueError(
                f"{shown(key)} is not a JSON Pointer: after ~ must be 0 or 1; write ~0 for ~, and ~1 for /"
            )
    return tuple((key if key.startswith("/") else pointer(key), wanted) for key, wanted in value.items())


def _schema(value: Any) -> dict[str, Any]:
    """Read a JSON Schema that can be used to validate arguments."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"it is {shown(value)}; write a JSON Schema as a table")
    json_text(value)
    found = Foreign(value).check()
    if found.outcome is not Validity.VALID:
        why = f": {printable(found.message, 200)}" if found.message else ""
        raise ValueError(f"it cannot be used as a JSON Schema ({found.outcome.value}{why}); correct it")
    return value


_TOOL: dict[str, Callable[[Any], Any]] = {
    "name": text,
    "server": text,
    "times": _range,
    "never": true,
    "arguments": _arguments,
    "schema": _schema,
    "max_duration": duration,
}
TOOL_KEYS = tuple(_TOOL)
_SESSION: dict[str, tuple[Callable[[Any], Any], Callable[[str | None, Any], Iterable[Expectation]]]] = {
    "max_duration": (duration, lambda server, most: [SessionDuration(server, most)]),
    "max_tokens": (whole(1, _MOST), lambda server, most: [SessionTokens(server, most)]),
    "no_errors": (true, lambda server, _: [NoErrors(server)]),
    "stderr_without": (_texts, lambda server, texts: [StderrWithout(server, it) for it in texts]),
    "started_within": (duration, lambda server, most: [StartedWithin(server, most)]),
}
"""By key: how its value is read, and which expectations it defines."""
SESSION_KEYS = tuple(_SESSION)


def _read(where: str, key: str, reader: Callable[[Any], Any], value: Any) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        _fail(where, f"{key}: {error}")


def _refuse_unknown(where: str, what: str, found: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            _fail(where, f"{what} has no key {shown(key)}; {instead(key, list(known))}")


def _fail(where: str, what: str) -> NoReturn:
    raise UsageError(f"{where}: {what}")
