"""Sockets of this machine: the port of a command that serves, who holds a port or a connection, and what ends serving.

`bound` binds the port that `--listen` names, and `holder` finds the process that uses it already. The latter works on
Linux only, by the tables in /proc.

`is_still_held` tells whether the client of a connection has closed it, or only the half that it sends on (A-11). TCP
shows both as the end of the client's bytes; only a later write is answered by a reset. Linux knows more about a client
on the same machine. The client's socket exists while our side is open, and belongs to a process until that process
closes it. The kernel reports the inode of the socket, which is 0 if no process holds it (sock_diag(7)).
"""

import errno
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from mcpspy.errors import UsageError

_LISTEN = "0A"


class Holder(NamedTuple):
    """A process and its command line."""

    pid: int
    words: list[str]


def listening_place(text: str, example: int, option: str = "--listen") -> tuple[str, int]:
    """Parse the value of `--listen HOST:PORT`. Raises UsageError, which suggests `example` as port."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option} takes HOST:PORT, such as 127.0.0.1:{example}, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def bound(host: str, port: int, option: str = "--listen") -> socket.socket:
    """Return a listening socket; no second process can share the port. Raises UsageError.

    `option` is the option that chooses another port.
    """
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except (OSError, UnicodeError) as error:
        if listener:
            listener.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            who = holder(port)
            taken = f"{host}:{port} is in use" + (f" by {' '.join(who.words[:1])} (pid {who.pid})" if who else "")
            raise UsageError(f"{taken}: end it, or choose another port with {option}") from None
        raise UsageError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    return listener


def bound_path(path: str) -> socket.socket:
    """Return a socket that listens at a path, where only this user may connect. Raises UsageError.

    A socket that a process has left there is replaced.
    """
    if sys.platform == "win32":
        raise UsageError("--listen unix:PATH needs a system with Unix sockets")
    listener = socket.socket(socket.AF_UNIX)
    try:
        if _is_left(path):
            os.unlink(path)
        mask = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(mask)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"{path} is in use: end the process that listens there, or choose another path") from None
        raise UsageError(f"cannot listen on {path}: {error.strerror or error}") from None
    return listener


def _is_left(path: str) -> bool:
    """Return whether a path is a Unix socket on which no process listens."""
    if sys.platform == "win32" or not os.path.exists(path):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == errno.ECONNREFUSED and stat.S_ISSOCK(os.stat(path).st_mode)


def to_dial(host: str) -> str:
    """Return the host for a URL with which a client on this machine reaches a listener on `host`."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 (compared only)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def holder(port: int) -> Holder | None:
    """Return the process that listens on a TCP port; None if it cannot be found or belongs to another user."""
    inodes = set(_listening(port))
    for pid in filter(str.isdecimal, _names("/proc") if inodes else ()):
        for fd in _names(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") in inodes:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        return Holder(int(pid), [os.fsdecode(word) for word in file.read().split(b"\0") if word])
            except OSError:  # the process has ended, or belongs to another user
                continue
    return None


def _listening(port: int) -> Iterator[str]:
    """Yield the sockets that listen on a port, in the form of the links to them (proc(5), /proc/net/tcp)."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as lines:
                rows = [line.split() for line in lines][1:]
        except OSError:
            continue
        for row in rows:
            if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port:
                yield f"socket:[{row[9]}]"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


_SOCK_DIAG = 4  # the protocol NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # the message SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # the flag NLM_F_REQUEST
_MESSAGE = struct.Struct("=IHHII")  # struct nlmsghdr
_QUESTION = struct.Struct("=BBBxI")  # the beginning of struct inet_diag_req_v2
_SOCKET = struct.Struct("!HH16s16s")  # the beginning of struct inet_diag_sockid
_ANY_SOCKET = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # its rest: interface and cookie
_INODE = struct.Struct("=I")
_INODE_AT = _MESSAGE.size + 68  # in struct inet_diag_msg


def is_still_held(client: Any, own: Any) -> bool:
    """Return whether a process on this machine still has the client's end of a connection open.

    `client` and `own` are the addresses of the two ends. Returns False if this is unknown: for a client on another
    machine or in another network namespace, and on systems other than Linux.
    """
    family = getattr(socket, "AF_NETLINK", None)
    if family is None or not isinstance(client, tuple) or not isinstance(own, tuple):
        return False
    version = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    try:
        ends = [socket.inet_pton(version, end[0].partition("%")[0]) for end in (client, own)]
        question = _QUESTION.pack(version, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
        question += _SOCKET.pack(client[1], own[1], *ends) + _ANY_SOCKET
        with socket.socket(family, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.setblocking(False)  # the kernel answers within the call
            kernel.send(_MESSAGE.pack(_MESSAGE.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
            answer = kernel.recv(4096)
    except OSError:
        return False
    _, kind, _, _, _ = _MESSAGE.unpack_from(answer)
    return bool(kind == _BY_FAMILY and _INODE.unpack_from(answer, _INODE_AT)[0])


_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


class SignalLoop(Protocol):
    """The part of an asyncio loop that handles signals."""

    def add_signal_handler(self, sig: int, callback: Callable[[], object], /) -> None:
        """Call `callback` in the loop when the signal is received."""


def on_ending_signal(loop: SignalLoop, end: Callable[[], object]) -> None:
    """Call `end` in the loop at SIGINT, SIGTERM or SIGHUP."""
    for name in _ENDING:
        try:
            loop.add_signal_handler(getattr(signal, name), end)
        except (AttributeError, NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            continue
