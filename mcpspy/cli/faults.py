"""The message for an unexpected failure of a command: one line, never a traceback.

Captures contain data from unknown programs. A message may be nested so deeply that Python's stack overflows, and a
capture may trigger a bug of ours. Both end the command, and are reported only here.
"""

import argparse
import os
import re
import traceback
from collections.abc import Iterator

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.errors import CaptureError
from mcpspy.output_file import WriteError

_DEEP = 100  # levels; a frame with at most this many opening brackets did not overflow the stack
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def sentence(error: Exception, options: argparse.Namespace) -> str:
    """Return why a command failed, and where."""
    if isinstance(error, RecursionError):
        return _too_deep(options)
    return (
        f"a bug of mcpspy ended '{options.command}' ({type(error).__name__}: {error}){_place(error)}; please report it"
    )


def system_error(error: OSError, command: str) -> str:
    """Return which file, or which step of a command, the operating system refused."""
    why = error.strerror or str(error) or type(error).__name__
    if isinstance(error, WriteError):
        return f"cannot write the output: {why}"
    if error.filename2 is not None:
        return f"'{command}' cannot rename {_name(error.filename)} to {_name(error.filename2)}: {why}"
    if error.filename is not None:
        return f"'{command}' cannot access {_name(error.filename)}: {why}"
    return f"'{command}' failed{_place(error)}: {why}"


def _name(path: object) -> str:
    return os.fsdecode(path) if isinstance(path, bytes | str) else f"the file descriptor {path}"


def _place(error: BaseException) -> str:
    """Return the line of mcpspy that raised an exception, as a part of a sentence."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_ROOT + os.sep)]
    return f" in {os.path.relpath(ours[-1].filename, _ROOT)}, line {ours[-1].lineno}" if ours else ""


def _too_deep(options: argparse.Namespace) -> str:
    deepest = max(_deep_frames(options), default=None)
    if deepest is None:
        return f"a message is nested too deeply for '{options.command}'"
    levels, n, path = deepest
    return f"{path}: frame #{n} is nested too deeply for '{options.command}' ({levels} levels)"


def _deep_frames(options: argparse.Namespace) -> Iterator[tuple[int, int, str]]:
    """Yield levels, line number and capture of each frame that may have overflowed the stack."""
    for path in _paths(options):
        try:
            for record in Capture(path).records():
                if isinstance(record, Frame) and record.raw.count(b"{") + record.raw.count(b"[") > _DEEP:
                    yield _levels(record.raw), record.n, path
        except (CaptureError, OSError):
            continue  # the argument is not a capture


def _paths(options: argparse.Namespace) -> Iterator[str]:
    """Yield the arguments of a command that may be captures."""
    for value in vars(options).values():
        yield from (it for it in (value if isinstance(value, list) else [value]) if isinstance(it, str) and it)


def _levels(raw: bytes) -> int:
    """Return the nesting depth of a frame, which need not be valid JSON."""
    level = deepest = 0
    for character in re.sub(rb"[^][{}]", b"", _STRING.sub(b"", raw)):
        level += 1 if character in b"[{" else -1
        deepest = max(deepest, level)
    return deepest
