"""The key of this user: 32 random bytes in `~/.mcpspy/key`. On the `wrap` path: no heavy imports."""

import os

from mcpspy.capture.location import home, make_directory
from mcpspy.foreign_file import open_foreign

_BYTES = 32  # of the key


def user_key() -> bytes:
    """Return the key, which is created on first use. If it can be neither read nor created, return a temporary one."""
    path = _path()
    for _ in range(2):
        try:
            with open_foreign(path) as file:
                key = file.read(64)
            if len(key) == _BYTES:
                return key
        except OSError:
            pass
        try:
            _make(path)
        except OSError:
            break
    return os.urandom(_BYTES)


def _path() -> str:
    return os.path.join(home(), "key")


def _make(path: str) -> None:
    """Create the complete key at `path` in one step, because several servers may start at the same moment."""
    make_directory(os.path.dirname(path))
    draft = f"{path}-{os.getpid()}-{os.urandom(4).hex()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        try:
            os.write(fd, os.urandom(_BYTES))
        finally:
            os.close(fd)
        os.link(draft, path)  # unlike `rename`, it never replaces a key
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
