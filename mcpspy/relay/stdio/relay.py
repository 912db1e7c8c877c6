"""The relay of `wrap`: a server's standard streams, byte for byte.

    client ── fd 0 ──▶ pump ──▶ stdin  ┐
    client ◀── fd 1 ── pump ◀── stdout │ server
    client ◀── fd 2 ── pump ◀── stderr ┘

One thread for each direction. The main thread creates the capture, waits for the server and for signals, and ends.

Imported on the `wrap` path: nothing heavy here.
"""

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from mcpspy.errors import SpawnError
from mcpspy.relay.stdio.drain import drain
from mcpspy.relay.stdio.pump import Pump

if sys.platform == "win32":
    from mcpspy.process.child_windows import Child, die_by
else:
    from mcpspy.process.child import Child, die_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from mcpspy.capture.writer import Writer
    from mcpspy.recording.stream import Tap
    from mcpspy.relay.stdio.companion import Companion

_END = 200_000_000  # nanoseconds that all of our own end may take, but for the interpreter's
_ASIDE = 0.05  # seconds that the end waits for a sentence to be read


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
    for pump in drain(server, pumps[1:]) + pumps[:1]:
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
