"""The companion of a relay (`wrap --check`): it follows the capture and writes each error to stderr as it happens.

An error is a finding of that severity, or a handshake that failed.

The relay does not decode (see docs/architecture.md). So this process decodes, at the lowest priority, from the file
like any viewer. It shares only stderr with the relay, and must not block stderr for the server: a line is written only
while the client keeps up with reading. Clients wait for every process that has stderr open. So the companion never
outlives its relay, and ensures that before it imports anything slow.
"""

import os
import stat
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    pass

_STARTS = ("start", "handshake", "login")  # kinds of problems
_LONGEST = 1000  # characters of a line
_POLL = 0.02  # seconds between two checks of the capture, or of stderr
_UNREAD = 4096  # bytes in the pipe: with more, the client is not keeping up
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_TIOCOUTQ = 0x5411  # ioctl(2) on Linux: bytes that a socket or a terminal has not sent yet


def main() -> None:
    """Follow the capture at the path in the first argument. The second is the process id of the relay."""
    path, relay = sys.argv[1], int(sys.argv[2])
    die_with(relay)
    from mcpspy.errors import CaptureError
    from mcpspy.text import printable

    try:
        for error in _errors(path):
            say(f"mcpspy: {error}\n", relay)
    except (CaptureError, OSError):  # the capture or stderr is gone: there is no reader for a message
        os._exit(1)
    except Exception as error:  # a bug in the check must not disturb anything else
        what = printable(f"{type(error).__name__}: {error}", 200)
        say(f"mcpspy: the check has ended ({what}); traffic goes on\n", relay)
        os._exit(1)


def _errors(path: str) -> "Iterator[str]":
    """Yield the findings of severity error and failed handshakes as text, until the capture is no longer live."""
    from mcpspy.capture.reader import Capture
    from mcpspy.problems.fold import Problems
    from mcpspy.report.lines import sentence
    from mcpspy.rules import LocatedFinding
    from mcpspy.rules.judge import judged_events
    from mcpspy.text import printable

    capture = Capture(path)
    problems, version, reported = Problems(capture.header), 0, set[str]()
    for event in judged_events(capture.follow(lambda: time.sleep(_POLL)), problems):
        if isinstance(event, LocatedFinding) and event.finding.severity == "error":
            yield f"#{event.finding.frame} {sentence(event.finding)} [{event.finding.rule}]"
        elif problems.version != version:
            version = problems.version
            for problem in problems.made():
                if problem.kind in _STARTS and problem.failed and problem.likeness not in reported:
                    reported.add(problem.likeness)
                    yield printable(f"{problem.headline}; {problem.cause.text}", _LONGEST)


def say(line: str, relay: int) -> None:
    """Write a line to stderr when the client has read what is there. Exit if the relay has ended meanwhile."""
    while unread() > _UNREAD:
        if os.getppid() != relay:
            os._exit(1)
        time.sleep(_POLL)
    os.write(2, line.encode("utf-8", "replace"))


def unread() -> int:
    """Return the number of unread bytes in stderr, or 0 if that is unknown."""
    kind = os.fstat(2).st_mode
    if stat.S_ISFIFO(kind):
        from mcpspy.process.pipes import waiting

        return waiting(2)
    if stat.S_ISSOCK(kind) and sys.platform == "linux":
        try:
            return int.from_bytes(fcntl.ioctl(2, _TIOCOUTQ, b"\0\0\0\0"), sys.byteorder)
        except OSError:
            pass
    return 0


def die_with(relay: int) -> None:
    """Let the kernel end this process with the relay, if it can. Otherwise it ends with the capture."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != relay:  # the relay ended before the call
        os._exit(1)
