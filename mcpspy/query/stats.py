"""What servers, their tools and their clients did, over any number of captures.

Each capture is read once. A server is known by the name in the header of its captures, a tool by its server and its
name, a client by the name and version that it gives itself. Memory grows with the number of those, and not with the
number of messages: latencies are counted (`mcpspy.overview.Latencies`), and of sessions the latest are remembered.

A client has given up a request if it has cancelled it, or has closed the connection before the answer: that is what a
time-out of a client looks like, and how long it had waited is the time-out that it has.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Record
from mcpspy.conversation.model import ENDLESS, Exchange, Judged, Message, Session
from mcpspy.conversation.offers import statement
from mcpspy.conversation.recent import MOST
from mcpspy.conversation.times import WAITED, Times
from mcpspy.overview import Announced, Latencies, Peer, ToolUse, peer
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from mcpspy.wire.jsonrpc import Request

CLIENTS = 1000
"""Clients that are distinguished."""
OTHER_CLIENTS = "other clients"
_KINDS = 200  # revisions, and capabilities, of one client that are distinguished


@dataclass(slots=True)
class ServerUse:
    """One server, by the name in the header of its captures."""

    name: str
    captures: int = 0
    requests: int = 0
    """All requests that its clients sent to it, calls of tools among them."""
    errors: int = 0
    """Requests of its clients that were answered by an error or a tool's error."""
    found: int = 0
    """How often something was found in its sessions, on either side."""
    latencies: Latencies = field(default_factory=Latencies)
    """Those of all these requests."""
    times: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAITED, 0))
    """For how many nanoseconds each side was waited for, as of `conversation.times`."""
    tools: dict[str, ToolUse] = field(default_factory=dict)
    """By name."""


@dataclass(slots=True)
class ClientUse:
    """One client, by the name and version that it gives itself; empty where it gives none."""

    name: str
    version: str
    sessions: int = 0
    revisions: dict[str, int] = field(default_factory=dict)
    """Of each revision that it asked for: in how many sessions."""
    capabilities: dict[str, int] = field(default_factory=dict)
    """Of each capability, with its options: in how many sessions."""
    requests: int = 0
    waits: Latencies = field(default_factory=Latencies)
    """How long it had waited for the answers to the requests that it gave up, where that is known."""
    given_up: dict[str, int] = field(default_factory=dict)
    """By method: how many requests it gave up."""


class Stats:
    """The sums over captures; `add` each."""

    def __init__(self) -> None:
        self.servers: dict[str, ServerUse] = {}
        self.clients: dict[tuple[str, str], ClientUse] = {}

    def add(self, capture: Capture, read: Callable[[int], None] | None = None) -> None:
        """Read one more capture; `read` is called with the number of bytes of each chunk. Raises CaptureError."""
        name = capture.header.name
        server = self.servers.setdefault(name, ServerUse(name))
        live = capture.live
        fold = _CaptureFold(server, self)
        for record in capture.records(read=read):
            fold.feed(record)
        fold.end(live=live)

    def client(self, name: str, version: str) -> ClientUse:
        """The client of that name and version; beyond a bound all are one."""
        if (name, version) not in self.clients and len(self.clients) >= CLIENTS:
            name, version = OTHER_CLIENTS, ""
        return self.clients.setdefault((name, version), ClientUse(name, version))


class _CaptureFold:
    """One capture, which adds to its server and to the clients."""

    def __init__(self, server: ServerUse, stats: Stats) -> None:
        self._server, self._stats = server, stats
        self._announced, self._times = Announced(), Times()
        self._found: list[tuple[Finding, str | None, str | None]] = []  # whose message has not come out yet
        self._judge = Judge(noted=self._note)
        self._clients: OrderedDict[Session, ClientUse] = OrderedDict()
        self._gone: set[int] = set()  # ordinals of requests that were cancelled and had no answer until then

    def feed(self, record: Record) -> None:
        """Take the next record."""
        for event in self._judge.feed(record):
            if not isinstance(event, Finding):
                self._times.add(event)
            if isinstance(event, Message):
                self._announced.add(event)
                self._count(event)
        self._count_findings()

    def end(self, *, live: bool) -> None:
        """There are no more records."""
        if not live:
            for _ in self._judge.end():
                pass
        self._count_findings()
        for exchange in list(self._judge.pending()):
            if (exchange.left is not None or exchange.cancelled) and exchange.ordinal not in self._gone:
                self._give_up(exchange, exchange.left)
        server = self._server
        server.captures += 1
        for whom, spent in self._times.spent.items():
            server.times[whom] += spent
        for tool in self._announced.tools.values():
            server.tools.setdefault(tool.name, ToolUse(tool.name)).join(tool)

    def _note(self, finding: Finding, message: Judged) -> None:
        subject = (message.method, message.name) if isinstance(message, Message) else (None, None)
        self._found.append((finding, *subject))

    def _count_findings(self) -> None:
        self._server.found += len(self._found)
        for found in self._found:
            self._announced.find(*found)
        self._found.clear()

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
        """The client that sends a request; its introduction is counted once for each session."""
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
        if len(self._clients) > MOST:
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
        """A client gave up a request, at a time that may be unknown; of a subscription that is no more than its end."""
        if exchange.method == ENDLESS or exchange.request.side != "client":
            return
        self._gone.add(exchange.ordinal)
        client = self._clients.get(exchange.request.session) or self._stats.client("", "")
        if t is not None:
            client.waits.add(max(t - exchange.request.t, 0))
        if exchange.method in client.given_up or len(client.given_up) < _KINDS:
            client.given_up[exchange.method] = client.given_up.get(exchange.method, 0) + 1
