"""Watch the files that a server consists of.

`watchfiles` uses the notifications of the operating system, so a watched tree costs one watch per directory and hardly
any time while nothing changes. A single file is watched through its directory, because editors replace files. The
system forgets a directory that is removed, as builds do with their output directory. So this module checks five times a
second whether each directory is still the same, and watches the one that has replaced it.

Between the start of the server and the moment at which a watch begins, the system notifies of nothing. So the state of
all files is read when the first watch begins (`snapshot`); those that changed since the server was started are
reported. Whenever a later watch begins, the state is compared. The server does not wait for any of this.

Below the watched paths, the default filter of watchfiles applies: `.git`, `__pycache__`, `node_modules`, `.venv`,
compiled Python and temporary files of editors are ignored. The capture that is being recorded is ignored, too.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from threading import Barrier, BrokenBarrierError, Thread

_STEP = 50  # milliseconds without a change after which changes are reported
_LONGEST = 1600  # milliseconds after which they are reported in any case
_LOOK = 200  # milliseconds between two checks of the watched paths
_IGNORED = frozenset(
    "__pycache__ .git .hg .svn .tox .venv .idea node_modules .mypy_cache .pytest_cache .hypothesis".split()
)
"""The directories that watchfiles ignores; they may be large."""
_TICK = 10_000_000  # nanoseconds by which the times of files lag behind the clock, at most
_REPORTED = 2_000_000_000  # nanoseconds after a change at which it is reported, at most
_LOOP = 3  # the reloads in a row that a file causes while the server starts, after which it is ignored
_OF_VIM = "4913"  # a file with which Vim tests whether it can write to the directory

_Place = tuple[str, int, int]
"""A path at one moment: its real path, and device and inode of the directory that is watched for it."""

Files = dict[str, tuple[int, int, int]]
"""By path: the time of the last change, the size and the inode."""


def snapshot(paths: Iterable[str], since: int) -> tuple[Files, set[str]]:
    """Return the state of these files and of all files below these directories, and the paths that changed.

    A file has changed if its time is `since` or later, in nanoseconds since the epoch. A removed file shows only in the
    time of its directory: if nothing in the directory is as new, the directory has changed. One of `paths` has also
    changed if it is gone.
    """
    found: Files = {}
    changed = set()
    folders = []
    for path in map(os.path.realpath, paths):
        about = _note(found, path)
        if about is None or (path in found and about.st_ctime_ns >= since):
            changed.add(path)
        folders += [path] if os.path.isdir(path) else []
    while folders:
        folder = folders.pop()
        newest = 0
        with contextlib.suppress(OSError), os.scandir(folder) as entries:  # it may be removed meanwhile
            for entry in entries:
                about = _note(found, entry.path)
                newest = max(newest, about.st_ctime_ns if about else since)
                if entry.path in found:
                    changed |= {entry.path} if about and about.st_ctime_ns >= since else set()
                elif entry.name not in _IGNORED:
                    folders.append(entry.path)
            about = os.stat(folder)
            if newest < since <= min(about.st_mtime_ns, about.st_ctime_ns):
                changed.add(folder)
    return found, changed


def age(path: str) -> int:
    """Return how many nanoseconds ago a reported path changed; 0 if it is gone.

    The result has a limit, because the clock of another computer may have written the time.
    """
    try:
        return min(max(time.time_ns() - os.lstat(path).st_ctime_ns, 0), _REPORTED)
    except OSError:
        return 0


class StartChanges:
    """Finds the files that change whenever the server starts: they would reload it for ever."""

    def __init__(self) -> None:
        self.ignored: frozenset[str] = frozenset()
        self._in_a_row: dict[str, int] = {}  # by path: the reloads in a row

    def reload(self, early: set[str]) -> list[str]:
        """Note a reload, and the paths that changed while the server started; return those to ignore from now on."""
        self._in_a_row = {path: self._in_a_row.get(path, 0) + 1 for path in early}
        found = sorted(path for path, count in self._in_a_row.items() if count == _LOOP)
        self.ignored |= frozenset(found)
        return found


def import_watcher() -> None:
    """Import watchfiles, before frames pass (V-02). If that fails, `WatchedFiles` reports it."""
    with contextlib.suppress(Exception):
        __import__("watchfiles")


class WatchedFiles:
    """Watches `paths`, which are existing files and directories; `changed` gets the changed paths at once.

    `since` is the time before the server was started, in nanoseconds since the epoch: what changed between then and the
    beginning of the watch is reported, too.

    `capture` is the file that is being recorded. `ready` is called when all paths are watched; `failed` is called with
    the reason if a path cannot be watched. All three are called from other threads.
    """

    def __init__(
        self,
        paths: list[str],
        since: int,
        capture: str | None,
        changed: Callable[[list[str]], None],
        ready: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._since = since - _TICK
        self._known: Files = {}
        self._capture = os.path.realpath(capture) if capture else ""
        self._changed, self._ready, self._failed = changed, ready, failed
        self._folders = [path for path in paths if os.path.isdir(path)]
        self._files = [path for path in paths if not os.path.isdir(path)]

    def start(self) -> None:
        """Begin to watch, in separate threads."""
        kinds = [(paths, whole) for paths, whole in ((self._folders, True), (self._files, False)) if paths]
        begun = Barrier(len(kinds), self._ready)
        for paths, whole in kinds:
            Thread(target=self._watch, args=(paths, whole, begun), daemon=True).start()

    def _watch(self, paths: list[str], whole: bool, begun: Barrier) -> None:
        """Watch directories with everything below them (`whole`), or files, for ever."""
        waits = first = True
        places = _places(paths, whole)
        back = _moved(paths, self._since)  # replaced paths that are not reported yet
        same = places  # those that have not been replaced since the last watch
        try:
            while True:
                removed: set[str] = set()
                begins = True
                for changes in self._changes({place[0] for place in places}, whole, removed):
                    self._learn(changes)
                    missed = self._missed(places, same, whole, first=first) if begins else set()
                    begins = first = False
                    if changes or missed or back:
                        self._changed(sorted(changes | missed | back))
                        back = set()
                    elif waits:
                        waits = False
                        begun.wait()
                    now = _places(paths, whole)
                    if removed or now != places:
                        removed |= {_watched(place[0], whole) for place in places - now}
                        break
                same = {place for place in places if _watched(place[0], whole) not in removed}
                places = _await_places(paths, whole)
                back = {place[0] for place in places - same if os.path.exists(place[0])}
        except BrokenBarrierError:  # the other thread has reported the reason
            pass
        except Exception as error:  # such as more directories than the system allows
            named = sorted({_watched(place[0], whole) for place in places})
            self._failed(f"cannot watch {', '.join(named)} ({error}); the server is not reloaded")
            begun.abort()

    def _changes(self, paths: set[str], whole: bool, removed: set[str]) -> Iterator[set[str]]:
        """Yield the changed paths; an empty set when the watch begins, and after each interval without changes.

        Watched directories that were removed are added to `removed`, because a directory that replaces one of them may
        have the same inode.
        """
        from watchfiles import Change, watch

        watched = {_watched(path, whole) for path in paths}

        def wanted(change: Change, path: str) -> bool:
            if change == Change.deleted and path in watched:
                removed.add(path)
            return self._is_source(path, paths, whole)

        for changes in watch(
            *sorted(watched),
            watch_filter=wanted,
            debounce=_LONGEST,
            step=_STEP,
            rust_timeout=_LOOK,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=whole,
            ignore_permission_denied=True,
        ):
            yield {path for _, path in changes}

    def _is_source(self, path: str, paths: set[str], whole: bool) -> bool:
        """Return whether a change of this file, which is one of `paths` or below one, reloads the server."""
        if not whole:
            return path in paths
        from watchfiles import Change, DefaultFilter

        root = max((it for it in paths if path.startswith(os.path.join(it, ""))), key=len, default="")
        below = os.path.relpath(path, root) if root else path
        odd = os.path.basename(path) == _OF_VIM or self._of_capture(path)
        return path not in paths and DefaultFilter()(Change.modified, below) and not odd

    def _missed(self, places: set[_Place], same: set[_Place], whole: bool, *, first: bool) -> set[str]:
        """Return the files that changed while nothing was watched, except in places that were replaced as a whole."""
        paths = {place[0] for place in places}
        now, missed = snapshot(paths, self._since)
        if first:
            self._known |= now
        else:
            before = {path for path in list(self._known) if _is_below(path, paths)}
            missed = {path for path in now.keys() | before if now.get(path) != self._known.get(path)}
            self._learn(missed)
        kept = {place[0] for place in places & same}
        return {
            path for path in missed if _is_below(path, kept) and (path in paths or self._is_source(path, paths, whole))
        }

    def _learn(self, paths: set[str]) -> None:
        """Note the present state of files whose change is reported."""
        for path in paths:
            self._known.pop(path, None)
            _note(self._known, path)

    def _of_capture(self, path: str) -> bool:
        """Return whether a path is a file of the capture, which grows with every frame, or of its viewers."""
        if not self._capture:
            return False
        folder = os.path.join(os.path.dirname(self._capture), "")
        if not path.startswith(folder):
            return False
        first = path.removeprefix(folder).split(os.sep)[0]
        root, extension = os.path.splitext(self._capture)
        part = re.escape(root) + r"(-[0-9]+(-[0-9a-f]{4})?)?" + re.escape(extension)
        return bool(re.fullmatch(part, path)) or (first.startswith(".") and first.endswith(".live"))


def _note(files: Files, path: str) -> os.stat_result | None:
    """Add the state of a file, and return what was read; directories, and files that are gone, have no state."""
    try:
        about = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISDIR(about.st_mode):
        files[path] = about.st_mtime_ns, about.st_size, about.st_ino
    return about


def _moved(paths: list[str], since: int) -> set[str]:
    """Return the targets of those paths that are symbolic links made at `since` or later."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError):
            if os.path.islink(path) and os.lstat(path).st_ctime_ns >= since:
                found.add(os.path.realpath(path))
    return found


def _is_below(path: str, paths: set[str]) -> bool:
    return path in paths or any(path.startswith(os.path.join(it, "")) for it in paths)


def _places(paths: list[str], whole: bool) -> set[_Place]:
    """Return the current places of those directories (`whole`) or files that can be watched."""
    found = set()
    for path in paths:
        real = os.path.realpath(path)
        try:
            about = os.stat(_watched(real, whole))
        except OSError:  # it was removed
            continue
        found.add((real, about.st_dev, about.st_ino))
    return found


def _watched(path: str, whole: bool) -> str:
    """Return the directory to watch for a path."""
    return path if whole else os.path.dirname(path)


def _await_places(paths: list[str], whole: bool) -> set[_Place]:
    """Wait until at least one path exists, and return the places."""
    while not (places := _places(paths, whole)):
        time.sleep(_LOOK / 1000)
    return places
