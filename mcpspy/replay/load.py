"""A capture, read as a script, and whether it can be played."""

from collections.abc import Callable

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError
from mcpspy.replay.script import Script, read


def load(path: str, say: Callable[[str], None]) -> Script:
    """The script of the capture at `path`; `say` gets what is to be known of it.

    Raises CaptureError if there is no client in it, or it ends or is broken in mid-session.
    """
    if Capture(path).live:
        raise CaptureError(f"{path} is still being recorded: end its session first")
    script = script_of(path)
    if not any(message.sender == "client" for message in script.messages):
        raise CaptureError(f"{path} holds nothing that a client said: there is no session to play")
    if script.lost:
        raise CaptureError(f"{path} is cut in mid-session ({script.lost}): record it again")
    if not script.complete:
        waiting = [turn for turn in script.turns if turn.unanswered]
        if waiting:
            what = f"{waiting[0].method} (#{waiting[0].cause.n})"
            raise CaptureError(f"{path} is cut in mid-session: {what} has no answer, nor the capture an end")
        say(f"{path} has no end: its relay was killed; what is there is taken for all of it")
    return script


def script_of(path: str) -> Script:
    """The script of whatever is in the capture at `path`. Raises CaptureError."""
    capture = Capture(path)
    return read(capture.header, capture.records())
