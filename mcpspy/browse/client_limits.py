"""What chosen clients refuse in the tools of a session: the findings of the `compat` rules (P-01).

These rules look only at listings of tools, and at results that are large or have images. A person chooses clients while
a session is open. So the fold notes the lines of these: frames and requests, the handshake, and their channels. When
clients are chosen, a separate judge reads only those lines again. There are few of them, however long the capture is.
"""

import time
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.capture.index import Index
from mcpspy.capture.records import Open
from mcpspy.conversation.model import HttpUnit, Message
from mcpspy.conversation.offers import HANDSHAKES, page
from mcpspy.json_values import member
from mcpspy.rules import Finding, LocatedFinding
from mcpspy.rules.content import MARK
from mcpspy.rules.judge import JudgedEvents
from mcpspy.wire.jsonrpc import Result

GROUP = "compat/"
"""The prefix of the ids of these rules."""
_LISTING = "tools/list"
_METHODS = (*HANDSHAKES, _LISTING)
_LARGE = 20_000
"""Bytes of a frame; the rules about the sizes of results look only at larger ones."""
_STDIO = ("stdin", "stdout")


class Refusals:
    """What the chosen clients refuse. Call `note` during the fold, `choose` to set clients, then `read`."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.clients: frozenset[str] = frozenset()
        """The chosen clients."""
        self.tools: dict[str, list[Finding]] = {}
        """Tool name -> what is refused about the tool as it was listed last."""
        self.listing: list[Finding] = []
        """What is refused about the listing as a whole."""
        self._lines = array("I")  # the lines that belong to a listing
        self._noted: set[int] = set()  # the same, as a set
        self._read = 0
        self._events = JudgedEvents()
        self._definitions: dict[str, Any] = {}  # by tool name
        self._counted = 0  # tools of the listing, in the pages so far
        self._wholes: dict[int, list[Finding]] = {}  # number of tools in a listing -> what is refused about its size

    @property
    def waiting(self) -> bool:
        """Whether there is more to read."""
        return bool(self.clients) and self._read < len(self._lines)

    def note(self, seen: Open | Message | HttpUnit) -> None:
        """Take a channel, a message or a unit of HTTP, and keep its line if a listing may need it."""
        if isinstance(seen, Open):
            if seen.role in _STDIO:
                self._keep(seen.n)
        elif _matters(seen):
            if isinstance(seen, Message) and seen.exchange:
                self._keep_with_channels(seen.exchange.request)
            self._keep_with_channels(seen)

    def _keep_with_channels(self, seen: Message | HttpUnit) -> None:
        channel = seen.http
        for opened in (channel.request.opened if channel and channel.request else None, channel and channel.opened):
            if opened:
                self._keep(opened.n)
        self._keep(seen.n)

    def _keep(self, line: int) -> None:
        if line not in self._noted:
            self._noted.add(line)
            self._lines.append(line)

    def choose(self, clients: Iterable[str]) -> None:
        """Start again with these clients."""
        self.clients = frozenset(clients)
        self.tools, self.listing = {}, []
        self._read, self._events = 0, JudgedEvents(clients=self.clients)
        self._definitions, self._counted, self._wholes = {}, 0, {}

    def read(self, deadline: float) -> Iterator[Finding]:
        """Read on until a `perf_counter` time, and yield what the clients refuse."""
        while self.waiting and time.perf_counter() < deadline:
            record = self._index.record(self._lines[self._read])
            self._read += 1
            for event in self._events.feed(record):
                if isinstance(event, LocatedFinding):
                    if event.finding.rule.startswith(GROUP):
                        if isinstance(event.event, Message) and event.event.method == _LISTING:
                            self._add(event.finding)
                        yield event.finding
                elif isinstance(event, Message) and event.method == _LISTING:
                    self._listed(event)

    def _listed(self, message: Message) -> None:
        """Forget what was refused about tools that have changed; new findings about them follow."""
        found = page(message)
        if found is None:
            return
        self._counted = len(found.entries or ()) + (0 if found.first else self._counted)
        if found.last:  # the same number again is not a new finding
            self.listing = self._wholes.setdefault(self._counted, [])
        for tool in found.entries or ():
            name = member(tool, "name")
            if isinstance(name, str) and self._definitions.get(name) != tool:
                self._definitions[name] = tool
                self.tools.pop(name, None)

    def _add(self, finding: Finding) -> None:
        _, *names = finding.concerns
        if names and names[-1] is not None:  # a name may be empty
            known = self.tools.get(names[-1], [])
            self.tools[names[-1]] = [*(it for it in known if it.frame == finding.frame), finding]
        else:
            self.listing.append(finding)


def _matters(seen: Message | HttpUnit) -> bool:
    """Return whether a message or unit of HTTP may be refused, belongs to a listing, or identifies a session.

    In HTTP+SSE, an event has the URL for the client's POSTs.
    """
    if isinstance(seen, Message):
        frame = seen.frame
        refusable = type(seen.body) is Result and (frame.size > _LARGE or MARK in frame.raw)
        return (refusable or seen.method in _METHODS) and not frame.omitted
    return seen.kind == "event" and seen.http.legacy
