"""Watching the files that a server is made of.

`watchfiles` asks the system to tell of changes, so a watched tree costs one watch a directory and no time while nothing
changes. A file by itself is watched through its directory, because editors put a new file in its place. What
watchfiles ignores by default is ignored here, but only below the watched path: `.git`, `__pycache__`, `node_modules`,
`.venv`, compiled Python, and what editors leave beside a file; and so is the capture that we write.
"""

import os
from collections.abc import Callable, Iterator
from threading import Barrier, BrokenBarrierError, Thread

_STEP = 50  # milliseconds without a change after which the changes are told,
_LONGEST = 1600  # or in all
_LOOK = 200  # milliseconds after which we are told that the watch is there


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
        roots = [os.path.realpath(path) for path in paths]
        self._folders = [root for root in roots if os.path.isdir(root)]
        self._files = {root for root in roots if not os.path.isdir(root)}

    def start(self) -> None:
        """Begin to watch, in threads of their own."""
        above = sorted({os.path.dirname(file) for file in self._files})
        kinds = [(roots, recursive) for roots, recursive in ((self._folders, True), (above, False)) if roots]
        begun = Barrier(len(kinds), self._ready)
        for roots, recursive in kinds:
            Thread(target=self._watch, args=(roots, recursive, begun), daemon=True).start()

    def _watch(self, roots: list[str], recursive: bool, begun: Barrier) -> None:
        waits = True
        try:
            for changes in self._changes(roots, recursive=recursive):
                if changes:
                    self._changed(sorted(changes))
                elif waits:
                    waits = False
                    begun.wait()
        except BrokenBarrierError:  # the other one has said why
            pass
        except Exception as error:  # such as too many directories for the system
            self._failed(f"cannot watch {', '.join(roots)} ({error}); the server is not reloaded")
            begun.abort()

    def _changes(self, roots: list[str], *, recursive: bool) -> Iterator[set[str]]:
        """What has changed since; an empty set once the watch is there, and whenever nothing has changed for long."""
        from watchfiles import Change, DefaultFilter, watch

        usual = DefaultFilter()

        def wanted(change: Change, path: str) -> bool:
            if not recursive:
                return path in self._files
            root = max((it for it in roots if path.startswith(os.path.join(it, ""))), key=len, default="")
            below = os.path.relpath(path, root) if root else path
            return path not in roots and usual(change, below) and not self._of_capture(path)

        for changes in watch(
            *roots,
            watch_filter=wanted,
            debounce=_LONGEST,
            step=_STEP,
            rust_timeout=_LOOK,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=recursive,
            ignore_permission_denied=True,
        ):
            yield {path for _, path in changes}

    def _of_capture(self, path: str) -> bool:
        """Whether it is a file of the capture, which grows with every frame, or of its viewers."""
        if not self._capture:
            return False
        folder, name = os.path.split(self._capture)
        if not path.startswith(os.path.join(folder, "")):
            return False
        first = os.path.relpath(path, folder).split(os.sep)[0]
        return first.startswith(os.path.splitext(name)[0]) or (first.startswith(".") and first.endswith(".live"))
