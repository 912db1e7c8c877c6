"""What a server offers in one session, message by message: its description of itself, and its listings.

The theory. A listing is complete when its pages were seen from the first to the last, each requested with the cursor of
the page before it. For any other listing, it is unknown what is missing. A server that introduces itself without
declaring a capability offers nothing of that kind.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcpspy.capture.reader import Capture
from mcpspy.contract.clean import clean
from mcpspy.conversation.conversation import events_of
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import LISTED, Statement, page, statement
from mcpspy.json_values import member
from mcpspy.replay.differences import LISTINGS
from mcpspy.wire.jsonrpc import Error, Request

KINDS = tuple(LISTINGS)
"""tools, resources, resourceTemplates, prompts."""
NOUNS = {"tools": "tool", "resources": "resource", "resourceTemplates": "resource template", "prompts": "prompt"}
"""The name of an entry of each kind."""
TOLD = ("protocolVersion", "serverInfo", "capabilities", "instructions")
"""The members of a server's description of itself."""
_CAPABILITY = {"resourceTemplates": "resources"}
_NO_METHOD = -32601
_MOST = 1 << 16
"""Entries of one listing that are kept. A listing with more is never complete."""


@dataclass(frozen=True, slots=True)
class OfferedPage:
    """One page of a listing."""

    kind: str
    entries: tuple[tuple[int, str, dict[str, Any]], ...]
    """Index on the page, name and definition of each entry."""
    whole: bool
    """Whether it is the last page of a listing whose other pages were all seen."""
    unread: bool = False
    """It is too long to be decoded, or has no array of entries. Its client may have read it."""


@dataclass(slots=True)
class OfferedListing:
    """The latest listing of one kind."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    whole: bool = False
    cursor: Any = None
    """The cursor with which the next page must be requested."""
    broken: bool = False
    """Whether a page is missing."""
    names: Counter[str] = field(default_factory=Counter)
    """How often each name was listed."""


@dataclass(slots=True)
class Offered:
    """What one session has shown so far. Call `add` for each message."""

    told: dict[str, Any] = field(default_factory=dict)
    """By the names in `TOLD`: the values as received."""
    introduction: Message | None = None
    """The last message that introduces the server."""
    listings: dict[str, OfferedListing] = field(default_factory=dict)

    def add(self, message: Message) -> Statement | OfferedPage | None:
        """Read the next message. Return the statement of the server or the page in it, if there is one."""
        if message.sender != "server" or (message.act and message.act.made):
            return None
        if message.method in LISTED:
            self._tell(message)
            return self._unserved(message) or self._list(message)
        return self._tell(message)

    @property
    def name(self) -> str | None:
        """The name that the server gives itself, without secrets: it is a name in the lock file too."""
        found = member(self.told.get("serverInfo"), "name")
        return clean(found) if isinstance(found, str) and found else None

    def whole(self, kind: str) -> dict[str, dict[str, Any]] | None:
        """Return the entries of a kind, or None if it is unknown whether these are all."""
        listing = self.listings.get(kind)
        if listing:
            return listing.entries if listing.whole else None
        capabilities = self.told.get("capabilities")
        declares = isinstance(capabilities, dict) and _CAPABILITY.get(kind, kind) in capabilities
        return {} if isinstance(capabilities, dict) and not declares else None

    def _tell(self, message: Message) -> Statement | None:
        told = statement(message)
        if told is None or told.side != "server" or not (told.complete or told.identity or "serverInfo" in self.told):
            return None
        values = (told.revision, told.identity, told.capabilities, told.instructions)
        if told.complete:
            self.introduction = message
            self.told = {name: value for name, value in zip(TOLD, values, strict=True) if value is not None}
            return told
        for name, value in zip(TOLD[:2], values, strict=False):
            if value is not None:
                self.told.setdefault(name, value)
        return None

    def _unserved(self, message: Message) -> OfferedPage | None:
        """Return an empty page if the server lacks the method: servers may declare `resources` without templates."""
        kind = LISTED[message.method or ""]
        if not (isinstance(message.body, Error) and member(message.body.error, "code") == _NO_METHOD):
            return None
        self.listings[kind] = OfferedListing(whole=True)
        return OfferedPage(kind, (), whole=True)

    def _list(self, message: Message) -> OfferedPage | None:
        found = page(message)
        if message.exchange is None:
            return None
        if found is None:
            return self._unread(message) if message.exchange.status == "not-decoded" else None
        body = message.exchange.request.body
        cursor = member(body.params, "cursor") if isinstance(body, Request) else None
        listing = self.listings.get(found.kind)
        if listing is None or found.first:
            listing = self.listings[found.kind] = OfferedListing(broken=not found.first)
        elif cursor != listing.cursor or listing.whole:
            listing.broken = True
        entries = tuple(_named(found.kind, found.entries or [], listing.names))
        room = _MOST - len(listing.entries)
        listing.entries.update((name, definition) for _, name, definition in entries[:room])
        listing.cursor = member(message.body.value, "result", "nextCursor")
        listing.broken |= found.entries is None or len(entries) > room
        listing.whole = found.last and not listing.broken
        return OfferedPage(found.kind, entries, listing.whole, unread=found.entries is None)

    def _unread(self, message: Message) -> OfferedPage:
        kind = LISTED[message.method or ""]
        self.listings.setdefault(kind, OfferedListing()).broken = True
        self.listings[kind].whole = False
        return OfferedPage(kind, (), whole=False, unread=True)


def _named(kind: str, entries: list[Any], seen: Counter[str]) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the entries with a name, with their indices. The second entry with a name becomes `name (2)`.

    Names are cleaned of secrets (a URI can contain one), because they are written to the lock file too. `seen` is
    updated.
    """
    found = []
    for place, entry in enumerate(entries):
        name = member(entry, LISTINGS[kind])
        if isinstance(name, str):
            name = clean(name)
            seen[name] += 1
            while seen[name] > 1:
                name = f"{name} ({seen[name]})"
                seen[name] += 1
            found.append((place, name, entry))
    return found


def offers(capture: Capture, advance: Callable[[int], None] | None = None) -> list[Offered]:
    """Return what each session of a capture shows, in the order in which the sessions began.

    `advance` is called with each number of bytes that was read, for a progress bar.
    """
    sessions: dict[Session, Offered] = {}
    for event in events_of(capture.records(read=advance)):
        if isinstance(event, Message):
            sessions.setdefault(event.session, Offered()).add(event)
    return list(sessions.values())
