"""Create the file of a capture, and the continuation files of a long one.

On the `wrap` path: only built-in modules and modules of this package are imported.
"""

import errno
import os

from mcpspy.capture.format import MAGIC, take
from mcpspy.capture.location import directory, file_name, make_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 8  # attempts at a name: it has 16 random bits, and an import may create hundreds with the same start time

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# O_NONBLOCK: opening a FIFO without a reader must fail instead of blocking.


def open_new(folder: str | None, environ: dict[str, str], name: str, wall: int) -> tuple[int, str]:
    """Create a file in a directory of captures. Returns its descriptor, locked, and its path. Raises OSError."""
    place = directory(folder, environ)
    make_directory(place)
    return _create(lambda _: os.path.join(place, file_name(wall, name)))


def open_output(output: str, say: "Callable[[str], None]") -> tuple[int, str]:
    """Open the file `output`, replacing a finished capture; if it must not be replaced, open another name next to it.

    Raises OSError.
    """
    goes_on = _goes_on(output)
    fd = os.open(output, _FLAGS, 0o600)
    obstacle = _obstacle(fd) or goes_on
    if obstacle is None:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
        return fd, output
    os.close(fd)
    root, extension = os.path.splitext(output)
    fd, sibling = _create(lambda _: f"{root}-{os.getpid()}-{os.urandom(2).hex()}{extension}")
    say(f"{output} {obstacle}; this capture goes to {sibling}")
    return fd, sibling


def open_next(path: str, part: int) -> tuple[int, str]:
    """Create part `part` of the capture at `path`, in which it continues. Raises OSError."""
    root, extension = os.path.splitext(path)
    plain = f"{root}-{part}{extension}"
    return _create(lambda number: f"{root}-{part}-{os.urandom(2).hex()}{extension}" if number else plain)


def _create(name: "Callable[[int], str]") -> tuple[int, str]:
    """Create and lock a file under the first name that is not in use."""
    for number in range(_TRIES):
        path = name(number)
        try:
            fd = os.open(path, _FLAGS | os.O_EXCL, 0o600)
        except FileExistsError:
            if number == _TRIES - 1:
                raise
            continue
        take(fd)
        break
    return fd, path


def _goes_on(path: str) -> str | None:
    """Return why a file that is not live must still not be overwritten: its capture continues in another file."""
    try:
        if not os.path.isfile(path) or not os.path.getsize(path):
            return None
    except OSError:
        return None
    from mcpspy.capture.parts import JoinedFiles  # a heavy import: only if there is a file
    from mcpspy.errors import CaptureError

    try:
        with JoinedFiles(path) as files:
            return "is a live capture" if files.live else None
    except CaptureError:
        return None


def _obstacle(fd: int) -> str | None:
    """Return why the file behind `fd` must not be overwritten; None if it may be, and then it is locked."""
    if os.fstat(fd).st_mode & 0o170000 != 0o100000:
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    if not take(fd):
        return "is a live capture"
    head = os.read(fd, len(MAGIC))
    return None if head in (b"", MAGIC) else "is not a capture"
