"""Who has taken a port: the process that listens on it, by the tables of Linux; elsewhere nobody can tell."""

import os
from collections.abc import Iterator
from typing import NamedTuple

_LISTEN = "0A"


class Holder(NamedTuple):
    """A process, and its command line."""

    pid: int
    words: list[str]


def holder(port: int) -> Holder | None:
    """The process of ours that listens on a TCP port; None if there is none to be seen."""
    inodes = set(_listening(port))
    for pid in filter(str.isdecimal, _names("/proc") if inodes else ()):
        for fd in _names(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") in inodes:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        return Holder(int(pid), [os.fsdecode(word) for word in file.read().split(b"\0") if word])
            except OSError:  # ended, or somebody else's
                continue
    return None


def _listening(port: int) -> Iterator[str]:
    """The sockets that listen on a port, as links to them read (proc(5), /proc/net/tcp)."""
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
