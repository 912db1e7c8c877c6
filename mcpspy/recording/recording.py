"""Recording one capture: captures are created here and nowhere else.

A relay, an importer or a replay makes a `Recording`, begins its capture, opens channels on it and feeds them the bytes
that it has forwarded. The recording owns what all captures have in common: the clock, the header, the writer, the
numbers of the channels, and the redaction of secrets.

Forwarding comes first. A bug in here or below ends the recording, is reported once, and never reaches the traffic.

On the `wrap` path: no imports but built-in modules before the capture is begun.
"""

import os
import time
from _thread import allocate_lock

from mcpspy.capture.encode import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from mcpspy.secrets.redactor import Redactor

    class Sink(Protocol):
        """What takes the records of channels: the writer of a capture, or what keeps them until MCP is recognised.

        Only a writer takes the others: gaps, signals and the end.
        """

        path: str

        def open(
            self, ch: int, t: int, sender: str, role: str, framing: str, rest: dict[str, Any] | None = None
        ) -> None:
            """A channel begins."""

        def frame(self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: dict[str, Any] | None = None) -> None:
            """A frame, or with `more` a piece of one."""

        def whole(self, ch: int, t: int, sender: str, role: str, rest: dict[str, Any], raw: bytes) -> None:
            """A channel that is framed as a body begins, has at most one frame, of at most a piece, and ends."""

        def release(self, t: int, held: int, how: str, rest: dict[str, Any]) -> None:
            """What became of a held frame."""

        def gates(self, t: int, gates: list[dict[str, Any]], by: str) -> None:
            """The gates that are in force from now on."""

        def close(self, ch: int, t: int, how: str, rest: dict[str, Any] | None = None) -> None:
            """A channel ends."""


class Clock:
    """The time of one capture: nanoseconds since it started, on a monotonic clock.

    `started` is the start on that clock, `wall` the same moment in nanoseconds since the epoch; both are read now,
    unless the caller has done that.
    """

    __slots__ = ("started", "wall")

    def __init__(self, started: int | None = None, wall: int | None = None) -> None:
        self.started = time.monotonic_ns() if started is None else started
        self.wall = time.time_ns() if wall is None else wall

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return time.monotonic_ns() - self.started


class Recording:
    """Records channels into one capture. Until a capture is begun, and after its end, it records nothing.

    `report` gets one sentence for the user when something goes wrong. `clock` is for callers that read the time before
    they have a recording. A `sink` is given where the records do not go straight into a capture.

    One lock lets one thread at a time record. It is never held while bytes are forwarded, so a blocked peer delays no
    recording.
    """

    def __init__(
        self, report: "Callable[[str], None]", clock: Clock | None = None, *, sink: "Sink | None" = None
    ) -> None:
        self.clock = clock or Clock()
        self.sink = sink
        self.lock = allocate_lock()
        self.report = report
        self.live_path: str | None = None
        """The directory in which a viewer leaves gates for this session: `.<id>.live` beside the capture's first file;
        None where no capture could be begun."""
        self._channels = 0
        self._redactor: Redactor | None = None

    def begin(
        self,
        transport: str,
        name: str | None = None,
        *,
        output: str | None = None,
        folder: str | None = None,
        environ: "Mapping[str, str] | None" = None,
        argv: list[str] | None = None,
        cwd: str | None = None,
        variables: "Iterable[str] | None" = None,
        url: str | None = None,
        imported: "Mapping[str, object] | None" = None,
        limit: int | None = None,
        control: bool = False,
    ) -> None:
        """Create the capture and write its header; where that fails, it is reported and nothing is recorded.

        `transport` is stdio, http or mitm; `argv` or `url` names the server, and secrets in either are replaced. `name`
        is derived from `argv` where it is not given; `cwd` is the server's directory, where that is not ours.
        `variables` are the names of the server's environment variables.
        `output` is the file to write, `folder` the directory to create one in, `environ` names the default directory.
        `imported` describes the foreign file that the records come from: then no process is recorded. `limit` is the
        size in bytes from which a new file is begun (A-04). `control` says that a viewer can set gates (`live_path`).
        """
        try:
            header = self._header(transport, name, argv, cwd, variables, url, imported)
            if control:
                header["control"] = True
            from mcpspy.capture.writer import create

            writer = self.sink = create(
                header,
                output=output,
                folder=folder,
                environ=dict(os.environ if environ is None else environ),
                wall=self.clock.wall,
                say=self.report,
                limit=limit,
            )
            self.live_path = writer.live_path if writer else None
        except Exception as error:
            self.fail(error)

    @property
    def path(self) -> str | None:
        """The capture's file; None where nothing is recorded."""
        return self.sink.path if self.sink else None

    @property
    def redactor(self) -> "Redactor":
        """Replaces secrets in heads and bodies."""
        if self._redactor is None:
            from mcpspy.secrets.redactor import Redactor

            self._redactor = Redactor()
        return self._redactor

    def number(self) -> int:
        """The number of a new channel; the first is 1."""
        self._channels += 1
        return self._channels

    def gap(self, t: int, lost: int, why: str) -> None:
        """Record that `lost` frames are missing at `t`; secrets in `why` are replaced."""
        self.record(lambda writer: writer.gap(t, lost, self.redactor.url(why)))

    def release(self, t: int, held: int, how: str, rest: "dict[str, Any]") -> None:
        """Record what became of a held frame; `rest` is what the record has besides: sent (bytes, or None), by."""
        self.record(lambda writer: writer.release(t, held, how, written(rest)))

    def gates(self, t: int, gates: "list[dict[str, Any]]", by: str) -> None:
        """Record the gates that are in force from `t` on, compiled; `by` is `file` or `viewer`, who set them."""
        self.record(lambda writer: writer.gates(t, gates, by))

    def signal(self, t: int, number: int, to: str, forwarded: bool) -> None:
        """Record a signal that the relay received at `t`, sent to its `process` alone or to the `group`."""
        self.record(lambda writer: writer.signal(t, number, to, forwarded))

    def end(self, t: int, code: int | None = None, why: str | None = None) -> None:
        """End the capture; what comes later is not recorded.

        `code` is the exit code of a stdio server, negative for a signal; None where the server is no process of ours.
        """
        self.record(lambda writer: writer.end(t, code, why))
        self.sink = None

    def record(self, write: "Callable[..., None]", *arguments: object) -> None:
        """Call `write` with the sink, if there is one, and the arguments; whatever it raises ends the recording."""
        with self.lock:
            if self.sink:
                try:
                    write(self.sink, *arguments)
                except Exception as error:
                    self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop recording after a bug of ours; call it with the lock held once several threads record."""
        where = f" to {self.sink.path}" if self.sink else ""
        self.sink = None
        self.report(
            f"recording{where} stopped by a bug ({type(error).__name__}: {error}); traffic goes on, but is not recorded"
        )

    def _header(
        self,
        transport: str,
        name: str | None,
        argv: list[str] | None,
        cwd: str | None,
        variables: "Iterable[str] | None",
        url: str | None,
        imported: "Mapping[str, object] | None",
    ) -> dict[str, object]:
        """The header of the capture, less what the writer knows itself: format, id, start."""
        from mcpspy import __version__

        header: dict[str, object] = {"tool": f"mcpspy {__version__}", "transport": transport, "name": name}
        if argv is not None:
            from mcpspy.capture.location import server_name

            redacted = self.redactor.argv(argv)
            header |= {"name": name or server_name(argv, redacted), "argv": redacted}
            header["cwd"] = _directory() if imported is None else cwd
        if variables is not None:
            header["env"] = sorted(variables)
        if url is not None:
            header["url"] = self.redactor.url(url)
        if imported is None:
            client = os.getppid()
            header |= {"pid": os.getpid(), "ppid": client}
            began = _start_of(client) if transport == "stdio" else None
            return header | {"client_start": began} if began else header
        return header | {"imported": dict(imported)}


def _start_of(process: int) -> int | None:
    """When a process began, in clock ticks since the system did; None where the system does not tell (not Linux)."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None
