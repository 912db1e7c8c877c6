"""The file of a capture: parse it as a script, check whether it can be played, replace it by a new session."""

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
"""Maximum size of a frame, in bytes: a replayed frame has to be decoded as a whole."""


def load(path: str, say: Callable[[str], None], *, forwarded: bool = False) -> Script:
    """Return the script of the capture at `path`; `say` receives a notice if the capture has no end.

    With `forwarded`, the client's frames are those that a gate forwarded.

    Raises CaptureError if the capture has no message of a client, or is truncated or damaged in mid-session.
    """
    if Capture(path).live:
        raise CaptureError(f"{path} is still being recorded: end its session first")
    script = script_of(path, forwarded=forwarded)
    if not any(message.sender == "client" for message in script.messages):
        raise CaptureError(f"{path} has no message of a client: there is nothing to replay")
    if script.lost:
        raise CaptureError(f"{path} is truncated in mid-session ({script.lost}): record it again")
    if not script.complete:
        waiting = [turn for turn in script.turns if turn.unanswered]
        if waiting:
            what = f"{waiting[0].method} (#{waiting[0].cause.n})"
            raise CaptureError(f"{path} is truncated in mid-session: {what} has no answer, and the capture has no end")
        say(f"{path} has no end, because its relay was killed; it is replayed as far as it goes")
    return script


def script_of(path: str, advance: Callable[[int], None] | None = None, *, forwarded: bool = False) -> Script:
    """Return the script of any capture at `path`. Raises CaptureError.

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
    """Replace the capture by the session at `new`: completely or not at all, with the permissions of the old file.

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
