"""What waits in a pipe. POSIX; `child_windows` has the same function for Windows.

Apart from `child`, which is imported before the server is started: `fcntl` takes 0.2 ms to load where it is a library
of its own.

Imported on the `wrap` path: nothing heavy here.
"""

import sys

if sys.platform == "win32":
    raise ImportError("mcpspy.process.pipes needs POSIX; child_windows has the same function for Windows")

import fcntl

_FIONREAD = 0x4004667F if sys.platform == "darwin" else 0x541B  # ioctl(2); `termios` has it, and takes 1 ms


def waiting(fd: int) -> int:
    """How many bytes wait to be read."""
    try:
        return int.from_bytes(fcntl.ioctl(fd, _FIONREAD, b"\0\0\0\0"), sys.byteorder)
    except OSError:
        return 0
