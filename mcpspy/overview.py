"""What the two sides said of themselves, what the server has to offer, and how its tools did.

The fold adds each message as it comes, and a few kinds tell something: a handshake, a listing, a call. Of each tool
there are counters and its latencies. Peers send anything: what is not of the shape
that the specification gives it counts for nothing here, the rules tell.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcpspy.conversation.model import Message
from mcpspy.conversation.negotiation import Declarations, declares
from mcpspy.conversation.offers import HANDSHAKES, LISTED, PagedListing, Statement, page, statement
from mcpspy.cost import compact_size, context_size, fingerprint
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
    told: Statement | None = field(default=None, compare=False, repr=False)
    """All of it, as it came."""


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
    """Bytes of its definition, as compact JSON, when it was listed last; of OTHERS the sum of theirs."""
    context: int = 0
    """Those of them that a client gives a model."""
    fingerprint: bytes = b""
    """The same as that of a tool that says the same to a model."""
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
    """Bytes of the arguments of all calls, as compact JSON."""
    results: int = 0
    """Bytes of the results of all calls, as compact JSON."""
    answers: int = 0
    """How many results that were."""
    largest: int = 0
    """Bytes of the largest result."""
    latencies: Latencies = field(default_factory=Latencies)
    """Those of the calls that were answered."""

    @property
    def mean(self) -> float:
        """Bytes of a result on average."""
        return self.results / max(self.answers, 1)

    def join(self, other: "ToolUse") -> None:
        """Take what another capture knows of the tool; of its definition what that has, if it has one."""
        if other.size:
            self.size, self.context, self.fingerprint = other.size, other.context, other.fingerprint
        for counter in ("calls", "errors", "found", "arguments", "results", "answers"):
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.largest = max(self.largest, other.largest)
        self.latencies.join(other.latencies)


class Announced:
    """What one session has announced so far; `add` each message."""

    def __init__(self) -> None:
        self.client: Peer | None = None
        self.server: Peer | None = None
        """What each said of itself last."""
        self.extensions = Declarations()
        """The extensions that each declared in any message."""
        self.listings: dict[str, PagedListing] = {}
        """Of tools, prompts, resources and resourceTemplates."""
        self.tools: dict[str, ToolUse] = {}
        """By name, in the order in which they were first heard of; what is beyond a bound is called OTHERS."""
        self.tool_pages = array("I")
        """The lines of all pages of tools."""
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
        sizes = [compact_size(entry) for entry in found.entries]
        listing.n = n
        listing.count += len(sizes)
        listing.size += sum(sizes)
        listing.names += map(_listed_name, found.entries[: max(TOOLS - len(listing.names), 0)])
        if found.kind == "tools":
            self.tool_pages.append(n)
            self._page = n, [_text(member(entry, "name")) for entry in found.entries]
            for entry, name, size in zip(found.entries, self._page[1], sizes, strict=True):
                tool, context = self._tool(name), context_size(entry)
                if tool.name == OTHERS:  # it has the sums of the newest listing
                    known = self.is_current(tool)
                    tool.size, tool.context = known * tool.size + size, known * tool.context + context
                else:
                    tool.size, tool.context, tool.fingerprint = size, context, fingerprint(entry)
                tool.listed = n

    def _add_call(self, message: Message) -> None:
        """Learn from a call or its answer: most rows are one, so this has to be quick."""
        exchange = message.exchange
        name = message.name or ""
        tool = self.tools.get(name) or self._tool(name)
        if isinstance(message.body, Request):
            tool.calls += 1
            tool.called = tool.called or message.n
            given = member(message.body.params, "arguments")
            tool.arguments += 0 if given is None else compact_size(given)
        elif exchange and exchange.latency is not None:
            tool.errors += exchange.status in ("error", "tool-error")
            tool.latencies.add(abs(exchange.latency))  # a capture can be made up
            if isinstance(message.body, Result):
                size = compact_size(message.body.result)
                tool.results += size
                tool.answers += 1
                tool.largest = max(tool.largest, size)

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
        told,
    )


class Duplicate(NamedTuple):
    """Tools of several servers that a model can mistake for one another."""

    tools: tuple[tuple[str, str], ...]
    """The server and the name of each."""
    identical: bool
    """Description and inputSchema are the same; else only the name is."""


def duplicates(servers: Iterable[tuple[str, Iterable[ToolUse]]]) -> Iterator[Duplicate]:
    """The listed tools of several servers, each server with a name of its own, that share a name or a definition."""
    by_name: dict[str, dict[tuple[str, str], bytes]] = {}
    by_fingerprint: dict[bytes, dict[tuple[str, str], bytes]] = {}
    for server, tools in servers:
        for tool in tools:
            if tool.size and tool.name != OTHERS:
                by_name.setdefault(tool.name, {})[server, tool.name] = tool.fingerprint
                by_fingerprint.setdefault(tool.fingerprint, {})[server, tool.name] = tool.fingerprint
    for group in by_name.values():
        if len(group) > 1:
            yield Duplicate(tuple(group), len(set(group.values())) == 1 and b"" not in group.values())
    for mark, group in by_fingerprint.items():
        if mark and len({server for server, _ in group}) > 1 and len({name for _, name in group}) > 1:
            yield Duplicate(tuple(group), identical=True)


def _capability(declared: tuple[str, Any]) -> str:
    name, options = declared
    chosen = [option for option, value in options.items() if value is not False] if isinstance(options, dict) else []
    return f"{name[:_NAME]}({', '.join(option[:_NAME] for option in chosen[:_OPTIONS])})" if chosen else name[:_NAME]


def _listed_name(entry: Any) -> str:
    return next(filter(None, (_text(member(entry, key)) for key in ("name", "uri", "uriTemplate"))), "")


def _text(value: Any) -> str:
    """A name that a peer gives; nothing if it is no string."""
    return value[:_NAME] if isinstance(value, str) else ""
