"""The live directory of a capture: how viewers tell a relay what to do with a session that is running.

    .<capture id>.live/          beside the capture; mode 0700, of the relay's own user, no symbolic link
        gates-<name>.json        {"gates":[…]}: what one viewer has set; it keeps the file locked as long as it lives
        <number>.order.json      {"release":3,"how":"edited","frame":"…"} or {"send":"…","session":…}: done once

The theory. A viewer makes the directory; the relay looks at it with one `stat` now and then, so that a session which
nobody controls costs nothing. Every file is written beside its place and renamed, so the relay never reads half a file.
The id of a capture is random: nobody can prepare a directory for a capture that is still to be made. A viewer that has
died holds no lock, and its gates are in force no longer. Orders go on: whoever gave them wanted them.

Nothing here knows what a gate means. Imported on the `wrap` path when the directory is there: nothing heavy here.
"""

import os
import stat
import time
from itertools import count

from mcpspy.capture.format import is_live, take
from mcpspy.errors import CaptureError
from mcpspy.json_text import only_value, scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 16 << 20
"""Bytes of the largest file that is read: an edited frame has at most a few MiB."""
_ORDER, _GATES = ".order.json", "gates-"
_SETTLED = 50_000_000  # nanoseconds after which a file system gives a change another time than the one before
_numbers = count(1)
_scan = scanner()


def live_directory(capture: str, capture_id: str) -> str:
    """The live directory of the capture at a path, whether it is there or not."""
    return os.path.join(os.path.dirname(os.path.abspath(capture)), f".{capture_id}.live")


def refusal(path: str) -> str | None:
    """Why a live directory may not be used; None where it may, or is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a directory"
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return f"{path} belongs to another user"
    if os.name == "posix" and found.st_mode & 0o077:
        return f"other users may use {path} (mode {found.st_mode & 0o777:o}, expected 700)"
    return None


class LiveFolder:
    """The relay's side."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: int | None = None  # when the directory had changed, as far as it has been read
        self._viewers: dict[str, int] = {}  # the descriptor of each viewer's file
        self._refused = ""

    def changed(self) -> bool:
        """Whether there is something to read: one system call, and one more for each viewer."""
        try:
            found: int | None = os.stat(self.path, follow_symlinks=False).st_mtime_ns
        except OSError:
            found = None
        return found != self._seen or any(not _lives(fd) for fd in self._viewers.values())

    def read(self) -> "tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]":
        """The gates that viewers have set, the orders that have come since the last call, and what is wrong.

        A directory that may not be used is left alone, which is said once.
        """
        gates: list[dict[str, Any]] = []
        orders: list[dict[str, Any]] = []
        faults: list[str] = []
        try:
            changed = os.stat(self.path, follow_symlinks=False).st_mtime_ns
        except OSError:
            self._forget(())
            self._seen = None
            return gates, orders, faults
        self._seen = changed if time.time_ns() - changed > _SETTLED else -1  # -1: look again, there may be more
        why = refusal(self.path)
        if why:
            faults = [f"{why}; no gate is taken from there"] if why != self._refused else []
            self._refused = why
            self._forget(())
            return gates, orders, faults
        names = sorted(os.listdir(self.path))
        viewers = [name for name in names if name.startswith(_GATES)]
        self._forget(viewers)
        for name in viewers:
            gates += self._gates(name, faults)
        for name in names:
            if name.endswith(_ORDER):
                orders += _loaded(os.path.join(self.path, name), "an order", faults)
                _remove(os.path.join(self.path, name))
        return gates, orders, faults

    def remove(self) -> None:
        """Remove the directory with all that is in it: the relay ends."""
        self._forget(())
        if refusal(self.path) is None and os.path.isdir(self.path):
            try:
                for name in os.listdir(self.path):
                    _remove(os.path.join(self.path, name))
                os.rmdir(self.path)
            except OSError:  # a viewer writes at this moment: what is left is read by nobody
                pass

    def _gates(self, name: str, faults: list[str]) -> "list[dict[str, Any]]":
        """The gates of one viewer; those of a viewer that has died are removed."""
        path = os.path.join(self.path, name)
        try:
            fd = _opened(path)
        except OSError:
            return []
        if not _lives(fd):
            os.close(fd)
            _remove(path)
            return []
        if name in self._viewers:
            os.close(self._viewers[name])
        self._viewers[name] = fd
        found = _loaded(path, "gates", faults)
        gates = found[0].get("gates") if found else []
        return [gate for gate in gates if isinstance(gate, dict)] if isinstance(gates, list) else []

    def _forget(self, there: "list[str] | tuple[()]") -> None:
        """Close the files of viewers that are not there any more."""
        for name in [name for name in self._viewers if name not in there]:
            os.close(self._viewers.pop(name))


class LiveViewer:
    """A viewer's side, for one running session. Raises CaptureError where it cannot be controlled."""

    def __init__(self, capture: str, capture_id: str) -> None:
        self.path = live_directory(capture, capture_id)
        self._name = f"{_GATES}{os.getpid()}-{os.urandom(4).hex()}.json"
        self._lock: int | None = None

    def set_gates(self, gates: "list[dict[str, Any]]") -> None:
        """Have these compiled gates in force, and none that this viewer has set before."""
        if not gates:
            self._unset()
            return
        fd, beside = self._write({"gates": gates})
        take(fd)
        self._rename(beside, self._name)
        if self._lock is not None:
            os.close(self._lock)
        self._lock = fd

    def release(self, held: int, how: str, frame: str | None = None) -> None:
        """Let a held frame go; `how` is continued, edited, dropped or answered, `frame` the new message or answer."""
        self._order({"release": held, "how": how} | ({} if frame is None else {"frame": frame}))

    def send(self, frame: str, session: str | None = None) -> None:
        """Send a request of the viewer's own to the server, in the session of that id."""
        self._order({"send": frame} | ({} if session is None else {"session": session}))

    def close(self) -> None:
        """Take back the gates that this viewer has set."""
        self._unset()

    def _order(self, order: "dict[str, Any]") -> None:
        fd, beside = self._write(order)
        os.close(fd)
        self._rename(beside, f"{time.time_ns():020}-{os.getpid()}-{next(_numbers):06}{_ORDER}")

    def _unset(self) -> None:
        if self._lock is not None:
            _remove(os.path.join(self.path, self._name))
            os.close(self._lock)
            self._lock = None

    def _write(self, content: "dict[str, Any]") -> tuple[int, str]:
        """A descriptor and the path of a new file with this content."""
        from json import dumps  # not for the relay: it imports `re`

        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise CaptureError(f"cannot control this session: {self.path}: {error.strerror}") from None
        why = refusal(self.path)
        if why:
            raise CaptureError(f"cannot control this session: {why}")
        beside = os.path.join(self.path, f".{os.urandom(8).hex()}")
        try:
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(fd, "wb", closefd=False) as file:
                file.write(dumps(content).encode())
        except OSError as error:
            raise CaptureError(f"cannot control this session: {self.path}: {error.strerror}") from None
        return fd, beside

    def _rename(self, beside: str, name: str) -> None:
        try:
            os.replace(beside, os.path.join(self.path, name))
        except OSError as error:  # the relay has ended, and has removed the directory
            raise CaptureError(f"the session has ended: {error.strerror}") from None


def _lives(fd: int) -> bool:
    """Whether the viewer that has locked this file is there; without locks every viewer is taken for alive."""
    return is_live(fd, without_locks=True)


def _loaded(path: str, what: str, faults: list[str]) -> "list[dict[str, Any]]":
    """The object in a file, as the only element; nothing, and a fault, where there is none."""
    try:
        with open(_opened(path), "rb") as file:
            raw = file.read(LARGEST + 1)
        value = only_value(raw.decode(), _scan) if len(raw) <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return [value]
    faults.append(f"{path} holds no JSON object of {what} that can be read, and is ignored")
    return []


def _opened(path: str) -> int:
    """A descriptor of a file that can be read without waiting: no pipe, and no link to a device. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(f"{path} is not a file")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
