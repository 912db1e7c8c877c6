"""The relay of `wrap`: a server's standard streams, byte for byte.

    client ── fd 0 ──▶ pump ──▶ stdin  ┐
    client ◀── fd 1 ── pump ◀── stdout │ server
    client ◀── fd 2 ── pump ◀── stderr ┘

One blocking thread for each direction: read what is there, write it on, and only then let the tap have it. A thread
knows nothing of frames, and nothing it does can hold up another: a server that writes without reading does not stall
the rest. The main thread waits for the server and for signals. No descriptor that others share is ever made
non-blocking.

Interception, when it comes, is a gate between the read and the write of one pump.

Imported on the `wrap` path: nothing heavy here (DESIGN section 2).
"""

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from mcpspy.errors import SpawnError

if sys.platform == "win32":
    from mcpspy.process.child_windows import Child, die_by, waiting
else:
    from mcpspy.process.child import Child, die_by, waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from mcpspy.capture.writer import Writer
    from mcpspy.recording.stream import Channel, Tap
    from mcpspy.relay.stdio.companion import Companion

CHUNK = 65536  # bytes; what a pipe holds

# After the server has exited (S-04):
_IDLE = 100_000_000  # nanoseconds without a byte after which reading stops,
_TOTAL = 250_000_000  # or in all, should something that inherited the pipe go on writing
_END = 200_000_000  # nanoseconds that all of our own end may take, but for the interpreter's
_ASIDE = 0.05  # seconds that the end waits for a sentence to be read
_STEP = 0.001  # seconds between two looks


class Pump:
    """One direction: from `source` to `sink`, the tap last.

    It forwards at once; recording begins when `begin` has told it the channel.
    """

    __slots__ = ("_begun", "_channel", "_first", "busy", "ended", "reads", "sink", "source", "started", "stop")

    def __init__(self, source: int, sink: int, started: int) -> None:
        self.source = source
        self.sink = sink
        self.started = started
        self.reads = 0
        self.busy = False  # between a read and the end of what follows from it
        self.stop = False  # write nothing more
        self.ended = False
        self._channel: Channel | None = None
        self._first: Callable[[], None] | None = None
        self._begun = allocate_lock()
        self._begun.acquire()

    def begin(self, channel: "Channel", first: "Callable[[], None] | None") -> None:
        """Record into `channel`, beginning with what has passed already; call `first` when something has."""
        self._channel = channel
        self._first = first
        self._begun.release()

    def run(self) -> None:
        """Pump until one side ends, then tell the other by closing our end."""
        how = "reset"
        try:
            how = self._pump()
        finally:  # whatever happened, both peers learn that this direction has ended
            self._close(self.source)
            self._close(self.sink)
            self.channel().end(self.now(), how)
            self.ended = True
            self.busy = False

    def channel(self) -> "Channel":
        """The channel to record into; waits for it."""
        if self._channel is None:
            self._begun.acquire()
        assert self._channel
        return self._channel

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return time.monotonic_ns() - self.started

    def _pump(self) -> str:
        source, sink, started, feed = self.source, self.sink, self.started, None
        read, write, clock = os.read, os.write, time.monotonic_ns
        while True:
            self.busy = False
            try:
                chunk = read(source, CHUNK)
            except BlockingIOError:  # somebody who shares the descriptor made it so
                _wait(source, "read")
                continue
            except OSError:
                return "reset"
            t = clock() - started
            if not chunk:
                return "eof"
            self.busy = True
            if self.stop:
                return "exit"
            self.reads += 1
            try:
                written = write(sink, chunk)
            except OSError:
                written = 0  # the slow way finds out why
            if written != len(chunk) and not self._forward(chunk[written:]):
                self.channel().feed(chunk, t)
                return "abort"
            if feed is None:
                feed = self.channel().feed
                if self._first:
                    self._first()
            feed(chunk, t)

    def _forward(self, rest: bytes) -> bool:
        """Write what one call could not; False when the peer takes no more.

        A stderr that cannot take bytes, such as a log on a full disk, loses them, as it would without us.
        """
        view = memoryview(rest)
        while view:
            try:
                view = view[os.write(self.sink, view) :]
            except BlockingIOError:  # somebody who shares the descriptor made it so
                _wait(self.sink, "write")
            except (BrokenPipeError, ConnectionResetError):
                return False
            except OSError:
                return self.sink == 2
        return True

    def _close(self, fd: int) -> None:
        """Close our end, so that the peer sees it.

        0 and 1 must stay taken, lest another file gets the number; 2 stays open, since we may have something to say.
        """
        if fd > 2:
            os.close(fd)
        elif fd < 2:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, fd)
            os.close(null)


def run(
    server: Child,
    argv: list[str],
    environ: dict[bytes, bytes],
    *,
    name: str | None,
    output: str | None,
    folder: str | None,
    check: bool,
) -> int:
    """Relay between this process's client and `server`, started from `argv` with `environ`, until it exits.

    The capture's `name`, file and folder are the user's choice, or None; with `check` a companion checks it meanwhile.
    Returns the exit status for this process; a death by signal is repeated here and now.
    """
    started, wall = time.monotonic_ns(), time.time_ns()
    pumps = [Pump(0, server.stdin, started), Pump(server.stdout, 1, started), Pump(server.stderr, 2, started)]
    for pump in pumps:
        start_new_thread(pump.run, ())
    tap = _recording(lambda: _writer(argv, environ, wall, name=name, output=output, folder=folder))
    companion = _companion(tap) if check else None
    for pump, sender, role in zip(pumps, ("client", "server", "server"), ("stdin", "stdout", "stderr"), strict=True):
        pump.begin(tap.open(0, sender, role), companion.wake if companion else None)
    try:
        server.confirm()
        code, why = server.wait(), None
    except SpawnError as error:
        say(str(error))
        code, why = error.status, error.reason
    exited = time.monotonic_ns()
    for pump in _drain(server, pumps[1:]) + pumps[:1]:
        pump.channel().end(pump.now(), "exit")
    for said in _asides:
        said.acquire(timeout=_ASIDE)
    tap.end(time.monotonic_ns() - started, code, why)
    if companion:
        companion.end((exited + _END - time.monotonic_ns()) / 1e9)
    if code < 0:
        die_by(-code)
    return code if code >= 0 else 128 - code


def _recording(create: "Callable[[], Writer | None]") -> "Tap":
    """Create the capture; bytes pass already, and go on passing whatever happens here."""
    from mcpspy.recording.stream import Tap

    tap = Tap(None, say_aside)
    try:
        tap.writer = create()
    except Exception as error:
        tap.fail(error)
    return tap


def _companion(tap: "Tap") -> "Companion | None":
    """Who checks what the tap records; nobody where nothing is recorded, or no thread can be had."""
    from mcpspy.relay.stdio.companion import Companion

    try:
        return Companion(tap.writer.path, say_aside) if tap.writer else None
    except RuntimeError as error:
        say_aside(f"cannot check what passes ({error}); traffic goes on")
        return None


def _writer(
    argv: list[str],
    environ: dict[bytes, bytes],
    wall: int,
    *,
    name: str | None,
    output: str | None,
    folder: str | None,
) -> "Writer | None":
    from mcpspy import __version__
    from mcpspy.capture.location import server_name
    from mcpspy.capture.writer import create
    from mcpspy.secrets.redactor import Redactor

    redacted = Redactor().argv(argv)
    try:
        cwd: str | None = os.getcwd()
    except OSError:
        cwd = None
    header: dict[str, object] = {
        "tool": f"mcpspy {__version__}",
        "transport": "stdio",
        "name": name or server_name(argv, redacted),
        "argv": redacted,
        "cwd": cwd,
        "env": sorted(os.fsdecode(variable) for variable in environ),
        "pid": os.getpid(),
        "ppid": os.getppid(),
    }
    return create(header, output=output, folder=folder, environ=dict(os.environ), wall=wall, say=say_aside)


def _drain(server: Child, pumps: list[Pump]) -> list[Pump]:
    """Relay what the server left in its pipes, without waiting for others who hold them; returns the pumps stopped.

    A pump is stopped when its pipe has been empty and itself at rest for `_IDLE`. Who inherited the pipe may go on
    writing: then after `_TOTAL`, when so much has been read that nothing of the server's can be left. (Two reads more
    than the length needs: one may have been under way, not counted yet.) Nothing is decided by a single look, for
    between a read and its mark in `busy` a chunk is nowhere to be seen.
    """
    exited = pumps[0].now()
    owed = {pump: pump.reads + waiting(pump.source) // CHUNK + 2 for pump in pumps}
    rest = {pump: (pump.reads, exited) for pump in pumps}  # how many reads, and since when at rest
    left = pumps
    while left := [pump for pump in left if not pump.ended]:
        for pump in left:
            now = pump.now()
            if pump.busy or pump.reads != rest[pump][0] or waiting(pump.source):
                rest[pump] = pump.reads, now
            idle = now - rest[pump][1] >= _IDLE
            over = now - exited >= _TOTAL and pump.reads >= owed[pump]
            pump.stop = pump.stop or idle or over
        if all(pump.stop and not pump.busy for pump in left):
            break
        server.next_signal(_STEP)  # the server has exited: there is nobody to pass one on to
    return left


def say(sentence: str) -> None:
    """One line on stderr, whatever state that is in and whatever names are in it."""
    safe = "".join(character if character.isprintable() else "?" for character in sentence)
    try:
        os.write(2, f"mcpspy: {safe}\n".encode("utf-8", "replace"))
    except OSError:
        pass


_asides: list["LockType"] = []  # each held until its sentence is out


def say_aside(sentence: str) -> None:
    """Say it from a thread of its own: a client that does not read stderr must not stop a pump."""

    def speak() -> None:
        say(sentence)
        said.release()

    said = allocate_lock()
    said.acquire()
    _asides.append(said)
    start_new_thread(speak, ())


def _wait(fd: int, what: str) -> None:
    """Wait until a descriptor that others made non-blocking is ready."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN if what == "read" else select.POLLOUT)
    poll.poll()
