"""A capture compared with a lock: what each session offers, message by message.

The theory. A session belongs to the entry of the lock with the name of its server. If two entries are the same program
under different names (`--name`), it belongs to the one with the name of the capture. An entry is compared when it is
listed, so a change in the middle of a session is found at its frame. An entry counts as removed only after a complete
listing. What a session never lists is not compared, which is reported at its end.

Most sessions list the same as the one before, so the result for the last definition of each name is cached.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpspy.contract.changes import LockChange, added, changed, removed, told_changed, version_change
from mcpspy.contract.clean import clean
from mcpspy.contract.lock import NOUNS, TOLD, Lock, LockedServer, Offered, OfferedPage, entry_of
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import Statement
from mcpspy.conversation.wording import same
from mcpspy.json_values import member, pointer
from mcpspy.rules import RULES, LocatedFinding
from mcpspy.rules.rule import Fault
from mcpspy.wire.jsonrpc import Result

MOST = 10_000
"""The number of sessions of a capture that are compared."""


@dataclass(slots=True)
class _Held:
    """One session and what is known about it."""

    offered: Offered = field(default_factory=Offered)
    first: Message | None = None
    """The message that introduces the server, or the first page of a listing."""
    locked: LockedServer | None = None
    unknown: bool = False
    """Whether it was reported that the lock does not have this server."""


class LockCheck:
    """Compares one capture with a lock. Call `add` for each message, then `end`."""

    def __init__(self, lock: Lock, name: str) -> None:
        """`name` is the name of the server in the header of the capture."""
        self._lock = lock
        self._name = name
        self._sessions: dict[Session, _Held] = {}
        self._full = False
        self._last: dict[tuple[int, str, str], tuple[dict[str, Any], str, list[LockChange]]] = {}

    def add(self, message: Message) -> Iterator[LocatedFinding]:
        """Compare the next message. Yield each finding with its message."""
        if message.sender != "server":
            return
        held = self._sessions.get(message.session)
        if held is None:
            if len(self._sessions) >= MOST:
                yield from self._too_many(message)
                return
            held = self._sessions[message.session] = _Held()
        told = held.offered.add(message)
        if told is None:
            return
        held.first = held.first or message
        if held.locked is None or isinstance(told, Statement):
            held.locked = self._entry(held.offered)
        if held.locked is None:
            if not held.unknown:
                held.unknown = True
                yield self._unknown(held.offered, message)
            return
        if isinstance(told, Statement):
            now = {name: clean(held.offered.told[name]) for name in TOLD if name in held.offered.told}
            for change in told_changed(held.locked.told, now):
                yield _finding(change, message, ("result", *change.path))
        else:
            yield from self._page(held.offered, held.locked, told, message)

    def end(self) -> Iterator[LocatedFinding]:
        """Report what could not be compared because a session does not list it."""
        for held in self._sessions.values():
            if held.locked and held.first:
                missing = [kind for kind, known in held.locked.listings.items() if known]
                missing = [kind for kind in missing if held.offered.whole(kind) is None]
                if missing:
                    nouns = ", ".join(f"{NOUNS[kind]}s" for kind in missing)
                    sentence = f"not compared with the lock: {nouns}; this session does not list all of them"
                    yield _finding(LockChange("lock/not-listed", "info", sentence), held.first, ("result",))

    def _too_many(self, message: Message) -> Iterator[LocatedFinding]:
        if not self._full:
            self._full = True
            sentence = f"not compared with the lock: this and all later sessions; only the first {MOST:,} are compared"
            yield _finding(LockChange("lock/not-listed", "error", sentence), message, ("result",))

    def _page(
        self, offered: Offered, locked: LockedServer, page: OfferedPage, message: Message
    ) -> Iterator[LocatedFinding]:
        """Yield what a page of a listing adds to the lock, or has changed."""
        known = locked.listings.get(page.kind)
        if known is None:  # the lock does not know this listing
            return
        if page.unread:
            sentence = (
                f"not compared with the lock: a list of {NOUNS[page.kind]}s that is too long to read, or not an array"
            )
            yield _finding(LockChange("lock/not-listed", "error", sentence), message, ("result", page.kind))
            return
        version = version_change(locked.told, offered.told)
        for place, name, definition in page.entries:
            for change in self._changes(locked, page.kind, name, definition, version):
                yield _finding(change, message, ("result", page.kind, place, *change.path))
        if page.whole:
            listed = offered.listings[page.kind].entries
            for name in known:
                if name not in listed:
                    yield _finding(removed(page.kind, name), message, ("result", page.kind))

    def _changes(
        self, locked: LockedServer, kind: str, name: str, definition: dict[str, Any], version: str
    ) -> list[LockChange]:
        """Return the changes of an entry, or that the lock does not have it."""
        key = (id(locked), kind, name)
        last = self._last.get(key)
        if last is None or last[1] != version or not same(last[0], definition):
            known, now = locked.listings[kind].get(name), clean(definition)
            found = [added(kind, name, now)] if known is None else list(changed(kind, name, known, now, version))
            last = self._last[key] = (definition, version, found)
        return last[2]

    def _entry(self, offered: Offered) -> LockedServer | None:
        """Return the entry of the lock that a session belongs to."""
        if offered.name is None and len(self._lock) == 1:
            return next(iter(self._lock.values()))
        key = entry_of(self._lock, offered.name, self._name) if offered.name else self._name
        return self._lock.get(key) if key else None

    def _unknown(self, offered: Offered, message: Message) -> LocatedFinding:
        name = offered.name or self._name
        known = ", ".join(list(self._lock)[:10]) or "no server"
        sentence = f"server {name[:100]} is not in the lock, which has {known[:300]}"
        where = ("result", "serverInfo", "name") if member(message.body.value, "result", "serverInfo") else ("result",)
        return _finding(LockChange("lock/unknown-server", "error", sentence), message, where)


def _finding(change: LockChange, message: Message, path: tuple[str | int, ...]) -> LocatedFinding:
    where = path if isinstance(message.body, Result) and message.frame.omitted is None else ()
    fault = Fault(change.sentence, pointer(*where), blame="server", severity=change.severity)
    return LocatedFinding(RULES[change.rule].finding(fault, message), message)
