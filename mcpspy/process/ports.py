"""Ports to listen on: bind the one that `--listen` names, and find the process that uses it already.

The latter works on Linux only, by the tables in /proc.
"""

import errno
import os
import socket
from collections.abc import Iterator
from typing import NamedTuple

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
