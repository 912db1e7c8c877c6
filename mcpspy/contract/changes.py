"""What a server changed since it was locked: each change with its rule, its severity and a sentence.

There are three kinds. After a breaking change, calls fail that were valid for the lock. An additive change offers more.
A change of wording leaves all schemas as they are, but may change what a model does. It is an error like a breaking
change, whatever version the server names. A change that neither binds a client nor is read by a model (icons, `_meta`,
the version) is reported as info. Both sides are cleaned (`mcpspy.contract.clean`). The texts in a sentence come from
the peer, so the code that prints a sentence must make it printable.

A capture is compared session by session and message by message. A session belongs to the entry of the lock with the
name of its server. If two entries are the same program under different names (`--name`), it belongs to the one with the
name of the capture. An entry is compared when it is listed, so a change in the middle of a session is found at its
frame. An entry counts as removed only after a complete listing. What a session never lists is not compared, which is
reported at its end. Most sessions list the same as the one before, so the result for the last definition of each name
is cached.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpspy.contract.clean import canonical, clean
from mcpspy.contract.lock import KINDS, NOUNS, TOLD, Lock, LockedServer, Offered, OfferedPage, entry_of
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import Statement
from mcpspy.conversation.wording import apart, reworded, same
from mcpspy.json_values import Path, member, pointer, steps_of
from mcpspy.replay.differences import ABSENT, Difference, differences
from mcpspy.replay.offers import Surface, changes
from mcpspy.rules import RULES, LocatedFinding
from mcpspy.rules.instructions import instructions_in
from mcpspy.rules.rule import Fault, Severity
from mcpspy.wire.jsonrpc import Result

_BINDING = ("inputSchema", "outputSchema", "arguments")
"""Members of a definition that calls must satisfy, or that promise what a call returns."""
_NAME = 100  # characters
_POINTER = 160  # characters


@dataclass(frozen=True, slots=True)
class LockChange:
    """One change."""

    rule: str
    severity: Severity
    sentence: str
    path: Path = ()
    """The path in the definition, or in the server's description of itself."""


def added(kind: str, name: str, definition: Any) -> LockChange:
    """Return the change for an entry that is not in the lock. An error if it contains instructions to a model."""
    sentence = f"additive: {_noun(kind, name)} is not in the lock"
    if not name.isascii():  # it may look like a name in the lock
        sentence += f" (its name is {json.dumps(name[:_NAME])})"
    for path, found in instructions_in(definition):
        return LockChange("lock/added", "error", f"{sentence}, and its {pointer(*path)[:_POINTER]}: {found.what}", path)
    return LockChange("lock/added", "warning", sentence)


def removed(kind: str, name: str) -> LockChange:
    """Return the change for an entry of the lock that a complete listing lacks."""
    return LockChange("lock/removed", "error", f"breaking: {_noun(kind, name)} is in the lock and no longer listed")


def changed(kind: str, name: str, old: Any, new: Any, version: str = "") -> Iterator[LockChange]:
    """Yield the changes of an entry. `version` describes the change of the server's version, if it is known."""
    if canonical(old) == canonical(new):  # in Python, 1 == True
        return
    what = _noun(kind, name)
    words = list(reworded(old, new))
    if words:
        told = apart(words[0].old, words[0].new)
        sentence = f"wording: {_places([it.path for it in words])} of {what} differs from the lock{version}"
        yield LockChange("security/definition-changed", "error", _against(sentence, *told), words[0].path)
    found = changes(Surface(listings={kind: {name: old}}), Surface(listings={kind: {name: new}}))
    reread = {tuple(map(str, it.path)) for it in words}
    breaking = [path for change in found for where in change.breaking if (path := steps_of(where)) not in reread]
    if breaking:
        sentence = f"breaking: {what} changed at {_places(breaking)}"
        yield LockChange("lock/changed", "error", _against(sentence, *_sides(old, new, breaking[0])), breaking[0])
    covered = reread | set(breaking)
    left = [it for it in differences(old, new) if not _within(it, covered)]
    binding = [it for it in left if it.path[:1] and it.path[0] in _BINDING]
    if kind == "prompts" and breaking:  # `breaking` has the names of arguments, a difference has their indices
        left, binding = [it for it in left if it not in binding], []
    yield from _rest(what, binding, "additive", "warning")
    yield from _rest(what, [it for it in left if it not in binding], "other", "info")
    if not (words or breaking or left):
        yield LockChange("lock/changed", "info", f"other: {what} is written differently than in the lock")


def told_changed(old: dict[str, Any], new: dict[str, Any]) -> Iterator[LockChange]:
    """Yield the changes in the server's description of itself.

    Except for the instructions, only members that both sides have are compared.
    """
    words = [old.get("instructions"), new.get("instructions")]
    if words[0] != words[1]:
        version = version_change(old, new)
        sentence = f"wording: the instructions of the server differ from the lock{version}"
        yield LockChange("security/definition-changed", "error", _against(sentence, *apart(*words)), ("instructions",))
    before, now = (told.get("capabilities") for told in (old, new))
    if isinstance(before, dict) and isinstance(now, dict):
        yield from _capabilities(before, now)
    for name in ("protocolVersion", "serverInfo"):
        if name in old and name in new and canonical(old[name]) != canonical(new[name]):
            sentence = f"other: {name} differs from the lock"
            yield LockChange("lock/changed", "info", _against(sentence, *apart(old[name], new[name])), (name,))


def between(old: LockedServer, new: LockedServer) -> Iterator[LockChange]:
    """Yield the changes of a server between two looks at it, for everything that both of them show."""
    yield from told_changed(old.told, new.told)
    version = version_change(old.told, new.told)
    for kind in KINDS:
        before, now = old.listings.get(kind), new.listings.get(kind)
        if before is None or now is None:
            continue
        for name in sorted({*before, *now}):
            if name not in before:
                yield added(kind, name, now[name])
            elif name not in now:
                yield removed(kind, name)
            else:
                yield from changed(kind, name, before[name], now[name], version)


def version_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the end of a sentence about wording: whether the server names another version."""
    before, now = (member(told.get("serverInfo"), "version") for told in (old, new))
    if not isinstance(before, str) or not isinstance(now, str):
        return ""
    if before == now:
        return f", although the server is still version {before[:40]}"
    return f" (the server was version {before[:40]} and is {now[:40]})"


def _capabilities(old: dict[str, Any], new: dict[str, Any]) -> Iterator[LockChange]:
    lost: list[Path] = [it.path for it in differences(old, new) if it.observed is ABSENT or it.observed is False]
    more = [it for it in differences(old, new) if it.path not in lost]
    if lost:
        sentence = f"breaking: the server no longer declares the capability {_places(lost)}"
        yield LockChange("lock/changed", "error", sentence, ("capabilities",))
    if more:
        sentence = (
            f"additive: the server declares other capabilities than the lock: {_places([it.path for it in more])}"
        )
        yield LockChange("lock/changed", "warning", sentence, ("capabilities",))


def _rest(what: str, left: Sequence[Difference], kind: str, severity: Severity) -> Iterator[LockChange]:
    if left:
        sentence = f"{kind}: {what} changed at {_places([it.path for it in left])}"
        values = (None if it is ABSENT else it for it in (left[0].recorded, left[0].observed))
        yield LockChange("lock/changed", severity, _against(sentence, *apart(*values)), left[0].path)


def _within(difference: Difference, covered: set[tuple[str, ...]]) -> bool:
    """Return whether a difference was already reported, or contains only one that was."""
    path = tuple(map(str, difference.path))
    return any(path[: len(it)] == it or it[: len(path)] == path for it in covered)


def _sides(old: Any, new: Any, path: Sequence[str]) -> tuple[str, str]:
    """Return the two values at a path, or at the last step that both have."""
    for step in path:
        if not isinstance(old, dict) or not isinstance(new, dict):
            break
        old, new = old.get(step), new.get(step)
    return apart(old, new)


def _against(sentence: str, old: str, new: str) -> str:
    return f"{sentence}: {old} is now {new}"


def _places(paths: Sequence[Sequence[str | int]]) -> str:
    first = pointer(*paths[0])[:_POINTER]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"


def _noun(kind: str, name: str) -> str:
    return f"{NOUNS[kind]} {name[:_NAME]}"


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
