"""The captures to send: the named files and directories, and files that appear there later.

While no file appears, a check only costs the listing of a directory: thousands of finished captures cost almost
nothing. A file that is not readable as a capture is checked again when it changes.
"""

import os
from collections.abc import Callable, Iterator, Sequence

from mcpspy.capture.listing import captures
from mcpspy.capture.location import SUFFIX
from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError

EVERY = 20
"""The number of checks after which the files are examined one by one, in case one was overwritten."""
_Entry = tuple[str, int]
"""A path and its inode: a file that replaces a capture counts as a new capture."""


class WatchedCaptures:
    """Finds captures: call `look` repeatedly. `refuse` receives a sentence for each file that is not readable as one.

    With `follow`, a file that has just appeared may lack its header, so the sentence comes with the second check.
    """

    def __init__(self, named: Sequence[str], refuse: Callable[[str], None], *, follow: bool) -> None:
        self._folders = [path for path in named if os.path.isdir(path) or not os.path.lexists(path)]
        self._files = [path for path in named if path not in self._folders]
        self._refuse = refuse
        self._follow = follow
        self._names: dict[str, set[_Entry]] = {}  # by directory
        self._found: set[_Entry] = set()
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}  # the state and the id of each
        self._looks = 0
        self._refused: dict[str, tuple[tuple[int, ...], bool]] = {}  # its state, and whether that was reported

    @property
    def empty(self) -> bool:
        """Whether nothing was found, and nothing refused."""
        return not self._found and not self._refused

    def look(self) -> list[str]:
        """Return the captures that were not found before."""
        self._looks += 1
        if self._looks % EVERY == 0:
            self._forget_overwritten()
        found = [path for path in self._files if self._readable(path)]
        for folder in self._folders:
            names = set(_entries(folder))
            if names != self._names.get(folder) or self._changed(folder):
                self._names[folder] = names
                found += self._listed(folder)
        entries = {(path, _state(path)[0]) for path in found}
        new = entries - self._found
        self._found = {it for it in self._found if it[0] in self._files or it in self._names[os.path.dirname(it[0])]}
        self._found |= new
        if new:
            there = {path for path, _ in self._found}
            self._known = {path: it for path, it in self._known.items() if path in there}
            self._known |= {path: (_state(path), _id(path)) for path, _ in new}
        paths = {path for path, _ in new}
        return [path for path in found if path in paths]

    def _forget_overwritten(self) -> None:
        """Forget captures whose file has a new capture: `wrap -o FILE` overwrites a finished one."""
        for path, (before, capture) in list(self._known.items()):
            state = _state(path)
            if state == before:
                continue
            if _id(path) == capture:
                self._known[path] = state, capture
            else:
                self._found = {it for it in self._found if it[0] != path}
                self._names.pop(os.path.dirname(path), None)

    def _listed(self, folder: str) -> list[str]:
        refused: dict[str, str] = {}
        found = [listed.capture.path for listed in captures(folder, refused)]
        for path in [it for it in self._refused if os.path.dirname(it) == folder and it not in refused]:
            del self._refused[path]
        for path, why in refused.items():
            self._note(path, why)
        return found

    def _readable(self, path: str) -> bool:
        """Return whether a named file is a capture that was not found before."""
        state = _state(path)
        if (path, state[0]) in self._found or self._refused.get(path) == (state, True):
            return False
        try:
            Capture(path)
        except CaptureError as error:
            self._note(path, str(error))
            return False
        return True

    def _changed(self, folder: str) -> bool:
        """Return whether a refused file has changed, or is unchanged but was not reported."""
        known = [(path, it) for path, it in self._refused.items() if os.path.dirname(path) == folder]
        return any(not reported or _state(path) != state for path, (state, reported) in known)

    def _note(self, path: str, why: str) -> None:
        """Report a file that cannot be read, once for each state of it."""
        state = _state(path)
        before, reported = self._refused.get(path, (None, False))
        reported = reported and before == state
        if not reported and (before == state or not self._follow):
            self._refuse(why)
            reported = True
        self._refused[path] = (state, reported)


def _entries(folder: str) -> Iterator[_Entry]:
    """Yield the entries of a directory. Raises CaptureError if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            yield from ((entry.path, entry.inode()) for entry in entries if entry.name.endswith(SUFFIX))
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"cannot list {folder}: {error.strerror}") from error


def _id(path: str) -> str:
    try:
        return Capture(path).header.id
    except CaptureError:
        return ""


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return (0,)
    return found.st_ino, found.st_size, found.st_mtime_ns
