"""What the two sides said of themselves, what the server has to offer, and how its tools did.

The fold adds each message as it comes, and a few kinds tell something: a handshake, a listing, a call. Of each tool
there are counters and its latencies. Peers send anything: what is not of the shape
that the specification gives it counts for nothing here, the rules tell.
"""

import json
from array import array
from dataclasses import dataclass, field
from typing import Any

import orjson

from mcpspy.conversation.model import Message
from mcpspy.conversation.negotiation import Declarations, declares
from mcpspy.conversation.offers import HANDSHAKES, LISTED, PagedListing, Statement, page, statement
from mcpspy.json_values import member, steps_of
from mcpspy.rules import Finding
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.jsonrpc import Request, Result

CALL = "tools/call"
OTHERS = "other tools"
TOOLS = 3000
"""Tools that are told apart."""
_NAME = 500  # characters of a name that are kept
_CAPABILITIES, _OPTIONS = 40, 10  # that are kept
_AT_ONCE = 256  # latencies that are counted together
_DIGITS = 4  # of a latency that are kept
_SCALES = tuple(10 ** max(length - _DIGITS, 0) for length in range(21))  # by its length


@dataclass(slots=True)
class Peer:
    """What one side said of itself."""

    n: int
    """The line on which it did."""
    name: str
    version: str
    revision: str
    """The one that it asked for, or agreed to."""
    capabilities: tuple[str, ...]
    """Each with its options in brackets: `tools(listChanged)`."""
    instructions: int = 0
    """Of a server: the bytes of what it tells a model about itself."""


@dataclass(slots=True)
class Latencies:
    """How often each latency occurred, to four digits.

    Any number of calls takes no more room than there are values that differ, and a quantile is right to a part in a
    thousand.
    """

    latest: "array[int]" = field(default_factory=lambda: array("Q"))
    """The latencies that were added last, in nanoseconds, until they are counted."""
    counts: dict[int, int] = field(default_factory=dict)
    """How often each latency occurred; of all but the latest."""
    _longest: int = 0

    def add(self, latency: int) -> None:
        """Take one more."""
        self.latest.append(latency)
        if len(self.latest) >= _AT_ONCE:
            self.count()

    def join(self, other: "Latencies") -> None:
        """Take all those of another capture."""
        other.count()
        for rounded, times in other.counts.items():
            self.counts[rounded] = self.counts.get(rounded, 0) + times
        self._longest = max(self.longest, other.longest)

    @property
    def longest(self) -> int:
        """The longest latency, in nanoseconds."""
        self.count()
        return self._longest

    def count(self) -> None:
        """Count the latest latencies: many at once take a fraction of the time that each would alone."""
        for latency in self.latest:
            rounded = latency - latency % _SCALES[len(str(latency))]
            self.counts[rounded] = self.counts.get(rounded, 0) + 1
        self._longest = max(self._longest, *self.latest) if self.latest else self._longest
        del self.latest[:]

    def quantiles(self, *parts: float) -> list[int]:
        """The latencies that these parts of the calls, smallest first, did not exceed; none without an answer."""
        self.count()
        total, so_far = sum(self.counts.values()), 0
        wanted, found = list(parts), []
        for latency in sorted(self.counts):
            so_far += self.counts[latency]
            while wanted and so_far >= total * wanted[0]:
                found.append(self._longest if so_far == total else latency)
                wanted.pop(0)
        return found


@dataclass(slots=True)
class ToolUse:
    """What is known of one tool."""

    name: str
    size: int = 0
    """Bytes of its definition, as compact JSON, when it was listed last."""
    listed: int = 0
    """The line of that listing; 0: it never was."""
    called: int = 0
    """The line of its first call."""
    calls: int = 0
    errors: int = 0
    """Calls that were answered by an error or a tool's error."""
    found: int = 0
    """How often something was found in its calls, their answers and its definition."""
    arguments: int = 0
    """Bytes of the arguments of all calls, as compact JSON, where they are measured."""
    results: int = 0
    """Bytes of the results of all calls, as compact JSON, where they are measured."""
    latencies: Latencies = field(default_factory=Latencies)
    """Those of the calls that were answered."""

    def join(self, other: "ToolUse") -> None:
        """Take what another capture knows of the tool; of its definition what that has, if it has one."""
        self.size = other.size or self.size
        for counter in ("calls", "errors", "found", "arguments", "results"):
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.latencies.join(other.latencies)


class Announced:
    """What one session has announced so far; `add` each message. With `measured`, arguments and results are."""

    def __init__(self, *, measured: bool = False) -> None:
        self._measured = measured
        self.client: Peer | None = None
        self.server: Peer | None = None
        """What each said of itself last."""
        self.extensions = Declarations()
        """The extensions that each declared in any message."""
        self.listings: dict[str, PagedListing] = {}
        """Of tools, prompts, resources and resourceTemplates."""
        self.tools: dict[str, ToolUse] = {}
        """By name, in the order in which they were first heard of; what is beyond a bound is called OTHERS."""
        self._page: tuple[int, list[str]] = (0, [])  # the line of the last page of tools, and their names

    def add(self, message: Message) -> None:
        """Take the next message."""
        method = message.method
        self.extensions.add(message.n, message.sender, declares(message))
        if method == CALL:
            self._add_call(message)
            if (self.client is None or self.server is None) and message.revision in STATELESS:
                self._add_peer(message)
        elif method in LISTED:
            self._add_peer(message)
            self._add_page(message)
        elif method in HANDSHAKES:
            self._add_peer(message)

    def find(self, finding: Finding, method: str | None, name: str | None) -> None:
        """Take what was found of a row that was added, with the method and name of that."""
        if method == CALL and name:
            self._tool(name).found += 1
        elif method == "tools/list" and finding.frame == self._page[0]:
            within = steps_of(finding.pointer)
            if within[:2] == ("result", "tools") and len(within) > 2 and int(within[2]) < len(self._page[1]):
                self._tool(self._page[1][int(within[2])]).found += 1

    def is_current(self, tool: ToolUse) -> bool:
        """Whether a tool stands in the newest listing."""
        listing = self.listings.get("tools")
        return listing is not None and tool.listed >= listing.first

    def _add_page(self, message: Message) -> None:
        """Learn from the answer to a listing."""
        found = page(message)
        if found is None or found.entries is None:
            return
        n = message.n
        listing = self.listings.get(found.kind)
        if listing is None or found.first:
            listing = self.listings[found.kind] = PagedListing(n, n)
        sizes = [_size(entry) for entry in found.entries]
        listing.n = n
        listing.count += len(sizes)
        listing.size += sum(sizes)
        if found.kind == "tools":
            self._page = n, [_text(member(entry, "name")) for entry in found.entries]
            for name, size in zip(self._page[1], sizes, strict=True):
                tool = self._tool(name)
                tool.size, tool.listed = size, n

    def _add_call(self, message: Message) -> None:
        """Learn from a call or its answer: most rows are one, so this has to be quick."""
        exchange = message.exchange
        name = message.name or ""
        tool = self.tools.get(name) or self._tool(name)
        if isinstance(message.body, Request):
            tool.calls += 1
            tool.called = tool.called or message.n
            if self._measured:
                given = member(message.body.params, "arguments")
                tool.arguments += 0 if given is None else _size(given)
        elif exchange and exchange.latency is not None:
            tool.errors += exchange.status in ("error", "tool-error")
            tool.latencies.add(abs(exchange.latency))  # a capture can be made up
            if self._measured and isinstance(message.body, Result):
                tool.results += _size(message.body.result)

    def _add_peer(self, message: Message) -> None:
        """Learn what a message tells of a side, if that is more than what is known."""
        told = statement(message)
        if told is None:
            return
        if told.side == "client" and (told.complete or self.client is None or self.client.revision != told.revision):
            self.client = peer(told)
        elif told.side == "server" and (told.complete or self.server is None):
            self.server = peer(told)

    def _tool(self, name: str) -> ToolUse:
        """The tool of that name, known or new."""
        full = len(self.tools) >= TOOLS
        name = name[:_NAME]
        tool = self.tools.get(OTHERS if full and name not in self.tools else name)
        if tool is None:
            tool = ToolUse(OTHERS if full else name)
            self.tools[tool.name] = tool
        return tool


def peer(told: Statement) -> Peer:
    """What one side said of itself, as far as it has the shape that it should have."""
    capabilities, instructions = told.capabilities, told.instructions
    return Peer(
        told.n,
        _text(member(told.identity, "name")),
        _text(member(told.identity, "version")),
        _text(told.revision),
        tuple(map(_capability, list(capabilities.items())[:_CAPABILITIES])) if isinstance(capabilities, dict) else (),
        len(instructions.encode(errors="surrogatepass")) if isinstance(instructions, str) else 0,
    )


def _capability(declared: tuple[str, Any]) -> str:
    name, options = declared
    chosen = [option for option, value in options.items() if value is not False] if isinstance(options, dict) else []
    return f"{name[:_NAME]}({', '.join(option[:_NAME] for option in chosen[:_OPTIONS])})" if chosen else name[:_NAME]


def _size(value: Any) -> int:
    """The bytes of a value as compact JSON; 0 where it cannot be written."""
    try:
        return len(orjson.dumps(value))
    except TypeError:  # large integers, lone surrogates
        pass
    try:
        return len(json.dumps(value, separators=(",", ":")))
    except (ValueError, RecursionError):
        return 0


def _text(value: Any) -> str:
    """A name that a peer gives; nothing if it is no string."""
    return value[:_NAME] if isinstance(value, str) else ""
