"""Output files: written completely or not at all, and readable only by the user.

While an output is written, other files are read, and programs may be started. Their errors must not be reported as
errors of the output. So `OutputBytes` marks its own errors.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class WriteError(OSError):
    """An output cannot be written."""


class OutputClosed(WriteError, BrokenPipeError):
    """The reader of an output has closed it."""


class OutputBytes(io.FileIO):
    """An output without a buffer. An error while it is written is a WriteError."""

    def write(self, raw: "ReadableBuffer") -> int:
        """Write bytes, and return their number. Raises WriteError."""
        try:
            return super().write(raw)
        except BrokenPipeError as error:
            raise OutputClosed(error.errno, error.strerror) from error
        except OSError as error:
            raise WriteError(error.errno, error.strerror) from error


@contextmanager
def output_file(path: str, *, replace: bool) -> Iterator[BinaryIO]:
    """Open a file for writing, mode 0600, which appears at `path` when the block ends without an exception.

    If the block fails, the incomplete file is removed, and with `replace` an existing file at `path` stays unchanged.
    Raises UsageError if the file exists and may not be replaced, or if it cannot be written. Only regular files are
    replaced: replacing a device, such as /dev/null, or a pipe would break it for all programs.
    """
    if not replace and os.path.lexists(path):
        raise UsageError(f"{path} exists; --force replaces it")
    if os.path.isdir(path):
        raise UsageError(f"{path} is a directory; give the name of a file")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{path} is a device, a pipe or a socket; give the name of a file")
    partial = f"{path}.{os.getpid()}.part"
    try:
        file = os.open(partial, _FLAGS, 0o600)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        with io.BufferedWriter(OutputBytes(file, "wb")) as opened:
            yield opened
        _put(partial, path, replace=replace)
    except WriteError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            os.unlink(partial)


def _put(partial: str, path: str, *, replace: bool) -> None:
    """Give the complete file its final name. Raises UsageError."""
    if not replace:
        try:
            os.link(partial, path)  # fails if another program has created that file in the meantime
        except FileExistsError:
            raise UsageError(f"{path} exists; --force replaces it") from None
        except OSError:  # a file system without hard links
            pass
        else:
            return
    try:
        os.replace(partial, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
