"""A small process of ours that tells whether a signal went to our process alone or to the whole process group.

A client that signals the group reaches the server itself, so `wrap` must not forward that signal. The signal does not
carry where it was sent (`sigaction(2)` has the sender alone). The witness is a member of the group that blocks all
signals: one that it has pending was sent to the group. `wrap` asks over a pipe, and the witness takes the signal off
its own list before it answers.

A signal to a group is delivered to one member after another. Linux begins with the newest member, so the witness has it
before `wrap` has. Other systems may use another order, therefore the witness looks a second time there before it
answers no. Equal signals that wait are one to the kernel: if the group gets the same signal again between the moment
at which `wrap` takes it and the answer (30 µs), `wrap` sees two and the witness one, and the second one is forwarded.

It closes descriptors 0 to 2 and everything else but its two pipes, so no peer waits for it. It ends when the pipe of
questions is closed, that is with `wrap`, however that ends (S-07). Plain POSIX calls; tested on Linux only.

Imported on the `wrap` path: nothing heavy here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import sys
import time

if sys.platform == "win32":
    raise ImportError("mcpspy.process.witness needs POSIX: it tells signals apart")

_SECOND_LOOK = 0 if sys.platform == "linux" else 0.0005  # seconds until the witness looks again
_PATIENCE = 200  # milliseconds to wait for an answer, which takes 10 µs unless the witness is stopped


class Witness:
    """A forked process in our group, and the two pipes to it."""

    __slots__ = ("_answers", "_pid", "_questions", "_sequence")

    def __init__(self, most: int) -> None:
        """Fork, with the signals in question blocked already, which the new process inherits. Raises OSError.

        The new process closes all descriptors below `most` but its own.

        Other threads may run. A fork copies the locks that they hold, so the new process makes system calls only and
        imports nothing. Forking earlier, while there are no threads, delays the first byte by 1 ms.
        """
        asked, self._questions = os.pipe()
        self._answers, told = os.pipe()
        self._sequence = 0
        if sys.version_info >= (3, 12):  # from there on Python warns of a fork beside threads, if only it is told to
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
        """Whether the group was sent signal `number` since the last question about it.

        False also where the witness does not answer, because it was killed or stopped: the signal is then forwarded.
        """
        import select  # 0.3 ms, and most runs get no signal

        self._sequence = (self._sequence + 1) % 256  # an answer that came too late belongs to an earlier question
        answers = select.poll()
        answers.register(self._answers, select.POLLIN)
        try:
            os.write(self._questions, bytes((self._sequence, number)))
            while answers.poll(_PATIENCE) and (answer := os.read(self._answers, 2)):
                if answer[0] == self._sequence:
                    return answer[1] == 1
        except OSError:  # a broken pipe: it was killed
            pass
        return False

    def end(self) -> None:
        """End the process and reap it."""
        os.kill(self._pid, _signal.SIGKILL)  # also where it is stopped; not reaped, so the pid is still its own
        os.waitpid(self._pid, 0)


def _testify(questions: int, answers: int, most: int) -> None:
    """Answer until nobody can ask: for `sequence, number` the answer is `sequence, 1 if it was pending`."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # first: some would stop or end it
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
