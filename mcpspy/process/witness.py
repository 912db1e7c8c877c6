"""A small process that finds out whether a signal was sent to our process alone or to the whole process group.

A client that signals the group reaches the server itself, so `wrap` must not forward that signal. A signal does not
show its target (`sigaction(2)` has only the sender). The witness is a member of the group that blocks all signals. If
it has a signal pending, that signal was sent to the group. `wrap` asks over a pipe, and the witness removes the signal
from its pending signals before it answers.

A signal to a group is delivered to one member after another. Linux begins with the newest member, so the witness gets
it before `wrap`. Other systems may use another order, so there the witness checks a second time before it answers no.
The kernel merges equal pending signals. If the group gets the same signal again between the moment at which `wrap`
receives it and the answer (30 µs), `wrap` sees two signals and the witness one, and the second one is forwarded.

The witness closes descriptors 0 to 2 and all others except its two pipes, so no peer waits for it. It ends when the
pipe of questions is closed, that is with `wrap`, however `wrap` ends (S-07). It uses plain POSIX calls, and was tested
on Linux only.

Imported on the `wrap` path: no heavy imports here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import select
import sys
import time

if sys.platform == "win32":
    raise ImportError("mcpspy.process.witness needs POSIX: it tells signals apart")

_SECOND_LOOK = 0 if sys.platform == "linux" else 0.0005  # seconds until the witness checks again
_PATIENCE = 200  # milliseconds to wait for an answer; it takes 10 µs unless the witness is stopped


class Witness:
    """A forked process in our group, and the two pipes to it."""

    __slots__ = ("_answers", "_pid", "_questions", "_sequence")

    def __init__(self, most: int) -> None:
        """Fork; the caller has blocked the signals in question, and the new process inherits that. Raises OSError.

        The new process closes all descriptors below `most` except its own.

        Other threads may run. A fork copies the locks that they hold, so the new process makes only system calls and
        imports nothing. A fork before there are threads would delay the first byte by 1 ms.
        """
        asked, self._questions = os.pipe()
        self._answers, told = os.pipe()
        self._sequence = 0
        if sys.version_info >= (3, 12):  # these versions warn about a fork in a process with threads
            import _warnings

            _warnings.filters.insert(0, ("ignore", None, DeprecationWarning, None, 0))
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _testify(asked, told, most)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(told)

    def has(self, number: int) -> bool:
        """Return whether the group was sent signal `number` since the last call for that signal.

        Returns False also if the witness does not answer, because it was killed or stopped. The signal is then
        forwarded.
        """
        self._sequence = (self._sequence + 1) % 256  # identifies late answers to earlier questions
        answers = select.poll()
        answers.register(self._answers, select.POLLIN)
        try:
            os.write(self._questions, bytes((self._sequence, number)))
            while answers.poll(_PATIENCE) and (answer := os.read(self._answers, 2)):
                if answer[0] == self._sequence:
                    return answer[1] == 1
        except OSError:  # a broken pipe: the witness was killed
            pass
        return False

    def end(self) -> None:
        """End the process and reap it."""
        os.kill(self._pid, _signal.SIGKILL)  # works on a stopped process, too; it is not reaped, so the pid is its own
        os.waitpid(self._pid, 0)


def _testify(questions: int, answers: int, most: int) -> None:
    """Answer until the pipe of questions is closed: to `sequence, number` with `sequence, 1 if it was pending`."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # first, because some would stop or end it
    low, high = sorted((questions, answers))
    for first, end in ((0, low), (low + 1, high), (high + 1, most)):
        os.closerange(first, end)
    while question := os.read(questions, 2):
        sequence, number = question
        if _SECOND_LOOK and number not in _signal.sigpending():
            time.sleep(_SECOND_LOOK)
        pending = number in _signal.sigpending()
        if pending:
            _signal.sigwait({number})
        os.write(answers, bytes((sequence, pending)))
