"""Time limits for everything that a test waits for in another process. test_limits.py finds waits without one."""

import io
import os
import select
import subprocess
import threading
import time
from contextlib import contextmanager

LIMIT = 120
"""Seconds until a test gives up. A process answers in milliseconds; on a very busy machine in many seconds."""


@contextmanager
def proportionate(seconds):
    """Fail if the block takes more CPU time than this. Tests set a limit far above the time that linear work needs."""
    begun = time.process_time()
    yield
    taken = time.process_time() - begun
    assert taken < seconds, f"{taken:.1f} s of the processor"


def within(call, *arguments, seconds=LIMIT):
    """Return or raise what a call does that may block for ever. Fail if it takes longer than `seconds`."""
    outcome = []

    def run():
        try:
            outcome.append((call(*arguments), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"{call} took longer than {seconds} s"
    value, error = outcome[0]
    if error:
        raise error
    return value


def read(fd, size, seconds=LIMIT):
    """Call `os.read`, and fail if nothing comes. A non-blocking descriptor is read directly."""
    ready = not os.get_blocking(fd) or select.select([fd], [], [], seconds)[0]
    assert ready, f"nothing came from descriptor {fd} in {seconds} s"
    return os.read(fd, size)


def run(command, *, timeout=LIMIT, **options):
    """Call `subprocess.run` with a time limit."""
    return subprocess.run(command, timeout=timeout, **options)  # noqa: PLW1510 (the caller decides)


class Popen(subprocess.Popen):
    """A process with time limits on reads, `wait` and `communicate`. A failure in its `with` block kills it."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.stdout = self.stdout and Pipe(self.stdout)
        self.stderr = self.stderr and Pipe(self.stderr)

    def wait(self, timeout=LIMIT):
        return super().wait(timeout)

    def communicate(self, input=None, timeout=LIMIT):  # noqa: A002 (the name in the standard library)
        told = super().communicate(input, timeout)
        pipes = (self.stdout, self.stderr)
        return tuple(pipe.held + rest if pipe and pipe.held else rest for pipe, rest in zip(pipes, told, strict=True))

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
        super().__exit__(kind, value, trace)


class Pipe:
    """The output of a process. A read fails if it takes longer than the limit."""

    def __init__(self, stream):
        self._stream = stream
        self._raw = isinstance(stream, io.RawIOBase)
        self.held = b""
        """Bytes that a raw pipe returned after the requested line."""

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __iter__(self):
        while line := self.readline():
            yield line

    def read(self, size=-1):
        if not self._raw:
            return within(self._stream.read, size)
        if size < 0:
            return b"".join(iter(lambda: self.read(65536), b""))
        told = self.held or read(self.fileno(), size)
        self.held = told[size:]
        return told[:size]

    def readline(self):
        if not self._raw:
            return within(self._stream.readline)
        pieces = []
        while not pieces or (pieces[-1] and b"\n" not in pieces[-1]):
            pieces.append(self.read(65536))
        line, newline, self.held = b"".join(pieces).partition(b"\n")
        return line + newline
