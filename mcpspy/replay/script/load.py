"""The file of a capture: read as a script, judged whether it can be played, replaced by a new session."""

import os
import shutil
import tempfile
from collections.abc import Callable

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError
from mcpspy.replay.script.forwarded import as_forwarded
from mcpspy.replay.script.turns import Script, read
from mcpspy.text import size_text

LARGEST = 64 << 20
"""Bytes of a frame: what is replayed has to be decoded as a whole."""


def load(path: str, say: Callable[[str], None], *, forwarded: bool = False) -> Script:
    """The script of the capture at `path`; `say` gets what is to be known of it.

    With `forwarded` it has the client's frames as a gate let them through.

    Raises CaptureError if there is no client in it, or it ends or is broken in mid-session.
    """
    if Capture(path).live:
        raise CaptureError(f"{path} is still being recorded: end its session first")
    script = script_of(path, forwarded=forwarded)
    if not any(message.sender == "client" for message in script.messages):
        raise CaptureError(f"{path} has no message of a client: there is nothing to replay")
    if script.lost:
        raise CaptureError(f"{path} is cut in mid-session ({script.lost}): record it again")
    if not script.complete:
        waiting = [turn for turn in script.turns if turn.unanswered]
        if waiting:
            what = f"{waiting[0].method} (#{waiting[0].cause.n})"
            raise CaptureError(f"{path} is cut in mid-session: {what} has no answer, nor the capture an end")
        say(f"{path} has no end: its relay was killed; what is there is taken for all of it")
    return script


def script_of(path: str, advance: Callable[[int], None] | None = None, *, forwarded: bool = False) -> Script:
    """The script of whatever is in the capture at `path`. Raises CaptureError.

    `advance` is called with each number of bytes that was read, for a progress bar.
    """
    capture = Capture(path)
    records = capture.records(LARGEST, advance)
    script = read(capture.header, as_forwarded(records) if forwarded else records)
    for message in script.messages:
        if message.frame.omitted:
            size = f"{size_text(message.frame.size)}, more than the {size_text(LARGEST)} that can be replayed"
            raise CaptureError(f"{path} cannot be replayed: frame #{message.n} has {size}")
    return script


def accept(new: str, capture: str) -> None:
    """Let the session at `new` be the capture: all of it or nothing, with the permissions of the old one.

    A symbolic link stays one. Raises CaptureError.
    """
    target = os.path.realpath(capture)
    try:
        fd, beside = tempfile.mkstemp(prefix=f"{os.path.basename(target)}.", dir=os.path.dirname(target))
        os.close(fd)
        try:
            shutil.copyfile(new, beside)
            if os.path.exists(target):
                shutil.copymode(target, beside)
            os.replace(beside, target)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as error:
        raise CaptureError(f"cannot replace {capture}: {error.strerror}") from error
