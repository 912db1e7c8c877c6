"""The live directory of a capture: how viewers control the relay of a running session.

    .<capture id>.live/          next to the capture; mode 0700, owned by the relay's user, not a symbolic link
        gates-<name>.json        {"gates":[…]}: the gates of one viewer, which keeps the file locked while it runs
        <number>.order.json      {"release":3,"how":"edited","frame":"…"} or {"send":"…","session":…}: done once

A viewer creates the directory. The relay checks it with one `stat` at intervals, so a session without viewers costs
almost nothing. Files are written under a temporary name and renamed, so the relay never reads an incomplete file. The
id of a capture is random, so nobody can prepare a directory for a future capture. The lock of a viewer ends with its
process, and then its gates are no longer in force. Its orders are still carried out.

This module does not interpret gates. Imported on the `wrap` path after the pumps have started: no heavy imports here.
"""

import os
import stat
import time
from itertools import count

from mcpspy.capture.format import is_live, take
from mcpspy.errors import CaptureError
from mcpspy.foreign_file import descriptor, read_foreign
from mcpspy.json_values import only_value, scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 16 << 20
"""The largest file that is read, in bytes: an edited frame has at most a few MiB."""
_VIEWERS, _ORDERS = 16, 100
"""The most viewers whose gates are in force, and the most orders of one look: traffic waits meanwhile."""
_ORDER_BYTES = 4 << 20
"""The most bytes of the orders of one look, unless a single order is larger."""
_ORDER, _GATES = ".order.json", "gates-"
_SETTLED = 50_000_000  # nanoseconds after which a file system gives a new change a different time
_numbers = count(1)
_scan = scanner()


def live_directory(capture: str, capture_id: str) -> str:
    """Return the path of the live directory of a capture, whether it exists or not."""
    return os.path.join(os.path.dirname(os.path.abspath(capture)), f".{capture_id}.live")


def refusal(path: str) -> str | None:
    """Return why a live directory must not be used; None if it may be, or if it does not exist."""
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
    """The live directory, as the relay uses it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: int | None = None  # modification time of the directory when it was last read
        self._viewers: dict[str, int] = {}  # file of a viewer -> its descriptor
        self._refused = ""

    def changed(self) -> bool:
        """Return whether there is something to read. It costs one system call, and one more per viewer."""
        try:
            found: int | None = os.stat(self.path, follow_symlinks=False).st_mtime_ns
        except OSError:
            found = None
        return found != self._seen or any(not _lives(fd) for fd in self._viewers.values())

    def read(self) -> "tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]":
        """Return the gates set by viewers, the orders since the last call, and the faults found.

        A directory that must not be used is ignored, and reported once.
        """
        gates: list[dict[str, Any]] = []
        faults: list[str] = []
        try:
            changed = os.stat(self.path, follow_symlinks=False).st_mtime_ns
        except OSError:
            self._forget(())
            self._seen = None
            return [], [], faults
        # -1: read again, because more changes may follow with the same time
        self._seen = changed if time.time_ns() - changed > _SETTLED else -1
        why = refusal(self.path)
        if why:
            faults = [f"{why}; no gate is taken from there"] if why != self._refused else []
            self._refused = why
            self._forget(())
            return [], [], faults
        names = sorted(os.listdir(self.path))
        viewers = [name for name in names if name.startswith(_GATES)]
        if len(viewers) > _VIEWERS:
            faults.append(f"more than {_VIEWERS} viewers have set gates; those of the others are not in force")
            del viewers[_VIEWERS:]
        self._forget(viewers)
        for name in viewers:
            gates += self._gates(name, faults)
        orders = self._orders([name for name in names if name.endswith(_ORDER)], faults)
        return gates, orders, faults

    def remove(self) -> None:
        """Remove the directory and everything in it when the relay ends."""
        self._forget(())
        if refusal(self.path) is None and os.path.isdir(self.path):
            try:
                for name in os.listdir(self.path):
                    _remove(os.path.join(self.path, name))
                os.rmdir(self.path)
            except OSError:  # a viewer is writing at this moment; nobody reads what remains
                pass

    def _gates(self, name: str, faults: list[str]) -> "list[dict[str, Any]]":
        """Return the gates of one viewer; if the viewer has ended, its file is removed."""
        path = os.path.join(self.path, name)
        try:
            fd = descriptor(path, follow=False)
        except OSError:
            return []
        if not _lives(fd):
            os.close(fd)
            _remove(path)
            return []
        if name in self._viewers:
            os.close(self._viewers[name])
        self._viewers[name] = fd
        found = _loaded(path, "gates", faults, fd)
        gates = found[0].get("gates") if found else []
        return [gate for gate in gates if isinstance(gate, dict)] if isinstance(gates, list) else []

    def _orders(self, names: list[str], faults: list[str]) -> "list[dict[str, Any]]":
        """Return the first orders and remove their files; the rest is read at the next look.

        A directory with the name of an order cannot be removed, so it must not take the place of one.
        """
        orders: list[dict[str, Any]] = []
        number = total = 0
        for name in names:
            path = os.path.join(self.path, name)
            size = _size(path)
            if size is None:
                continue
            number, total = number + 1, total + size
            if number > _ORDERS or (number > 1 and total > _ORDER_BYTES):
                self._seen = -1
                break
            orders += _loaded(path, "an order", faults)
            _remove(path)
        return orders

    def _forget(self, there: "list[str] | tuple[()]") -> None:
        """Close the files of viewers that have ended."""
        for name in [name for name in self._viewers if name not in there]:
            os.close(self._viewers.pop(name))


class LiveViewer:
    """The live directory, as a viewer uses it, for one running session.

    Raises CaptureError if the session cannot be controlled.
    """

    def __init__(self, capture: str, capture_id: str) -> None:
        self.path = live_directory(capture, capture_id)
        self._name = f"{_GATES}{os.getpid()}-{os.urandom(4).hex()}.json"
        self._lock: int | None = None

    def set_gates(self, gates: "list[dict[str, Any]]") -> None:
        """Replace the gates of this viewer by these compiled gates."""
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
        """Release a held frame; `how` is continued, edited, dropped or answered, `frame` the new message or answer."""
        self._order({"release": held, "how": how} | ({} if frame is None else {"frame": frame}))

    def send(self, frame: str, session: str | None = None) -> None:
        """Send a request of the viewer to the server, in the session with that id."""
        self._order({"send": frame} | ({} if session is None else {"session": session}))

    def close(self) -> None:
        """Remove the gates of this viewer."""
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
        """Create a new file with this content. Return its descriptor and path."""
        from json import dumps  # not at module level, because it imports `re`

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
        fd = -1
        try:
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(fd, "wb", closefd=False) as file:
                file.write(dumps(content).encode())
        except OSError as error:
            if fd >= 0:
                os.close(fd)
                _remove(beside)
            raise CaptureError(f"cannot control this session: {self.path}: {error.strerror}") from None
        return fd, beside

    def _rename(self, beside: str, name: str) -> None:
        try:
            os.replace(beside, os.path.join(self.path, name))
        except OSError as error:  # the relay has ended and has removed the directory
            _remove(beside)
            raise CaptureError(f"the session has ended: {error.strerror}") from None


def _lives(fd: int) -> bool:
    """Return whether the viewer that locked this file still runs; on systems without locks, always True."""
    return is_live(fd, without_locks=True)


def _loaded(path: str, what: str, faults: list[str], fd: int | None = None) -> "list[dict[str, Any]]":
    """Return a list with the object in a file; if it cannot be read, an empty list, and a fault is added.

    `fd` is the descriptor of the file if it is open already: its viewer may remove it at any moment.
    """
    try:
        raw = read_foreign(path, LARGEST, follow=False) if fd is None else os.read(fd, LARGEST + 1)
        value = only_value(raw.decode(), _scan) if len(raw) <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return [value]
    faults.append(f"{path} holds no JSON object of {what} that can be read, and is ignored")
    return []


def _size(path: str) -> int | None:
    """Return the size of a file, which may also be a pipe or a link; None for a directory, or if there is nothing."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return None if stat.S_ISDIR(found.st_mode) else found.st_size


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
