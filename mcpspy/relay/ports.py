"""Who has taken a port: the process that listens on it, by the tables of Linux; elsewhere nobody can tell."""

import os
from collections.abc import Iterator

_LISTEN = "0A"


def holder(port: int) -> str | None:
    """The command and pid of a process of ours that listens on a TCP port; None if there is none to be seen."""
    inodes = set(_listening(port))
    for pid in filter(str.isdecimal, _names("/proc")):
        for fd in _names(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") in inodes:
                    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
                        return f"{comm.read().strip()} (pid {pid})"
            except OSError:
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
