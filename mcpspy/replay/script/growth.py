"""A capture that grows: sessions are recorded in separate files beside it and then become a part of it.

A capture that has ended is never written to, so it stays complete even if mcpspy is killed. A session to add is
recorded as `NAME.missing-RANDOM.jsonl` beside `NAME.jsonl`. When it is over, a new file with all of the old capture and
that session replaces the capture atomically, and the file beside it is deleted. If a process is killed before that, the
next one does it: all files beside a capture are added. A lock on the directory lets only one process at a time do that,
so no process loses what another has added, and an unfinished new file can be deleted.
"""

import glob
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError, McpspyError
from mcpspy.recording.append import write_with_sessions
from mcpspy.replay.match import Matcher
from mcpspy.replay.script.load import accept, script_of
from mcpspy.replay.script.turns import Turn
from mcpspy.wire.jsonrpc import Request

try:
    import fcntl
except ImportError:  # Windows
    pass


def beside(capture: str) -> str:
    """Return a new path for a session that is to be added to a capture."""
    root, extension = os.path.splitext(os.path.realpath(capture))
    return f"{root}.missing-{os.urandom(4).hex()}{extension}"


def take_in(capture: str, say: Callable[[str], None]) -> int:
    """Add to a capture the finished sessions beside it; return how many requests in it are new.

    The capture need not exist. A session that has nothing new is deleted. `say` receives what could not be added; those
    files stay.
    """
    target = os.path.realpath(capture)
    with _alone(os.path.dirname(target)):
        _discard_unfinished(target)
        added, new, over = [], 0, []
        waiting = _waiting(target)
        known = Matcher(_turns(target) if waiting and os.path.exists(target) else [])
        for path in waiting:
            try:
                found = _new(known, path)
            except CaptureError as error:
                say(f"{path} is not added to {capture}: {error}; delete it if you do not need it")
                continue
            over.append(path)
            new += found
            added += [path] if found else []
        if added:
            _add(target, added)
        for path in over:
            with suppress(OSError):
                os.unlink(path)
    return new


def _discard_unfinished(target: str) -> None:
    """Delete unfinished new files of killed processes, with the lock held; without locks they may be in use."""
    if sys.platform == "win32":
        return
    for path in glob.glob(f"{glob.escape(target)}.{'[0-9a-f]' * 8}.new*"):
        with suppress(OSError):
            os.unlink(path)


def _waiting(target: str) -> list[str]:
    root, extension = os.path.splitext(target)
    found = sorted(glob.glob(f"{glob.escape(root)}.missing-*{glob.escape(extension)}"), key=os.path.getmtime)
    return [path for path in found if not _is_live(path)]


def _is_live(path: str) -> bool:
    try:
        return Capture(path).live
    except CaptureError:
        return os.path.getsize(path) == 0  # it is just being created


def _turns(path: str) -> list[Turn]:
    if Capture(path).live:
        raise CaptureError(f"{path} is being recorded: what was missing stays beside it, and is added next time")
    return script_of(path).turns


def _new(known: Matcher, path: str) -> int:
    """Return how many requests in the capture at `path` have a response and are not known. Raises CaptureError."""
    script = script_of(path)
    if script.lost:
        raise CaptureError(f"it is incomplete ({script.lost})")
    asked = [turn.cause.body for turn in script.turns if turn.response]
    return sum(isinstance(body, Request) and known.by_params(body) is None for body in asked)


def _add(target: str, added: list[str]) -> None:
    """Add sessions to the capture at `target`. Raises McpspyError, and then nothing has changed."""
    if not os.path.exists(target):
        accept(added.pop(0), target)
    if not added:
        return
    grown = f"{target}.{os.urandom(4).hex()}.new"
    try:
        write_with_sessions(target, added, grown)
        shutil.copymode(target, grown)
        os.replace(grown, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(grown)
        raise McpspyError(f"cannot replace {target}: {error.strerror}") from error


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Hold the lock of a directory; do nothing if the system has no locks."""
    if sys.platform == "win32":
        yield
        return
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise McpspyError(f"cannot open {folder}: {error.strerror}") from error
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
