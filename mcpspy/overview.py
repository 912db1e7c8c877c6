"""Overview of a session: client, server, the server's offers, and statistics of its tools.

The fold adds each message in order. Only handshakes, listings and calls are evaluated. Each tool has counters and its
latencies. Peers may send anything: a value whose shape violates the specification is ignored here, because the rules
report it.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcpspy.conversation.context import Declarations, declares
from mcpspy.conversation.model import Message
from mcpspy.conversation.offers import HANDSHAKES, LISTED, PagedListing, Statement, page, statement
from mcpspy.cost import compact_size, context_size, encoded_size, fingerprint
from mcpspy.json_values import member, steps_of
from mcpspy.rules import Finding, LocatedFinding
from mcpspy.rules.judge import Fold, JudgedEvent
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.jsonrpc import Request, Result

CALL = "tools/call"
OTHERS = "other tools"
TOOLS = 3000
"""The maximum number of tools that are counted separately; the rest is counted as OTHERS."""
_NAME = 500  # maximum characters kept of a name
_CAPABILITIES, _OPTIONS = 40, 10  # maximum numbers kept
_AT_ONCE = 256  # number of latencies counted together
_DIGITS = 4  # significant digits kept of a latency
_SCALES = tuple(10 ** max(length - _DIGITS, 0) for length in range(21))  # index: number of digits of the latency


@dataclass(slots=True)
class Peer:
    """What one side states about itself."""

    n: int
    """The line number of the statement."""
    name: str
    version: str
    revision: str
    """The revision that the client requested, or that the server agreed to."""
    capabilities: tuple[str, ...]
    """Each with its options in brackets: `tools(listChanged)`."""
    instructions: int = 0
    """The size of a server's `instructions` in bytes."""
    told: Statement | None = field(default=None, compare=False, repr=False)
    """The complete statement, unchanged."""


@dataclass(slots=True)
class Latencies:
    """How often each latency occurred, rounded down to four digits.

    The memory used depends on the number of distinct values, not on the number of calls. A quantile is accurate to one
    part in a thousand.
    """

    latest: "array[int]" = field(default_factory=lambda: array("Q"))
    """The latencies that are not counted yet, in nanoseconds."""
    counts: dict[int, int] = field(default_factory=dict)
    """Rounded latency -> how often it occurred; without those in `latest`."""
    _longest: int = 0

    def add(self, latency: int) -> None:
        """Add a latency."""
        self.latest.append(latency)
        if len(self.latest) >= _AT_ONCE:
            self.count()

    def join(self, other: "Latencies") -> None:
        """Add all latencies of another capture."""
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
        """Count the latest latencies: counting many at once is much faster than counting each."""
        for latency in self.latest:
            rounded = latency - latency % _SCALES[len(str(latency))]
            self.counts[rounded] = self.counts.get(rounded, 0) + 1
        self._longest = max(self._longest, *self.latest) if self.latest else self._longest
        del self.latest[:]

    def quantiles(self, *parts: float) -> list[int]:
        """Return for each part of the calls (0.5 is half), in ascending order, the latency that it does not exceed.

        The list is empty if no call was answered.
        """
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
    """Statistics of one tool."""

    name: str
    size: int = 0
    """Bytes of its latest listed definition, as compact JSON; for OTHERS the sum of theirs."""
    context: int = 0
    """The part of `size` that a client gives to a model."""
    fingerprint: bytes = b""
    """Equal for tools whose definitions are equal to a model; empty if there is no description."""
    listed: int = 0
    """The line number of its latest listing; 0 if it was never listed."""
    called: int = 0
    """The line number of its first call; 0 if it was never called."""
    calls: int = 0
    errors: int = 0
    """Number of calls that were answered with an error or with a tool error."""
    found: int = 0
    """Number of findings about its calls, their responses and its definition."""
    arguments: int = 0
    """Bytes of the arguments of all calls, as compact JSON; of a call that was not decoded, of its whole frame."""
    results: int = 0
    """Bytes of the results of all calls, as compact JSON; of a result that was not decoded, of its whole frame."""
    text: int = 0
    """The part of `results` that a model reads as text: without the base64 of images, audio and blobs."""
    answers: int = 0
    """The number of these results."""
    largest: int = 0
    """The most bytes of text in one result."""
    latencies: Latencies = field(default_factory=Latencies)
    """The latencies of the answered calls."""

    @property
    def mean(self) -> float:
        """The mean number of bytes of text in a result."""
        return self.text / max(self.answers, 1)

    def join(self, other: "ToolUse") -> None:
        """Add the statistics from another capture; a definition of the tool in that capture replaces this one."""
        if other.size:
            self.size, self.context, self.fingerprint = other.size, other.context, other.fingerprint
        for counter in ("calls", "errors", "found", "arguments", "results", "text", "answers"):
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.largest = max(self.largest, other.largest)
        self.latencies.join(other.latencies)


class Announced(Fold):
    """What one session has announced so far."""

    def __init__(self) -> None:
        self.client: Peer | None = None
        self.server: Peer | None = None
        """The latest statement of each side about itself."""
        self.extensions = Declarations()
        """The extensions that each side declared in any message."""
        self.listings: dict[str, PagedListing] = {}
        """The listings of tools, prompts, resources and resourceTemplates, by kind."""
        self.tools: dict[str, ToolUse] = {}
        """Tools by name, in the order of their first mention; tools beyond the limit TOOLS share the name OTHERS."""
        self.tool_pages = array("I")
        """The line numbers of all pages of tools."""
        self._page: tuple[int, list[str]] = (0, [])  # the line number of the latest page of tools, and the names on it

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        if isinstance(event, LocatedFinding):
            if isinstance(event.event, Message):
                self._find(event.finding, event.event)
        elif isinstance(event, Message):
            self._add_message(event)

    def _add_message(self, message: Message) -> None:
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

    def _find(self, finding: Finding, message: Message) -> None:
        """Count a finding about a message that was added."""
        method, name = message.method, message.name
        if method == CALL and name:
            self._tool(name).found += 1
        elif method == "tools/list" and finding.frame == self._page[0]:
            within = steps_of(finding.pointer)
            if within[:2] == ("result", "tools") and len(within) > 2 and int(within[2]) < len(self._page[1]):
                self._tool(self._page[1][int(within[2])]).found += 1

    def is_current(self, tool: ToolUse) -> bool:
        """Return whether a tool is in the newest listing."""
        listing = self.listings.get("tools")
        return listing is not None and tool.listed >= listing.first

    def _add_page(self, message: Message) -> None:
        """Evaluate the response to a list request."""
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
                if tool.name == OTHERS:  # it has the sums over the newest listing
                    known = self.is_current(tool)
                    tool.size, tool.context = known * tool.size + size, known * tool.context + context
                else:
                    tool.size, tool.context, tool.fingerprint = size, context, fingerprint(entry)
                tool.listed = n

    def _add_call(self, message: Message) -> None:
        """Evaluate a call or its response: most rows are one of these, so this has to be fast."""
        exchange = message.exchange
        name = message.name or ""
        tool = self.tools.get(name) or self._tool(name)
        if isinstance(message.body, Request):
            tool.calls += 1
            tool.called = tool.called or message.n
            given = member(message.body.params, "arguments")
            tool.arguments += (
                message.frame.size if message.frame.omitted else 0 if given is None else compact_size(given)
            )
        elif exchange and exchange.latency is not None:
            tool.errors += exchange.status in ("error", "tool-error")
            tool.latencies.add(abs(exchange.latency))  # a capture may be forged, with negative latencies
            if isinstance(message.body, Result):
                result = message.body.result
                size = message.frame.size if message.frame.omitted else compact_size(result)
                text = size - encoded_size(result)
                tool.results += size
                tool.text += text
                tool.answers += 1
                tool.largest = max(tool.largest, text)

    def _add_peer(self, message: Message) -> None:
        """Evaluate what a message states about one side, if it is more complete than what is known."""
        told = statement(message)
        if told is None:
            return
        if told.side == "client" and (told.complete or self.client is None or self.client.revision != told.revision):
            self.client = peer(told)
        elif told.side == "server" and (told.complete or self.server is None):
            self.server = peer(told)

    def _tool(self, name: str) -> ToolUse:
        """Return the statistics of the tool with that name; create them if it is new."""
        full = len(self.tools) >= TOOLS
        name = name[:_NAME]
        tool = self.tools.get(OTHERS if full and name not in self.tools else name)
        if tool is None:
            tool = ToolUse(OTHERS if full else name)
            self.tools[tool.name] = tool
        return tool


def peer(told: Statement) -> Peer:
    """Return what one side states about itself; values with a wrong shape are left empty."""
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
    """Tools of several servers that a model can confuse."""

    tools: tuple[tuple[str, str], ...]
    """The server and the name of each tool."""
    identical: bool
    """Whether description and inputSchema are equal; otherwise only the names are."""


def duplicates(servers: Iterable[tuple[str, Iterable[ToolUse]]]) -> Iterator[Duplicate]:
    """Yield the listed tools that share a name or a definition; `servers` has the unique name and the tools of each."""
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
    """Return a name from a peer, shortened; empty if it is not a string."""
    return value[:_NAME] if isinstance(value, str) else ""
