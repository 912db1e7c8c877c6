"""What the user is told when a command fails although nobody raised an error on purpose: one line, never a traceback.

Captures hold what strangers sent. A message may be nested so deeply that Python's stack ends, and a capture may find a
bug of ours. Both end the command here, and only here.
"""

import argparse
import re
import traceback
from collections.abc import Iterator

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.errors import CaptureError

_DEEP = 100  # levels: a frame with fewer brackets is not what ended the stack
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ROOT = "mcpspy"


def sentence(error: Exception, options: argparse.Namespace) -> str:
    """What ended a command, and where."""
    if isinstance(error, RecursionError):
        return _too_deep(options)
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if f"{_ROOT}/" in frame.filename]
    where = f" in {places[-1].filename.rpartition(f'{_ROOT}/')[2]}, line {places[-1].lineno}" if places else ""
    return f"a bug of mcpspy ended '{options.command}' ({type(error).__name__}: {error}){where}; please report it"


def _too_deep(options: argparse.Namespace) -> str:
    deepest = max(_deep_frames(options), default=None)
    if deepest is None:
        return f"a message is nested too deeply for '{options.command}'"
    levels, n, path = deepest
    return f"{path}: frame #{n} is nested too deeply for '{options.command}' ({levels} levels)"


def _deep_frames(options: argparse.Namespace) -> Iterator[tuple[int, int, str]]:
    """Levels, line number and capture of each frame that may have ended the stack."""
    for path in _paths(options):
        try:
            for record in Capture(path).records():
                if isinstance(record, Frame) and record.raw.count(b"{") + record.raw.count(b"[") > _DEEP:
                    yield _levels(record.raw), record.n, path
        except (CaptureError, OSError):
            continue  # it is no capture, or not the one that is wanted


def _paths(options: argparse.Namespace) -> Iterator[str]:
    """The arguments of a command, some of which are captures."""
    for value in vars(options).values():
        yield from (it for it in (value if isinstance(value, list) else [value]) if isinstance(it, str) and it)


def _levels(raw: bytes) -> int:
    """How deeply a frame is nested, whether or not it is JSON throughout."""
    level = deepest = 0
    for character in re.sub(rb"[^][{}]", b"", _STRING.sub(b"", raw)):
        level += 1 if character in b"[{" else -1
        deepest = max(deepest, level)
    return deepest
