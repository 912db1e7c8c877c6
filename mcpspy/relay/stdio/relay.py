"""The relay of `wrap`: the standard streams of a server, byte for byte.

    client ── fd 0 ──▶ pump ──▶ stdin  ┐
    client ◀── fd 1 ── pump ◀── stdout │ server
    client ◀── fd 2 ── pump ◀── stderr ┘

Each direction has a thread. The main thread creates the capture, waits for the server and for signals, and ends.

Imported on the `wrap` path: no heavy imports here.
"""

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from mcpspy.errors import SpawnError
from mcpspy.relay.stdio.pump import Pump

if sys.platform == "win32":
    from mcpspy.process.child_windows import WindowsChild as Child
    from mcpspy.process.child_windows import die_by
else:
    from mcpspy.process.child import Child, die_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from typing import Any

    from mcpspy.gate.compiled import Answerers
    from mcpspy.recording.recording import Recording
    from mcpspy.relay.stdio.companion import Companion
    from mcpspy.relay.stdio.gated import Gated, Watch

_END = 200_000_000  # the longest time in nanoseconds of our own end, without that of the interpreter
_ASIDE = 150_000_000  # the part of it in which the end waits until our sentences are read


def run(
    server: Child,
    argv: list[str],
    environ: dict[bytes, bytes],
    *,
    name: str | None,
    output: str | None,
    folder: str | None,
    limit: int | None = None,
    check: bool,
    gates: "list[dict[str, Any]] | None" = None,
    answerers: "Answerers | None" = None,
    control: bool = False,
    record: bool = True,
) -> int:
    """Relay between this process's client and `server`, started from `argv` with `environ`, until it exits.

    The capture's `name`, file, folder and size limit in bytes are options of the user, or None. With `check`, a
    companion checks the capture while it is recorded. Compiled `gates` decide on each frame of stdin and stdout, some
    of them with `answerers`. With `control`, viewers can set other gates. Without `record`, there is no capture.
    Returns the exit status for this process; if the server died by a signal, this process dies by it here.
    """
    started, wall = time.monotonic_ns(), time.time_ns()
    there, back = Pump(0, server.stdin, started, server.settle), Pump(server.stdout, 1, started)
    gating = _Gating(server, there, back, gates or [], answerers)
    if gates:
        gating.begin()
    pumps = [there, back, Pump(server.stderr, 2, started)]
    for pump in pumps:
        start_new_thread(pump.run, ())
    _import_rest(check=check, control=control)  # after the pumps have started, and before there is a capture
    from mcpspy.process.ancestry import client_command
    from mcpspy.recording.recording import Channel, Clock, Recording
    from mcpspy.relay.stdio.ending import drain, watch

    recording = Recording(say_aside, Clock(started, wall))
    variables = [os.fsdecode(variable) for variable in environ]
    if record:
        recording.begin(
            "stdio", name, output=output, folder=folder, argv=argv, client=client_command(os.getppid()),
            variables=variables, limit=limit, control=control,
        )  # fmt: skip
    if gates:
        recording.gates(recording.clock.now(), gates, "file")
    companion = _companion(recording) if check else None
    for pump, sender, role in zip(pumps, ("client", "server", "server"), ("stdin", "stdout", "stderr"), strict=True):
        pump.begin(Channel(recording, 0, sender, role), companion.wake if companion else None)
    watch({1: back.reader_left, 2: pumps[2].reader_left})
    viewers = _watch(recording, gating) if control else None

    def seen(number: int, t: int, to: str, forwarded: bool) -> None:
        recording.signal(max(t - started, 0), number, to, forwarded)
        if server.asked_to_end is not None:
            gating.hasten()

    try:
        server.confirm()
        server.watch_group()
        code, why = server.wait(seen), None
    except SpawnError as error:
        say(str(error))
        code, why = error.status, error.reason
    exited = time.monotonic_ns()
    if viewers:
        viewers.end()
    if there.gated and back.gated:
        there.gated.abandon()
        back.gated.hasten()
    left = drain(server, pumps[1:], seen)
    if back.gated:
        back.gated.abandon()
    for pump in left + pumps[:1]:
        pump.channel().end(*(pump.end or (pump.now(), "exit")))  # the pump may be about to record its end itself
    for said in _asides:
        said.acquire(timeout=max(exited + _ASIDE - time.monotonic_ns(), 0) / 1e9)
    recording.end(time.monotonic_ns() - started, code, why)
    if viewers:
        viewers.remove()
    if companion:
        companion.end((exited + _END - time.monotonic_ns()) / 1e9)
    server.end_watch()
    if gating.status is not None:
        return gating.status
    if code < 0:
        die_by(-code)
    return exit_argument(code) if code >= 0 else 128 - code


def _import_rest(*, check: bool, control: bool) -> None:
    """Import what a session may need later: an import during the session would delay the frames that pass (V-02).

    The modules that the start of the recording imports are not listed.
    """
    names = ["mcpspy.relay.stdio.ending"]
    if sys.platform != "win32":
        names += ["resource", "mcpspy.process.witness"]  # for the end, and for signals
        names += ["mcpspy.relay.stdio.companion"] if check else []
    if control:  # for the first viewer
        names += ["mcpspy.capture.live", "mcpspy.relay.stdio.gated"]
    for name in names:
        __import__(name)


def exit_argument(status: int) -> int:
    """Return the argument of `os._exit` for an exit status.

    Windows has statuses from 2^31 on, such as 0xC000013A after Ctrl-C; they are negative here.
    """
    return status - (1 << 32) if status >= 1 << 31 else status


class _Gating:
    """The gate of one relay: in force from the start, or when a viewer appears, or never."""

    def __init__(
        self, server: Child, there: Pump, back: Pump, gates: "list[dict[str, Any]]", answerers: "Answerers | None"
    ) -> None:
        self.pumps = there, back
        self.status: int | None = None
        """The exit status that a gate requires."""
        self._server = server
        self._gates = gates
        self._answerers = answerers
        self._begun: Gated | None = None

    def begin(self) -> "Gated":
        """Put the gate into force, unless it is. Raises RuntimeError if no thread can be started."""
        if self._begun is None:
            from mcpspy.gate.compiled import DeclaredGate
            from mcpspy.gate.gate import Gate
            from mcpspy.relay.stdio.gated import GatedSession, gate_lines

            gate = Gate([DeclaredGate(compiled, self._answerers) for compiled in self._gates], say_aside)
            session = GatedSession(gate, say_aside, self._end_server)
            self._begun = session, gate_lines(*self.pumps, session)[0]
            if self._server.asked_to_end is not None:
                self.hasten()
        return self._begun

    def hasten(self) -> None:
        """Release all held frames, and hold no more, because the server is asked to end."""
        for pump in self.pumps:
            if pump.gated:
                pump.gated.hasten()

    def _end_server(self, status: int) -> None:
        if self.status is None:
            self.status = status
        self._server.kill()


def _watch(recording: "Recording", gating: _Gating) -> "Watch | None":
    """Start a `Watch` for viewers and return it; None if nothing is recorded."""
    from mcpspy.relay.stdio.gated import Watch

    if recording.live_path is None:
        return None
    watch = Watch(recording.live_path, recording, gating.pumps, gating.begin)
    watch.start()
    return watch


def _companion(recording: "Recording") -> "Companion | None":
    """Return a companion; None if nothing is recorded, on Windows, or if no thread can be started."""
    if sys.platform == "win32":
        say_aside("--check does not run on Windows; traffic goes on: run 'mcpspy check' on the capture")
        return None
    from mcpspy.relay.stdio.companion import Companion

    try:
        return Companion(recording.path, say_aside) if recording.path else None
    except RuntimeError as error:
        say_aside(f"cannot check the traffic ({error}); traffic goes on")
        return None


def say(sentence: str) -> None:
    """Write one line to stderr, even if it is closed or the sentence has unprintable characters."""
    safe = "".join(character if character.isprintable() else "?" for character in sentence)
    try:
        os.write(2, f"mcpspy: {safe}\n".encode("utf-8", "replace"))
    except OSError:
        pass


_asides: list["LockType"] = []  # each is locked until its sentence is written


def say_aside(sentence: str) -> None:
    """Call `say` in a thread of its own: a client that does not read stderr must not block a pump."""

    def speak() -> None:
        say(sentence)
        said.release()

    said = allocate_lock()
    said.acquire()
    _asides.append(said)
    try:
        start_new_thread(speak, ())
    except RuntimeError:  # no thread can be started: the sentence is lost, the traffic is not
        _asides.remove(said)
