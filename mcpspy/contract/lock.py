"""A lock file: what servers offered at one time, to be committed and compared with later (`docs/lock.md`).

What a server offers is collected message by message: its description of itself, and its listings. A listing is complete
when its pages were seen from the first to the last, each requested with the cursor of the page before it. For any other
listing, it is unknown what is missing. A server that introduces itself without declaring a capability offers nothing of
that kind.

The file contains nothing that changes while the server stays the same: no times, no paths, no version of mcpspy.
Members and names are sorted, and each is on a line of its own, so a diff shows only what a server changed. The hashes
show which definitions are equal, and that nobody edited one by hand. A listing that is missing from the file is
unknown. An empty listing is known to be empty. `mcpspy.contract.clean` takes secrets out of the definitions.
"""

import json
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpspy.capture.reader import Capture
from mcpspy.contract.clean import clean, digest
from mcpspy.conversation.conversation import events_of
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import LISTED, Statement, page, statement
from mcpspy.cost import context_size, tokens
from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.json_values import member
from mcpspy.output_file import output_file
from mcpspy.replay.differences import LISTINGS
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import Error, Request, decode

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


FORMAT = 1
"""The number of the format. A file with a larger number was written by a later mcpspy."""
LARGEST = 64 << 20
"""The size limit of a lock file, in bytes."""
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # characters that hide, join or reverse text in a diff


class EditedLock(UsageError):
    """The hashes in a lock file do not match its content."""

    sound: "Lock"
    """The servers whose hashes match. Set by `read`."""


@dataclass(frozen=True, slots=True)
class LockedServer:
    """One server, without secrets (`mcpspy.contract.clean`)."""

    told: dict[str, Any] = field(default_factory=dict)
    """protocolVersion, serverInfo, capabilities, instructions, as far as the server sends them."""
    listings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By kind, as far as they are known: the definitions, by name."""

    @property
    def cost(self) -> int:
        """The estimated number of tokens of all tool definitions."""
        return sum(tokens(context_size(tool)) for tool in self.listings.get("tools", {}).values())

    def updated(self, newer: "LockedServer") -> "LockedServer":
        """Return what a newer look shows. What it does not show stays as it was."""
        return LockedServer(newer.told or self.told, self.listings | newer.listings)


Lock = dict[str, LockedServer]
"""The servers of a lock file by name."""


def entry_of(lock: Mapping[str, LockedServer], name: str | None, capture: str) -> str | None:
    """Return the name in the file for a server that calls itself `name`, or None if it is not there.

    If several entries are that server (`mcpspy lock --name`), it is the one with the name of the capture.
    """
    own = [key for key, it in lock.items() if name in (key, member(it.told.get("serverInfo"), "name"))] if name else []
    if capture in own or not own:
        return capture if own else None
    return name if name in own else own[0]


def locked(offered: Offered) -> LockedServer:
    """Return what a session has shown, as far as it is complete."""
    told = {name: clean(offered.told[name]) for name in TOLD if name in offered.told}
    listings = {}
    for kind in KINDS:
        entries = offered.whole(kind)
        if entries is not None:
            listings[kind] = {name: clean(entry) for name, entry in entries.items()}
    return LockedServer(told, listings)


def as_text(lock: Mapping[str, LockedServer]) -> str:
    """Return the content of the file."""
    servers = {name: _server_fields(server) for name, server in lock.items()}
    text = json.dumps({"format": FORMAT, "servers": servers}, sort_keys=True, indent=2, ensure_ascii=False)
    return (text if text.isascii() else "".join(map(_escaped, text))) + "\n"


def write(path: str, lock: Mapping[str, LockedServer]) -> None:
    """Write a lock file completely, or not at all. Raises UsageError."""
    path = os.path.realpath(path) if os.path.islink(path) else path
    mode = os.stat(path).st_mode & 0o777 if os.path.isfile(path) else 0o666 & ~_umask()
    with output_file(path, replace=True) as file:
        file.write(as_text(lock).encode())
    os.chmod(path, mode)  # others may read it, unlike a capture


def read(path: str) -> Lock:
    """Read the servers in a lock file. Raises UsageError that names the file and what is wrong with it."""
    try:
        raw = read_foreign(path, LARGEST, named=True)
    except OSError as error:
        raise UsageError(f"cannot read the lock file {path}: {error.strerror}") from error
    try:
        content = decode(raw)
    except (ValueError, RecursionError) as error:
        hint = "; merge conflicts in it have to be resolved" if b"\n<<<<<<< " in raw else ""
        raise UsageError(f"{path} is not a lock file: it is not JSON{hint}") from error
    number, servers = member(content, "format"), member(content, "servers")
    if type(number) is not int or not isinstance(servers, dict):
        raise UsageError(f"{path} is not a lock file: it has no 'format' and 'servers'; 'mcpspy lock' writes one")
    if number > FORMAT:
        raise UsageError(f"{path} has format {number}, written by a later mcpspy; this one reads {FORMAT}")
    found: Lock = {}
    edited: EditedLock | None = None
    for name, fields in servers.items():
        try:
            found[name] = _server(f"{path}, server {printable(name, 60)!r}", fields)
        except EditedLock as error:
            edited = edited or error
    if edited:
        edited.sound = found
        raise edited
    return found


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def _server_fields(server: LockedServer) -> dict[str, Any]:
    fields: dict[str, Any] = dict(server.told)
    for kind, entries in server.listings.items():
        fields[kind] = {name: _entry_fields(kind, entry) for name, entry in entries.items()}
    if "tools" in server.listings:
        fields["tokens"] = server.cost
    return fields | {"hash": digest([server.told, server.listings])}


def _entry_fields(kind: str, entry: Any) -> dict[str, Any]:
    fields = {"definition": entry, "hash": digest(entry)}
    return fields | ({"tokens": tokens(context_size(entry))} if kind == "tools" else {})


def _server(where: str, fields: Any) -> LockedServer:
    """Read a server of the file. Its hashes must match its content."""
    if not isinstance(fields, dict):
        raise UsageError(f"{where} is not an object")
    listings: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        entries = fields.get(kind)
        if entries is None:
            continue
        if not isinstance(entries, dict):
            raise UsageError(f"{where}: {kind} is not an object")
        for name, entry in entries.items():
            definition = clean(member(entry, "definition"))
            if not isinstance(definition, dict) or entry.get("hash") != digest(definition):
                raise _edited(f"{where}, {NOUNS[kind]} {printable(name, 60)!r}")
            listings.setdefault(kind, {})[name] = definition
        listings.setdefault(kind, {})
    server = LockedServer({name: clean(fields[name]) for name in TOLD if name in fields}, listings)
    if fields.get("hash") != digest([server.told, server.listings]):
        raise _edited(where)
    return server


def _edited(where: str) -> EditedLock:
    return EditedLock(f"{where}: the hash does not match the content; 'mcpspy lock --update' writes the file again")


def _escaped(character: str) -> str:
    """Return a character of the file, as an escape if it would be invisible in a diff."""
    if character.isascii() or unicodedata.category(character) not in _UNSAFE:
        return character
    code = ord(character)
    if code > 0xFFFF:  # as two surrogates
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
