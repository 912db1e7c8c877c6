"""The number of bytes in a pipe. POSIX; `child_windows` has the same function for Windows.

This is not in `child`, which is imported before the server is started, because loading `fcntl` takes 0.2 ms where it is
a separate library.

Imported on the `wrap` path: no heavy imports here.
"""

import sys

if sys.platform == "win32":
    raise ImportError("mcpspy.process.pipes needs POSIX; child_windows has the same function for Windows")

import fcntl

_FIONREAD = 0x4004667F if sys.platform == "darwin" else 0x541B  # ioctl(2); `termios` has it, and takes 1 ms


def waiting(fd: int) -> int:
    """Return the number of unread bytes in a pipe."""
    try:
        return int.from_bytes(fcntl.ioctl(fd, _FIONREAD, b"\0\0\0\0"), sys.byteorder)
    except OSError:
        return 0
