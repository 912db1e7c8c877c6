"""Watch the files that a server consists of.

`watchfiles` uses the notifications of the operating system, so a watched tree costs one watch per directory and hardly
any time while nothing changes. A single file is watched through its directory, because editors replace files. The
system forgets a directory that is removed, as builds do with their output directory. So this module checks five times a
second whether each directory is still the same, and watches the one that has replaced it.

Below the watched paths, the default filter of watchfiles applies: `.git`, `__pycache__`, `node_modules`, `.venv`,
compiled Python and temporary files of editors are ignored. The capture that is being recorded is ignored, too.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from threading import Barrier, BrokenBarrierError, Thread

_STEP = 50  # milliseconds without a change after which changes are reported
_LONGEST = 1600  # milliseconds after which they are reported in any case
_LOOK = 200  # milliseconds between two checks of the watched paths
_OF_VIM = "4913"  # a file with which Vim tests whether it can write to the directory

_Place = tuple[str, int, int]
"""A path at one moment: its real path, and device and inode of the directory that is watched for it."""


class WatchedFiles:
    """Watches `paths`, which are existing files and directories; `changed` gets the changed paths at once.

    `capture` is the file that is being recorded. `ready` is called when all paths are watched; `failed` is called with
    the reason if a path cannot be watched. All three are called from other threads.
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
        """Begin to watch, in separate threads."""
        kinds = [(paths, whole) for paths, whole in ((self._folders, True), (self._files, False)) if paths]
        begun = Barrier(len(kinds), self._ready)
        for paths, whole in kinds:
            Thread(target=self._watch, args=(paths, whole, begun), daemon=True).start()

    def _watch(self, paths: list[str], whole: bool, begun: Barrier) -> None:
        """Watch directories with everything below them (`whole`), or files, for ever."""
        waits = True
        places = _places(paths, whole)
        back: set[str] = set()  # replaced paths that are not reported yet
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
