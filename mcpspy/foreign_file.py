"""Files that other programs or people wrote: opened without waiting, and read up to a size.

A path may lead to anything: to a FIFO, on which a read waits for ever, to a device without an end, to a file of any
size. Only regular files are opened here, and what is read as a whole has a limit. Every error is an OSError with a
`strerror` that says what is there, so callers report it like any other error of a file.

This module is on the `wrap` path, so it imports only light modules.
"""

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

LARGEST = 16 << 20
"""The size in bytes of the largest file that is read as a whole, unless a caller knows better."""

_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_COMPARED = 2000  # names of a directory
_SUBSTITUTED = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
_KINDS = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegular(OSError):
    """The path leads to a pipe, a socket or a device."""


def open_foreign(path: str, *, buffering: int = -1, follow: bool = True) -> "BinaryIO":
    """Open a regular file for reading. `follow` False refuses a symbolic link. Raises OSError."""
    try:
        opened: Any = open(path, "rb", buffering, opener=lambda name, _: descriptor(name, follow=follow))  # noqa: SIM115
    except ValueError as error:  # a null byte in the path
        raise OSError(errno.EINVAL, str(error), path) from None
    return opened  # type: ignore[no-any-return]


def descriptor(path: str, *, follow: bool = True) -> int:
    """Open a regular file for reading and return its descriptor. Raises OSError."""
    _check(os.stat(path, follow_symlinks=follow), path)  # first, because opening a device may already have effects
    fd = os.open(path, os.O_RDONLY | _FLAGS | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    try:
        _check(os.fstat(fd), path)  # again, because the path may have been replaced
    except OSError:
        os.close(fd)
        raise
    return fd


def read_foreign(path: str, most: int = LARGEST, *, follow: bool = True, named: bool = False) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raises OSError.

    With `named`, the user has given the path, which may then be the pipe of a process substitution of a shell,
    `--lock <(git show main:mcpspy.lock)`, or standard input. It has a path that no file in a directory has.
    """
    substituted = named and path.startswith(_SUBSTITUTED) and stat.S_ISFIFO(os.stat(path).st_mode)
    with open(path, "rb") if substituted else open_foreign(path, follow=follow) as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", path)
    return raw


def similar(path: str) -> str:
    """Return the path of a file in the same directory with a similar name, for a path that is wrong; else empty.

    Of a large directory, only the first names are compared: each takes 30 µs.
    """
    from difflib import get_close_matches  # imported only for an error
    from itertools import islice

    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            near = get_close_matches(name, [entry.name for entry in islice(entries, _COMPARED)], n=1)
    except (OSError, ValueError):
        return ""
    return os.path.join(folder, near[0]) if near else ""


def _check(found: os.stat_result, path: str) -> None:
    """Raise OSError if it is not a regular file; a directory gets the error of the system."""
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if kind != stat.S_IFREG:
        raise NotRegular(errno.EINVAL, f"it is not a regular file but {_KINDS.get(kind, 'a link')}", path)
