"""What a session is expected to do: one class for each kind of expectation, as plain data.

Files (`mcpspy.contract.expect_file`), options of `check` and the pytest plugin create them. `mcpspy.contract.watch`
checks them. Each has a title, which reports show, and the id of the rule of its failures. Times are nanoseconds.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from mcpspy.json_values import excerpt, resolve
from mcpspy.text import duration_text, plural, printable, series

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
