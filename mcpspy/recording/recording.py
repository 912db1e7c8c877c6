"""Record one capture. Captures are created only here.

A relay, an importer or a replay creates a `Recording`, begins its capture, opens channels on it and feeds them the
bytes that it has forwarded. The recording owns what all captures have in common: the clock, the header, the writer, the
numbers of the channels, and the redaction of secrets.

Forwarding comes first. A bug in this module or below it ends the recording, is reported once, and never affects the
traffic.

On the `wrap` path: only light modules of this package are imported before the capture is begun.
"""

import os
import time
from _thread import allocate_lock

from mcpspy.capture.format import written
from mcpspy.process.ancestry import start_of
from mcpspy.wire.lines import PIECE, Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from mcpspy.secrets.redactor import Redactor

    Fields = dict[str, Any]

    class Sink(Protocol):
        """Receives the records of channels: the writer of a capture, or `Pending`, which keeps them at first.

        Only a writer accepts the other records: gaps, signals and the end.
        """

        path: str

        def open(
            self, ch: int, t: int, sender: str, role: str, framing: str, rest: dict[str, Any] | None = None
        ) -> None:
            """Record that a channel opens."""

        def frame(self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: dict[str, Any] | None = None) -> None:
            """Record a frame, or with `more` a piece of one."""

        def whole(self, ch: int, t: int, sender: str, role: str, rest: dict[str, Any], raw: bytes) -> None:
            """Record a channel with the framing `body` that has at most one frame, of at most one piece, and closes."""

        def release(self, t: int, held: int, how: str, rest: dict[str, Any]) -> None:
            """Record the decision on a held frame."""

        def gates(self, t: int, gates: list[dict[str, Any]], by: str) -> None:
            """Record the gates that are in force from now on."""

        def close(self, ch: int, t: int, how: str, rest: dict[str, Any] | None = None) -> None:
            """Record that a channel closes."""


class Clock:
    """The time of one capture: nanoseconds since it started, on a monotonic clock.

    `started` is the start on that clock, `wall` the same moment in nanoseconds since the epoch. Both are read now
    unless the caller passes them.
    """

    __slots__ = ("started", "wall")

    def __init__(self, started: int | None = None, wall: int | None = None) -> None:
        self.started = time.monotonic_ns() if started is None else started
        self.wall = time.time_ns() if wall is None else wall

    def now(self) -> int:
        """Return the nanoseconds since the capture started."""
        return time.monotonic_ns() - self.started


class Recording:
    """Records channels into one capture. It records nothing before the capture is begun or after its end.

    `report` gets one sentence for the user if something fails. `clock` is for callers that read the time before they
    have a recording. A `sink` is passed if the records are not written directly to a capture.

    A lock allows one thread at a time to record. It is never held while bytes are forwarded, so a blocked peer does not
    delay a recording.
    """

    def __init__(
        self, report: "Callable[[str], None]", clock: Clock | None = None, *, sink: "Sink | None" = None
    ) -> None:
        self.clock = clock or Clock()
        self.sink = sink
        self.lock = allocate_lock()
        self.report = report
        self.live_path: str | None = None
        """The directory in which viewers put gates for this session: `.<id>.live` beside the capture's first file;
        None if no capture could be begun."""
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
        client: list[str] | None = None,
        cwd: str | None = None,
        variables: "Iterable[str] | None" = None,
        url: str | None = None,
        imported: "Mapping[str, object] | None" = None,
        limit: int | None = None,
        control: bool = False,
    ) -> None:
        """Create the capture and write its header; if that fails, report it and record nothing.

        `transport` is stdio, http or mitm. `argv` or `url` names the server; secrets in either are replaced. If `name`
        is `None`, it is derived from `argv`. `client` is the command line of the client, if it is known, which is
        shortened too. `cwd` is the server's directory if that is not ours. `variables` are the names of the server's
        environment variables.
        `output` is the file to write, `folder` the directory to create one in; `environ` names the default directory.
        `imported` describes the foreign file that the records come from; then no process is recorded. `limit` is the
        size in bytes from which a new file is begun (A-04). `control` states that viewers can set gates (`live_path`).
        """
        try:
            header = self._header(transport, name, argv, cwd, variables, url, imported)
            if client:
                from mcpspy.secrets.redactor import Shortened

                header["client"] = Shortened().argv(client)
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
        """The capture's file; None if nothing is recorded."""
        return self.sink.path if self.sink else None

    @property
    def redactor(self) -> "Redactor":
        """Replaces secrets in heads and bodies."""
        if self._redactor is None:
            from mcpspy.secrets.redactor import Redactor

            self._redactor = Redactor()
        return self._redactor

    def number(self) -> int:
        """Return the number for a new channel; the first is 1."""
        self._channels += 1
        return self._channels

    def gap(self, t: int, lost: int, why: str) -> None:
        """Record that `lost` frames are missing at `t`; secrets in `why` are replaced."""
        self.record(lambda writer: writer.gap(t, lost, self.redactor.url(why)))

    def release(self, t: int, held: int, how: str, rest: "dict[str, Any]") -> None:
        """Record the decision on a held frame; `rest` has optional members: sent (bytes, or None), by."""
        self.record(lambda writer: writer.release(t, held, how, written(rest)))

    def gates(self, t: int, gates: "list[dict[str, Any]]", by: str) -> None:
        """Record the compiled gates that are in force from `t` on; `by` is `file` or `viewer`."""
        self.record(lambda writer: writer.gates(t, gates, by))

    def signal(self, t: int, number: int, to: str, forwarded: bool) -> None:
        """Record a signal that the relay received at `t`, sent to its `process` alone or to the `group`."""
        self.record(lambda writer: writer.signal(t, number, to, forwarded))

    def end(self, t: int, code: int | None = None, why: str | None = None) -> None:
        """End the capture; further records are ignored.

        `code` is the exit code of a stdio server, negative for a signal; None if the server is not our child process.
        """
        self.record(lambda writer: writer.end(t, code, why))
        self.sink = None

    def record(self, write: "Callable[..., None]", *arguments: object) -> None:
        """Call `write` with the sink, if there is one, and the arguments; an exception ends the recording."""
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
        """Return the header of the capture, without what the writer adds: format, id, start."""
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
            parent = os.getppid()
            header |= {"pid": os.getpid(), "ppid": parent}
            began = start_of(parent) if transport == "stdio" else None
            return header | {"client_start": began} if began else header
        return header | {"imported": dict(imported)}


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


class Channel:
    """A one-way byte stream, split into lines; the channel opens at `t`."""

    __slots__ = ("_ended", "_lines", "_lock", "_number", "_recording")

    def __init__(self, recording: Recording, t: int, sender: str, role: str) -> None:
        self._recording = recording
        self._lock = recording.lock
        self._number = number = recording.number()
        self._lines = Lines()
        self._ended = False
        recording.record(lambda sink: sink.open(number, t, sender, role, "lines"))

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and are forwarded already; never raises."""
        with self._lock:
            sink = self._recording.sink
            if sink is None or self._ended:
                return
            try:
                if chunk and self._lines.between and chunk.find(b"\n") == len(chunk) - 1 < PIECE:
                    sink.frame(self._number, t, chunk[:-1], False, False)  # the case of almost every read
                else:
                    for raw, more, cut in self._lines.feed(chunk):
                        sink.frame(self._number, t, raw, more, cut)
            except Exception as error:
                self._recording.fail(error)

    def record(self, raw: bytes, t: int, rest: "Fields", *, ended: bool = True, cut: bool = False) -> None:
        """Record one line that a gate has passed, changed, dropped or held.

        `raw` is the line that was read at `t`, without its newline. If `ended` is false, it is only the beginning of a
        line, and the rest is fed. With `cut`, the line has no newline. `rest` has optional members: sent (bytes, or
        None), by, from, held, undecided.
        """
        self._recording.record(self._record, raw, t, rest, ended, cut)

    def _record(self, sink: "Sink", raw: bytes, t: int, rest: "Fields", ended: bool, cut: bool) -> None:
        if not self._ended:
            rest = written(rest)
            frames = self._lines.feed(raw + b"\n" if ended and not cut else raw)
            for piece, more, without in frames + self._lines.end() if cut else frames:
                sink.frame(self._number, t, piece, more, without, rest)
                rest = {}  # the members are on the first piece

    def release(self, t: int, held: int, how: str, rest: "Fields") -> None:
        """Record the decision on a held frame; `rest` has optional members: sent (bytes, or None), by."""
        self._recording.release(t, held, how, rest)

    def cut(self, t: int) -> None:
        """Record that the writer of this stream stopped within a line at `t`; another writer begins a new line."""
        self._recording.record(self._cut, t)

    def _cut(self, sink: "Sink", t: int) -> None:
        if not self._ended:
            for raw, more, cut in self._lines.end():
                sink.frame(self._number, t, raw, more, cut)

    def end(self, t: int, how: str) -> None:
        """Record that the stream ended; a second call has no effect: both a pump and its relay may report the end."""
        self._recording.record(self._end, t, how)

    def _end(self, sink: "Sink", t: int, how: str) -> None:
        if not self._ended:
            self._cut(sink, t)
            self._ended = True
            sink.close(self._number, t, how)
