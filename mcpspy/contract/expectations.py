"""What a session is expected to do: one class for each kind of expectation, as plain data.

A file (`mcpspy.contract.expect_file`), options of `check` and the pytest plugin make them; `mcpspy.contract.watch`
holds a session to them. Each has a title, which is what reports show, and the id of the rule that its failures have.
Times are nanoseconds.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from mcpspy.json_values import excerpt, resolve
from mcpspy.text import duration_text, plural, printable

Wanted = tuple[tuple[str, Any], ...]
"""Arguments that a call must have to count: JSON Pointers and values."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What all have in common."""

    rule: ClassVar[str]
    """The id of the rule that is broken where it is not met."""
    blame: ClassVar[str]
    """Who has to change something then."""

    server: str | None
    """A glob for the name of the server that it is about; None for every server."""

    @property
    def title(self) -> str:
        """What is expected, on one line."""
        return printable(self.text + (f", of server {self.server}" if self.server else ""), 300)

    @property
    def text(self) -> str:
        """What is expected, whatever the server."""
        raise NotImplementedError

    def concerns(self, name: str) -> bool:
        """Whether it is about the server of that name."""
        return self.server is None or fnmatchcase(name, self.server)


@dataclass(frozen=True, slots=True)
class OfTool(Expectation):
    """What is about calls of a tool."""

    tool: str
    """Its name, or a glob for names."""
    wanted: Wanted

    def counts(self, name: str | None, arguments: Any) -> bool:
        """Whether a call is one that it is about."""
        return name is not None and fnmatchcase(name, self.tool) and not self.misses(arguments)

    def misses(self, arguments: Any) -> list[str]:
        """The pointers at which a call has not the arguments that it must have to count."""
        return [where for where, value in self.wanted if not _equal(_at(arguments, where), value)]

    def seen(self, arguments: Any, where: str) -> str:
        """What a call has at a pointer, for a sentence."""
        found = _at(arguments, where)
        return "missing" if found is _ABSENT else excerpt(found)

    @property
    def which(self) -> str:
        """The tool, and the arguments that calls of it must have to count."""
        wanted = " and ".join(f"{where} {excerpt(value)}" for where, value in self.wanted)
        return self.tool + (f" with {wanted}" if wanted else "")


@dataclass(frozen=True, slots=True)
class ToolCalled(OfTool):
    """How often a tool is called."""

    rule = "expect/called"
    blame = "client"

    least: int
    most: int | None
    """None: as often as it likes."""

    @property
    def text(self) -> str:
        """Such as `get_forecast is called 2 times`."""
        return f"{self.which} is called{times_text(self.least, self.most)}"


@dataclass(frozen=True, slots=True)
class ToolForbidden(OfTool):
    """That a tool is never called."""

    rule = "expect/never"
    blame = "client"

    @property
    def text(self) -> str:
        """Such as `delete_file is never called`."""
        return f"{self.which} is never called"


@dataclass(frozen=True, slots=True)
class ToolArguments(OfTool):
    """That the arguments of each call satisfy a JSON Schema."""

    rule = "expect/arguments"
    blame = "client"

    schema: dict[str, Any]

    @property
    def text(self) -> str:
        """Such as `the arguments of get_forecast satisfy the schema`."""
        return f"the arguments of {self.which} satisfy the schema"


@dataclass(frozen=True, slots=True)
class ToolDuration(OfTool):
    """That each call is answered in time."""

    rule = "expect/call-duration"
    blame = "server"

    most: int

    @property
    def text(self) -> str:
        """Such as `get_forecast takes at most 2.00 s`."""
        return f"{self.which} takes at most {duration_text(self.most)}"


@dataclass(frozen=True, slots=True)
class CallOrder(Expectation):
    """That tools are called in an order; other calls may stand between."""

    rule = "expect/order"
    blame = "client"

    tools: tuple[str, ...]

    @property
    def text(self) -> str:
        """Such as `login, then search`."""
        return f"{', then '.join(self.tools)} are called in this order"


@dataclass(frozen=True, slots=True)
class SessionDuration(Expectation):
    """How long a session takes."""

    rule = "expect/duration"
    blame = "client"

    most: int

    @property
    def text(self) -> str:
        """Such as `the session takes at most 30.00 s`."""
        return f"the session takes at most {duration_text(self.most)}"


@dataclass(frozen=True, slots=True)
class SessionTokens(Expectation):
    """What the definitions and results of tools take of a model's context."""

    rule = "expect/tokens"
    blame = "server"

    most: int

    @property
    def text(self) -> str:
        """Such as `definitions and results of tools take at most 5,000 tokens`."""
        return f"definitions and results of tools take at most {self.most:,} tokens"


@dataclass(frozen=True, slots=True)
class NoErrors(Expectation):
    """That nothing is answered by an error."""

    rule = "expect/no-error"
    blame = "server"

    @property
    def text(self) -> str:
        """That, in words."""
        return "no request is answered by an error, and no tool fails"


@dataclass(frozen=True, slots=True)
class StderrWithout(Expectation):
    """That no line of stderr holds a text; `*` in it is any text."""

    rule = "expect/stderr"
    blame = "server"

    pattern: str

    @property
    def text(self) -> str:
        """Such as `no line of stderr holds "Traceback"`."""
        return f"no line of stderr holds {excerpt(self.pattern)}"

    def finds(self, line: str) -> bool:
        """Whether a line holds the text."""
        at = 0
        for part in self.pattern.split("*"):
            at = line.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


@dataclass(frozen=True, slots=True)
class StartedWithin(Expectation):
    """How long it takes until the server answers for the first time."""

    rule = "expect/start"
    blame = "server"

    most: int

    @property
    def text(self) -> str:
        """Such as `the server answers within 3.00 s of its start`."""
        return f"the server answers within {duration_text(self.most)} of its start"


@dataclass(frozen=True, slots=True)
class Expectations:
    """All that is expected of a session."""

    every: tuple[Expectation, ...] = ()
    slow_call: int | None = None
    """From which time on a call is slow; None: nobody asks for operational findings."""

    def joined(self, other: "Expectations") -> "Expectations":
        """These and others; what both expect counts once."""
        every = {(it.rule, it.title): it for it in (*self.every, *other.every)}
        return Expectations(tuple(every.values()), other.slow_call if self.slow_call is None else self.slow_call)

    def of_server(self, name: str) -> tuple[Expectation, ...]:
        """Those that are about the server of that name."""
        return tuple(it for it in self.every if it.concerns(name))


def times_text(least: int, most: int | None) -> str:
    """How often, after `is called`."""
    if most is None:
        return "" if least == 1 else f" at least {plural(least, 'time')}"
    if least == most:
        return f" {plural(least, 'time')}" if least > 1 else " once"
    return f" {least:,} to {plural(most, 'time')}" if least else f" at most {plural(most, 'time')}"


_ABSENT = object()


def _at(arguments: Any, where: str) -> Any:
    """What stands at a pointer into arguments."""
    try:
        return resolve(arguments, where)
    except LookupError:
        return _ABSENT


def _equal(found: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal: true is not 1, and 1.0 is."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(map(_equal, found, wanted))
    if isinstance(wanted, dict):
        same = isinstance(found, dict) and found.keys() == wanted.keys()
        return same and all(_equal(found[key], value) for key, value in wanted.items())
    return bool(found == wanted)
