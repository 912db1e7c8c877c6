"""Watching the files that a server is made of.

`watchfiles` asks the system to tell of changes, so a watched tree costs one watch a directory and hardly any time while
nothing changes. A file by itself is watched through its directory, because editors put a new file in its place. The
system forgets a directory that is removed, as builds do with the one that they fill, so we look five times a second
whether each is still the same, and watch the one that has its place.

What watchfiles ignores by default is ignored here, but only below the watched path: `.git`, `__pycache__`,
`node_modules`, `.venv`, compiled Python, and what editors leave beside a file; and so is the capture that we write.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from threading import Barrier, BrokenBarrierError, Thread

_STEP = 50  # milliseconds without a change after which the changes are reported,
_LONGEST = 1600  # or in all
_LOOK = 200  # milliseconds after which the watch reports that it exists
_OF_VIM = "4913"  # a file by which Vim finds out whether it may write to the directory

_Place = tuple[str, int, int]
"""What stands at a path now: its real path, and device and inode of the directory that is watched for it."""


class WatchedFiles:
    """Watches `paths`, files and directories that exist; `changed` gets the paths of what has changed, at once.

    `capture` is the file that is being recorded; `ready` is called when all is watched, and `failed` with the reason
    if something cannot be. All three are called from other threads.
    """

    def __init__(
        self,
        paths: list[str],
        capture: str | None,
        changed: Callable[[list[str]], None],
        ready: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._capture = os.path.realpath(capture) if capture else ""
        self._changed, self._ready, self._failed = changed, ready, failed
        self._folders = [path for path in paths if os.path.isdir(path)]
        self._files = [path for path in paths if not os.path.isdir(path)]

    def start(self) -> None:
        """Begin to watch, in threads of their own."""
        kinds = [(paths, whole) for paths, whole in ((self._folders, True), (self._files, False)) if paths]
        begun = Barrier(len(kinds), self._ready)
        for paths, whole in kinds:
            Thread(target=self._watch, args=(paths, whole, begun), daemon=True).start()

    def _watch(self, paths: list[str], whole: bool, begun: Barrier) -> None:
        """Watch directories with all below them (`whole`), or files, for ever."""
        waits = True
        places = _places(paths, whole)
        back: set[str] = set()  # what has another place, and was not told yet
        try:
            while True:
                removed: set[str] = set()
                for changes in self._changes({place[0] for place in places}, whole, removed):
                    if changes or back:
                        self._changed(sorted(changes | back))
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
        except BrokenBarrierError:  # the other one has said why
            pass
        except Exception as error:  # such as too many directories for the system
            named = sorted({_watched(place[0], whole) for place in places})
            self._failed(f"cannot watch {', '.join(named)} ({error}); the server is not reloaded")
            begun.abort()

    def _changes(self, paths: set[str], whole: bool, removed: set[str]) -> Iterator[set[str]]:
        """What has changed since; an empty set once the watch is there, and whenever nothing has changed for long.

        Directories that are watched no more, because they were removed, are added to `removed`: one that takes such a
        place may have the same inode.
        """
        from watchfiles import Change, DefaultFilter, watch

        usual = DefaultFilter()
        watched = {_watched(path, whole) for path in paths}

        def wanted(change: Change, path: str) -> bool:
            if change == Change.deleted and path in watched:
                removed.add(path)
            if not whole:
                return path in paths
            root = max((it for it in paths if path.startswith(os.path.join(it, ""))), key=len, default="")
            below = os.path.relpath(path, root) if root else path
            odd = os.path.basename(path) == _OF_VIM or self._of_capture(path)
            return path not in paths and usual(change, below) and not odd

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

    def _of_capture(self, path: str) -> bool:
        """Whether it is a file of the capture, which grows with every frame, or of its viewers."""
        if not self._capture:
            return False
        folder = os.path.join(os.path.dirname(self._capture), "")
        if not path.startswith(folder):
            return False
        first = path.removeprefix(folder).split(os.sep)[0]
        root, extension = os.path.splitext(self._capture)
        part = re.escape(root) + r"(-[0-9]+(-[0-9a-f]{4})?)?" + re.escape(extension)
        return bool(re.fullmatch(part, path)) or (first.startswith(".") and first.endswith(".live"))


def _places(paths: list[str], whole: bool) -> set[_Place]:
    """Where directories (`whole`) or files are now, of those that can be watched."""
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
    """The directory that is watched for a path."""
    return path if whole else os.path.dirname(path)


def _await_places(paths: list[str], whole: bool) -> set[_Place]:
    """The same, once there is anything."""
    while not (places := _places(paths, whole)):
        time.sleep(_LOOK / 1000)
    return places
