"""A capture that grows: a mock records what the capture lacks from the real server, and the new session becomes a part.

The real server is started on demand under `mcpspy wrap`, which records it. So it is recorded, started and ended like
any other server, and it shares the mock's stderr. One thread writes, so that a server that does not read blocks nothing
else. One thread reads, and queues a call for each line for the mock. If the client does not read, the server blocks, as
it would without mcpspy.

A capture that has ended is never written to, so it stays complete even if mcpspy is killed. A session to add is
recorded as `NAME.missing-RANDOM.jsonl` beside `NAME.jsonl`. When it is over, a new file with all of the old capture and
that session replaces the capture atomically, and the file beside it is deleted. If a process is killed before that, the
next one does it: all files beside a capture are added. A lock on the directory lets only one process at a time do that,
so no process loses what another has added, and an unfinished new file can be deleted.
"""

import glob
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError, McpspyError
from mcpspy.process.ending import end
from mcpspy.recording.copy import write_with_sessions
from mcpspy.replay.match import Matcher
from mcpspy.replay.mock import Heard, Missing
from mcpspy.replay.script import Turn, accept, script_of
from mcpspy.transport.streams import chunks, lines, send
from mcpspy.wire.jsonrpc import Request

PATIENCE = 1.2
"""Seconds for the server to exit by itself. Clients give a server two seconds in total before they use signals."""
_AFTER_SIGNAL = 0.4  # seconds
_LOOK = 0.1  # seconds between two checks whether it should end
AHEAD = 64
"""The number of lines that may wait for the mock."""


class RecordedServer:
    """A server that is not running yet; its session is recorded in the file `capture`, under a `name`."""

    def __init__(self, command: Sequence[str], capture: str, name: str | None, heard: Heard) -> None:
        named = ["--name", name] if name else []
        self._argv = [
            sys.executable,
            "-P",
            "-m",
            "mcpspy",
            "wrap",
            "--no-control",
            *named,
            "-o",
            capture,
            "--",
            *command,
        ]
        self._heard = heard
        self._ahead = threading.Semaphore(AHEAD)
        self._ending = False
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, missing: Missing) -> Callable[[bytes], None]:
        """Start the server; return the function that sends it a line. Its lines go to `missing` by way of `heard`."""
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        for work in (self._write, partial(self._read, missing)):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()
        return self._to_send.put

    def end(self) -> None:
        """Stop sending, and make the server exit; afterwards all of its lines are in `heard`."""
        if self._process is None:
            return
        self._to_send.put(None)
        self._ending = True
        end(self._gone, self._process.send_signal, PATIENCE, _AFTER_SIGNAL)  # it is in our own group
        self._process.wait()
        self._threads[1].join(_AFTER_SIGNAL)

    def _gone(self, seconds: float) -> bool:
        assert self._process
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def _write(self) -> None:
        assert self._process
        assert self._process.stdin
        sound = True
        while (line := self._to_send.get()) is not None:
            sound = sound and send(self._process.stdin.fileno(), line)
        self._process.stdin.close()

    def _read(self, missing: Missing) -> None:
        assert self._process
        assert self._process.stdout
        with self._process.stdout as stdout:
            for line in lines(chunks(stdout.fileno())):
                while not self._ahead.acquire(timeout=_LOOK) and not self._ending:
                    pass
                self._heard.put(partial(self._say, missing, line))
        code = self._process.wait()
        how = f"ended with the exit code {code}" if code >= 0 else f"was ended by the signal {-code}"
        self._heard.put(partial(missing.ended, how))

    def _say(self, missing: Missing, line: bytes) -> None:
        self._ahead.release()
        missing.said(line)


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
    return sum(isinstance(body, Request) and not known.knows(body) for body in asked)


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
