"""What a session is expected to do: one class for each kind of expectation, and the file that defines them.

    server = "weather"                  # optional: only captures of this server
    [[tool]]
    name = "get_forecast"
    times = ">=1"
    arguments = { city = "Oslo" }       # the calls that count: by name or JSON Pointer
    max_duration = "2s"
    [session]
    no_errors = true

The options of `check` and the pytest plugin use the same keys. An error is one line: where, what is wrong, and what to
do instead. `mcpspy.contract.watch` checks the expectations. Each has a title, which reports show, and the id of the
rule of its failures. Times are nanoseconds.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NoReturn

from mcpspy.conversation.facts import Operations
from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.gate_files.values import duration, instead, json_text, shown, text, true, whole
from mcpspy.json_values import excerpt, pointer, resolve
from mcpspy.spec.peer_schemas import Foreign, Validity
from mcpspy.text import duration_text, plural, printable, series
from mcpspy.toml_text import toml_values

Wanted = tuple[tuple[str, Any], ...]
"""Arguments that a call must have to count: JSON Pointers and values."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The common part of all expectations."""

    rule: ClassVar[str]
    """The id of the rule that reports a failure."""
    blame: ClassVar[str]
    """The side that has to change something after a failure."""

    server: str | None
    """A glob for the name of the server. None for every server."""

    @property
    def title(self) -> str:
        """The expectation on one line."""
        return printable(self.text + (f", of server {self.server}" if self.server else ""), 300)

    @property
    def text(self) -> str:
        """The expectation without the server."""
        raise NotImplementedError

    def concerns(self, name: str) -> bool:
        """Return whether it applies to the server of that name."""
        return self.server is None or fnmatchcase(name, self.server)


@dataclass(frozen=True, slots=True)
class OfTool(Expectation):
    """An expectation about the calls of a tool."""

    tool: str
    """The name of the tool, or a glob for names."""
    wanted: Wanted

    def counts(self, name: str | None, arguments: Any) -> bool:
        """Return whether it applies to a call."""
        return name is not None and fnmatchcase(name, self.tool) and not self.misses(arguments)

    def misses(self, arguments: Any) -> list[str]:
        """Return the pointers at which a call lacks an argument that it must have to count."""
        return [where for where, value in self.wanted if not _equal(_at(arguments, where), value)]

    def seen(self, arguments: Any, where: str) -> str:
        """Return the value of a call at a pointer, for a sentence."""
        found = _at(arguments, where)
        return "missing" if found is _ABSENT else excerpt(found)

    @property
    def which(self) -> str:
        """The tool, and the arguments that its calls must have to count."""
        wanted = series([f"{where} {excerpt(value)}" for where, value in self.wanted])
        return self.tool + (f" with {wanted}" if wanted else "")


@dataclass(frozen=True, slots=True)
class ToolCalled(OfTool):
    """How often a tool is called."""

    rule = "expect/called"
    blame = "client"

    least: int
    most: int | None
    """None: no upper limit."""

    @property
    def text(self) -> str:
        """For example `get_forecast is called 2 times`."""
        return f"{self.which} is called{times_text(self.least, self.most)}"


@dataclass(frozen=True, slots=True)
class ToolForbidden(OfTool):
    """A tool is never called."""

    rule = "expect/never"
    blame = "client"

    @property
    def text(self) -> str:
        """For example `delete_file is never called`."""
        return f"{self.which} is never called"


@dataclass(frozen=True, slots=True)
class ToolArguments(OfTool):
    """The arguments of each call satisfy a JSON Schema."""

    rule = "expect/arguments"
    blame = "client"

    schema: dict[str, Any]

    @property
    def text(self) -> str:
        """For example `the arguments of get_forecast satisfy the schema`."""
        return f"the arguments of {self.which} satisfy the schema"


@dataclass(frozen=True, slots=True)
class ToolDuration(OfTool):
    """Each call is answered in time."""

    rule = "expect/call-duration"
    blame = "server"

    most: int

    @property
    def text(self) -> str:
        """For example `get_forecast takes at most 2.00 s`."""
        return f"{self.which} takes at most {duration_text(self.most)}"


@dataclass(frozen=True, slots=True)
class CallOrder(Expectation):
    """Tools are called in an order. Other calls in between are allowed."""

    rule = "expect/order"
    blame = "client"

    tools: tuple[str, ...]

    @property
    def text(self) -> str:
        """For example `login, then search are called in this order`."""
        return f"{', then '.join(self.tools)} are called in this order"


@dataclass(frozen=True, slots=True)
class SessionDuration(Expectation):
    """The longest duration of a session."""

    rule = "expect/duration"
    blame = "client"

    most: int

    @property
    def text(self) -> str:
        """For example `the session takes at most 30.00 s`."""
        return f"the session takes at most {duration_text(self.most)}"


@dataclass(frozen=True, slots=True)
class SessionTokens(Expectation):
    """The most tokens of a model's context that definitions and results of tools may use."""

    rule = "expect/tokens"
    blame = "server"

    most: int

    @property
    def text(self) -> str:
        """For example `definitions and results of tools take at most 5,000 tokens`."""
        return f"definitions and results of tools take at most {self.most:,} tokens"


@dataclass(frozen=True, slots=True)
class NoErrors(Expectation):
    """No request fails, and no HTTP request."""

    rule = "expect/no-error"
    blame = "server"

    @property
    def text(self) -> str:
        """The expectation in words."""
        return "no request fails"


@dataclass(frozen=True, slots=True)
class StderrWithout(Expectation):
    """No line of stderr contains a text. `*` in it matches any text."""

    rule = "expect/stderr"
    blame = "server"

    pattern: str

    @property
    def text(self) -> str:
        """For example `no line of stderr holds "Traceback"`."""
        return f"no line of stderr holds {excerpt(self.pattern)}"

    def finds(self, line: str) -> bool:
        """Return whether a line contains the text."""
        at = 0
        for part in self.pattern.split("*"):
            at = line.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


@dataclass(frozen=True, slots=True)
class StartedWithin(Expectation):
    """The longest time until the first answer of the server."""

    rule = "expect/start"
    blame = "server"

    most: int

    @property
    def text(self) -> str:
        """For example `the server answers within 3.00 s of its start`."""
        return f"the server answers within {duration_text(self.most)} of its start"


@dataclass(frozen=True, slots=True)
class Expectations:
    """All expectations of a session."""

    every: tuple[Expectation, ...] = ()
    slow_call: int | None = None
    """The duration from which a call is slow. None: no operational findings are requested."""

    def joined(self, other: "Expectations") -> "Expectations":
        """Return these expectations and others. An expectation that both have counts once."""
        every = {(it.rule, it.title): it for it in (*self.every, *other.every)}
        return Expectations(tuple(every.values()), other.slow_call if self.slow_call is None else self.slow_call)

    def of_server(self, name: str) -> tuple[Expectation, ...]:
        """Return the expectations for the server of that name."""
        return tuple(it for it in self.every if it.concerns(name))


def times_text(least: int, most: int | None) -> str:
    """Return how often, as the text after `is called`."""
    if most is None:
        return "" if least == 1 else f" at least {plural(least, 'time')}"
    if least == most:
        return f" {plural(least, 'time')}" if least > 1 else " once"
    return f" {least:,} to {plural(most, 'time')}" if least else f" at most {plural(most, 'time')}"


_ABSENT = object()


def _at(arguments: Any, where: str) -> Any:
    """Return the value at a pointer into arguments."""
    try:
        return resolve(arguments, where)
    except LookupError:
        return _ABSENT


def _equal(found: Any, wanted: Any) -> bool:
    """Return whether two JSON values are equal: true is not 1, but 1.0 is."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(map(_equal, found, wanted))
    if isinstance(wanted, dict):
        same = isinstance(found, dict) and found.keys() == wanted.keys()
        return same and all(_equal(found[key], value) for key, value in wanted.items())
    return bool(found == wanted)


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
