"""The captures that an agent sees: their list, their names, and the open ones.

An agent asks repeatedly about the same few captures, and some are large. So an opened capture stays open with its index
and its fold (as in the TUI). Each question starts with `look`, and continues to read all open captures for a short
time. The answer is made from what has been read by then, and states how much of the file that is. The name of a capture
is the shortest unique prefix of its id, with at least six digits. If the id does not have the form that mcpspy writes,
the name is made from a hash of the path.

The sessions of this server itself are left out, wherever they were recorded.
"""

import hashlib
import os
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from mcpspy.agent.answers import Scrubber, safe
from mcpspy.browse.library import Library, ListedCapture
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.listing import first_files, runs
from mcpspy.capture.records import Header
from mcpspy.clients.launcher import is_agent
from mcpspy.errors import CaptureError, UsageError
from mcpspy.text import series, suggestion

PATIENCE = 1.2
"""Seconds for which a question may continue to read captures."""
_SEARCH = 0.6  # more seconds that a question may spend on a search for rows
ALL, RUN = "all", "run:"
_ID = re.compile("[0-9a-f]{32}")
_LIKE_ID = re.compile("[0-9a-f]{6,}")
_OPEN = 8  # captures kept open
_LEAST = 6  # digits of an id
_STEP = 0.02  # seconds
_LOOKS = 3  # extra reads of a live capture, whose last records are held back for ordering


class AgentCaptures:
    """The captures of a directory. Methods raise UsageError, with one sentence, for what does not exist."""

    def __init__(self, folder: str, patience: float = PATIENCE) -> None:
        self.folder = folder
        self.scrubber = Scrubber()
        self.entries: list[ListedCapture] = []
        """Live captures first, then the newest. `look` fills it."""
        self.complete = False
        """Whether the last look found and counted all captures."""
        self._library = Library([folder])
        self._patience = patience
        self._begun = 0.0  # start of the current question, by `time.perf_counter`
        self._parent = os.getppid()
        self._names: dict[str, str] = {}  # path -> whole id
        self._short: dict[str, str] = {}  # whole id -> name of the capture
        self._open: OrderedDict[str, OpenCapture] = OrderedDict()
        self._changes = -1
        self._counts = False  # whether counts of all captures have been requested

    def close(self) -> None:
        """Close all open captures."""
        while self._open:
            self._open.popitem()[1].close()

    def look(self, *, count: bool = False) -> None:
        """Read the directory again. With `count`, also count the contents of its captures for a while."""
        self._begun = time.perf_counter()
        deadline = self._begun + self._patience
        self._counts = self._counts or count
        self._library.look()
        more = True
        while more and (count or not self._library.looked) and time.perf_counter() < deadline:
            more = self._library.grow(_STEP)
        self.complete = not more
        if self._library.changes != self._changes:
            self._changes = self._library.changes
            shown = (entry for entry in self._library.entries if not self._own(entry.header))
            self.entries = first_files(shown)
            counts = Counter(it.header.id for it in self.entries)
            self._names = {
                it.path: it.header.id if _ID.fullmatch(it.header.id) and counts[it.header.id] == 1 else _digest(it.path)
                for it in self.entries
            }
            self._short = _shortened(self._names.values())

    @property
    def deadline(self) -> float:
        """The time at which a search for rows should stop, by `time.perf_counter`."""
        return self._begun + self._patience + _SEARCH

    @property
    def refused(self) -> dict[str, str]:
        """By file name: why this file of the directory cannot be read."""
        return {os.path.basename(path): why for path, why in self._library.refused.items()}

    def name(self, entry: ListedCapture) -> str:
        """Return the name of a capture."""
        return self._short[self._names[entry.path]]

    def server(self, entry: ListedCapture) -> str:
        """Return the name of its server, as answers show it."""
        return self.scrubber.text(entry.header.name, 80)

    def _own(self, header: Header) -> bool:
        """Return whether a capture is of a server like this one, by its command or because our own relay writes it."""
        return is_agent(header.argv) or (header.pid is not None and header.pid == self._parent)

    def runs(self) -> Iterator[tuple[str, list[ListedCapture]]]:
        """Yield the captures of each client process with the name of their run. A single capture has an empty name."""
        for group in runs(self.entries):
            first = min(group, key=lambda entry: (entry.started, entry.path))
            yield RUN + self.name(first) if len(group) > 1 else "", group

    def find(self, text: str) -> ListedCapture:
        """Find a capture by id (or six digits of it) or by server name. An empty text means the newest."""
        self.look()
        text = text.strip().partition("#")[0]
        if not self.entries:
            why = "; ".join(safe(it, 200) for it in list(self.refused.values())[:2])
            raise UsageError(
                f"there are no sessions yet in the capture directory{f' ({why})' if why else ''}; record one with "
                "'mcpspy wrap' or 'mcpspy install', or see 'mcpspy doctor'"
            )
        if not text:
            return max(self.entries, key=lambda it: it.started)
        long = len(text) >= _LEAST  # shorter, and a server called "db" could match an id
        found = [it for it in self.entries if long and self._names[it.path].startswith(text.lower())]
        if len(found) == 1:
            return found[0]
        if found:
            names = [self.name(it) for it in found[:5]]
            raise UsageError(f"the id {safe(text, 60)!r} is not unique; it may be {series(names, 'or')}")
        named = [it for it in self.entries if text in (self.server(it), os.path.basename(it.path), it.path)]
        if named:
            return max(named, key=lambda it: it.started)
        raise UsageError(self._unknown(text))

    def _unknown(self, text: str) -> str:
        broken = next((why for name, why in self.refused.items() if text in name), "")
        if broken:
            return f"the capture {safe(text, 60)!r} cannot be read: {safe(broken, 200)}"
        servers = [] if _LIKE_ID.fullmatch(text) else [safe(self.server(it), 60) for it in self.entries]
        newest = max(self.entries, key=lambda it: it.started)
        server = safe(self.server(newest), 60)
        deleted = f"it may have been deleted; the newest is {self.name(newest)} (server {server!r})"
        return f"there is no session {safe(text, 60)!r}; {suggestion(text, servers, deleted)}"

    def several(self, text: str) -> list[ListedCapture]:
        """Find captures: `all` (the newest first), the name of a run, or anything that `find` accepts."""
        if text.strip() == ALL and self.find(""):
            return sorted(self.entries, key=lambda it: (-it.started, it.path))
        if not text.strip().startswith(RUN):
            return [self.find(text)]
        self.look()
        wanted = text.strip()
        runs = {name: group for name, group in self.runs() if name}
        if wanted not in runs:
            hint = suggestion(wanted, runs, f"there are {series(list(runs)[:5]) or 'none'}")
            raise UsageError(f"there is no run {safe(wanted, 60)!r}; {hint}")
        return runs[wanted]

    def open(self, entry: ListedCapture, seconds: float | None = None) -> OpenCapture:
        """Open the capture and continue to read it for a while. Raises CaptureError."""
        capture = self._open.get(entry.path)
        if capture:
            capture.index.look()
        if capture and (capture.header.id != entry.header.id or capture.index.state in ("cut short", "deleted")):
            self._open.pop(entry.path).close()
            capture = None
        if capture is None:
            try:
                capture = OpenCapture(entry.path)
            except CaptureError:
                if os.path.lexists(entry.path):
                    raise
                raise UsageError(
                    f"the capture {self.name(entry)} was deleted; list_sessions lists the others"
                ) from None
            self._open[entry.path] = capture
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(entry.path)
        grow(capture, self._begun + self._patience - time.perf_counter() if seconds is None else seconds)
        for _ in range(_LOOKS if capture.index.live else 0):
            capture.grow(0.05)
        return capture

    def grow(self, seconds: float) -> bool:
        """Read for about `seconds`, first in open captures, then to count. Return whether there is more."""
        waiting = [it for it in self._open.values() if not it.complete and not it.index.live]
        if not waiting:
            return self._counts and self._library.grow(seconds)
        return waiting[-1].grow(seconds) or len(waiting) > 1


def grow(capture: OpenCapture, seconds: float) -> None:
    """Read a capture for at most `seconds`. If no time is left, read for a moment."""
    deadline = time.perf_counter() + seconds
    while capture.grow(min(max(seconds, _STEP), 0.2)) and time.perf_counter() < deadline:
        pass


def _shortened(names: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique prefix of each name."""
    ranked = sorted(names)
    lengths = [_common(*pair) + 1 for pair in pairwise(ranked)]
    least = zip(ranked, [_LEAST, *lengths], [*lengths, _LEAST], strict=False)
    return {name: name[: max(before, after, _LEAST)] for name, before, after in least} if ranked else {}


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _digest(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()
