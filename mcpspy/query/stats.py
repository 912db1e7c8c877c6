"""Statistics of servers, their tools and their clients, over any number of captures.

Each capture is read once. A server is identified by the name in the header of its captures, a tool by its server and
its name, a client by the name and version that it gives itself. Memory grows with their number, not with the number of
messages: latencies are counted (`mcpspy.overview.Latencies`), and only the latest sessions are remembered.

A client has given up a request if it cancelled the request, or closed the connection before the answer. That is what a
time-out of a client looks like, and the time that it waited is the length of the time-out.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcpspy.capture.reader import Capture
from mcpspy.conversation import bounds
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import ENDLESS, Exchange, Message, Session
from mcpspy.conversation.offers import statement
from mcpspy.conversation.outcomes import Outcome, OutcomeTable
from mcpspy.conversation.times import WAITED, Times
from mcpspy.overview import Announced, Latencies, Peer, ToolUse, peer
from mcpspy.rules import LocatedFinding
from mcpspy.rules.judge import Fold, JudgedEvent, judged_events
from mcpspy.wire.jsonrpc import Request

CLIENTS = 1000
"""The number of clients that are distinguished."""
OTHER_CLIENTS = "other clients"
_KINDS = 200  # revisions, and capabilities, of one client that are distinguished


@dataclass(slots=True)
class ServerUse:
    """One server, by the name in the header of its captures."""

    name: str
    captures: int = 0
    requests: int = 0
    """All requests that its clients sent to it, including tool calls."""
    errors: int = 0
    """Requests of its clients that were answered with an error or a tool error."""
    failed: int = 0
    """Requests in its sessions that have failed, of either side, and HTTP requests that carry none."""
    found: int = 0
    """The number of findings in its sessions, about either side."""
    latencies: Latencies = field(default_factory=Latencies)
    """The latencies of all these requests."""
    times: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAITED, 0))
    """The nanoseconds for which each side was waited for, as in `conversation.times`."""
    tools: dict[str, ToolUse] = field(default_factory=dict)
    """The tools, by name."""


@dataclass(slots=True)
class ClientUse:
    """One client, by the name and version that it gives itself. Both are empty if it gives none."""

    name: str
    version: str
    sessions: int = 0
    revisions: dict[str, int] = field(default_factory=dict)
    """By requested revision: the number of sessions."""
    capabilities: dict[str, int] = field(default_factory=dict)
    """By capability, with its options: the number of sessions."""
    requests: int = 0
    waits: Latencies = field(default_factory=Latencies)
    """How long it waited before it gave up requests, if that is known."""
    given_up: dict[str, int] = field(default_factory=dict)
    """By method: the number of requests that it gave up."""


class Stats:
    """The sums over captures. Call `add` for each capture."""

    def __init__(self) -> None:
        self.servers: dict[str, ServerUse] = {}
        self.clients: dict[tuple[str, str], ClientUse] = {}

    def add(self, capture: Capture, read: Callable[[int], None] | None = None) -> None:
        """Read one more capture. `read` is called with the number of bytes of each chunk. Raises CaptureError."""
        name = capture.header.name
        server = self.servers.setdefault(name, ServerUse(name))
        live = capture.live
        deque(judged_events(capture.records(read=read), _CaptureFold(server, self), live=live), 0)

    def client(self, name: str, version: str) -> ClientUse:
        """Return the client of that name and version. Beyond `CLIENTS`, all share one entry."""
        if (name, version) not in self.clients and len(self.clients) >= CLIENTS:
            name, version = OTHER_CLIENTS, ""
        return self.clients.setdefault((name, version), ClientUse(name, version))


class _CaptureFold(Fold):
    """The fold of one capture, which adds to its server and to the clients."""

    def __init__(self, server: ServerUse, stats: Stats) -> None:
        self._server, self._stats = server, stats
        self._announced, self._times, self._outcomes = Announced(), Times(), OutcomeTable()
        self._clients: OrderedDict[Session, ClientUse] = OrderedDict()
        self._gone: set[int] = set()  # ordinals of requests that were cancelled before their answer

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        self._announced.add(event)
        if isinstance(event, LocatedFinding):
            self._server.found += 1
            return
        self._outcomes.add(event)
        if not isinstance(event, GateAct | Outcome):
            self._times.add(event)
            if isinstance(event, Message):
                self._count(event)

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:  # noqa: ARG002 (the end of a fold)
        """Finish."""
        for exchange in pending:
            if (exchange.left is not None or exchange.cancelled) and exchange.ordinal not in self._gone:
                self._give_up(exchange, exchange.left)
        server = self._server
        server.captures += 1
        server.failed += self._outcomes.failed
        for whom, spent in self._times.spent.items():
            server.times[whom] += spent
        for tool in self._announced.tools.values():
            server.tools.setdefault(tool.name, ToolUse(tool.name)).join(tool)

    def _count(self, message: Message) -> None:
        exchange = message.exchange
        if isinstance(message.body, Request):
            if message.side == "client":
                client = self._client(message)
                client.requests += 1
                self._server.requests += 1
        elif message.cancels and message.side == "client":
            self._give_up(message.cancels, message.t)
        elif exchange and exchange.request.side == "client" and exchange.latency is not None:
            self._server.errors += exchange.status in ("error", "tool-error")
            self._server.latencies.add(abs(exchange.latency))

    def _client(self, message: Message) -> ClientUse:
        """Return the client that sends a request. Its introduction is counted once per session."""
        session = message.session
        known = self._clients.get(session)
        told = statement(message)
        if known is None or (told is not None and told.complete):
            said = peer(told) if told else None
            known = self._stats.client(said.name, said.version) if said else known or self._stats.client("", "")
            if self._clients.get(session) is not known:
                self._introduce(known, said)
        self._clients[session] = known
        self._clients.move_to_end(session)
        if len(self._clients) > bounds.RESTING:
            self._clients.popitem(last=False)
        return known

    def _introduce(self, client: ClientUse, said: Peer | None) -> None:
        client.sessions += 1
        if said is None:
            return
        for table, names in ((client.revisions, [said.revision]), (client.capabilities, said.capabilities)):
            for name in names:
                if name and (name in table or len(table) < _KINDS):
                    table[name] = table.get(name, 0) + 1

    def _give_up(self, exchange: Exchange, t: int | None) -> None:
        """Count a request that a client gave up, at `t` if known. The end of a subscription does not count."""
        if exchange.method == ENDLESS or exchange.request.side != "client":
            return
        self._gone.add(exchange.ordinal)
        client = self._clients.get(exchange.request.session) or self._stats.client("", "")
        if t is not None:
            client.waits.add(max(t - exchange.request.t, 0))
        if exchange.method in client.given_up or len(client.given_up) < _KINDS:
            client.given_up[exchange.method] = client.given_up.get(exchange.method, 0) + 1
