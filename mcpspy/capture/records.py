"""The records of a capture, as its readers see them.

A capture is a header line followed by records; `docs/capture-format.md` describes the file. These classes do not depend
on files or JSON: the reader creates them, and everything after it folds over them.

Times are nanoseconds on a monotonic clock since the capture started. `n` is the line number in the file, the header is
line 1. It is the permanent address of a record, shown as `#17`.
"""

from dataclasses import dataclass
from typing import Any, Literal

from mcpspy.capture.format import LOST

Sender = Literal["client", "server", "mcpspy"]
Role = Literal["stdin", "stdout", "stderr", "request", "response", "ws"]
Framing = Literal["lines", "sse", "body", "message"]
How = Literal["eof", "reset", "abort", "exit", "shutdown"]
Target = Literal["group", "process"]


@dataclass(frozen=True, slots=True)
class Imported:
    """The origin of a capture that was made from another program's file (docs/import.md)."""

    form: str
    """The kind of file, such as `a HAR`."""
    approximate: tuple[str, ...] = ()
    """What is not exactly as on the wire: `times of events`, `times of stderr`, `bytes`."""
    missing: tuple[str, ...] = ()
    """What the file does not contain: `heads`, `stderr`, `argv`."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: which server was captured, how, and when."""

    id: str
    started: str
    """UTC, ISO 8601 with microseconds and a `Z`."""
    tool: str
    transport: Literal["stdio", "http", "mitm"]
    name: str
    argv: tuple[str, ...] = ()
    """The command of a stdio server, with secrets replaced."""
    url: str | None = None
    """The upstream of an HTTP server, with secrets replaced."""
    cwd: str | None = None
    env: tuple[str, ...] = ()
    """Names of the environment variables passed to the server; never values."""
    pid: int | None = None
    """The process id of the relay."""
    ppid: int | None = None
    """The id of the process that started the relay: the client."""
    client_start: int | None = None
    """Start time of that process, in clock ticks since boot; together with `ppid` it identifies the process."""
    client: tuple[str, ...] = ()
    """The command line of the client: of the first of the relay's ancestors that is not a launcher."""
    imported: Imported | None = None
    """None if the capture was recorded by a relay of ours."""
    continues: str | None = None
    """The id of the capture that this file continues. That file had reached its size limit, or was lost."""
    control: bool = False
    """Whether a viewer can set gates while the session runs."""
    scrubbed: bool = False
    """Whether secrets and personal data were removed (`mcpspy scrub`)."""


@dataclass(frozen=True, slots=True)
class Open:
    """A channel begins: a one-way ordered byte stream from one peer."""

    n: int
    ch: int
    t: int
    sender: Sender
    role: Role
    framing: Framing
    answers: int | None = None
    """For a response, the channel of its request."""
    peer: str | None = None
    head: dict[str, Any] | None = None
    """The HTTP head as received: method and target, or status and reason, and the headers in order."""
    sent: dict[str, Any] | None = None
    """The head that was forwarded, if it differs."""
    by: str | None = None
    """Why it differs."""


@dataclass(frozen=True, slots=True)
class Omitted:
    """The end of a frame that is too large to be joined and decoded; its first bytes are in the frame."""

    size: int
    """Size of the whole frame in bytes."""
    tail: bytes
    """The last bytes of the frame."""


@dataclass(slots=True)  # not frozen like the others: there are millions, and each would take 2 µs longer
class Frame:
    """One delimited unit of a channel as received: a line, an SSE event, a body, a WebSocket message."""

    n: int
    ch: int
    t: int
    raw: bytes
    cut: bool = False
    """Whether the peer ended before the delimiter, or the rest of the frame was lost."""
    op: str | None = None
    sender: Sender | None = None
    """Set if the sender differs from that of the channel."""
    sent: bytes | None = None
    """The bytes that were forwarded instead."""
    by: str | None = None
    """The reason why other bytes or none were forwarded, or the gate that held the frame."""
    dropped: bool = False
    """Whether nothing was forwarded."""
    held: int | None = None
    """The number of a held frame; its `Release` record has the outcome."""
    undecided: bool = False
    """Whether the frame passed unchanged without a decision of the gates, for example because it is too long."""
    omitted: Omitted | None = None
    """Set if `raw` is only the start of a frame that is too large to be decoded."""

    @property
    def size(self) -> int:
        """Size of the whole frame in bytes."""
        return self.omitted.size if self.omitted else len(self.raw)


@dataclass(frozen=True, slots=True)
class Release:
    """A held frame was sent or dropped."""

    n: int
    t: int
    held: int
    """The number of the frame."""
    how: str
    """continued, delayed, edited, dropped, answered, expired, cancelled or closed."""
    sent: bytes | None = None
    """The bytes that were forwarded instead of the original frame."""
    by: str | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """A channel ends."""

    n: int
    ch: int
    t: int
    how: How
    code: int | None = None
    reason: str | None = None
    """Why a WebSocket was closed; without a code, why the body could not be decompressed."""

    @property
    def undecoded(self) -> bool:
        """Whether the body of the channel could not be decompressed."""
        return self.reason is not None and self.code is None


@dataclass(frozen=True, slots=True)
class Gap:
    """Something is missing here: records that could not be written, or a malformed line."""

    n: int
    t: int
    """For a damaged line, the time of the record before it."""
    lost: int
    why: str

    @property
    def is_rest(self) -> bool:
        """Whether the rest of a compressed file is missing, with the record of the end."""
        return self.why.startswith(LOST)


@dataclass(frozen=True, slots=True)
class Signal:
    """The relay of a stdio server received a signal."""

    n: int
    t: int
    signal: int
    """Its number."""
    to: Target
    """Who received it: the whole process group, which includes the server, or only the relay's process."""
    forwarded: bool
    """Whether the relay sent it to the server; a signal to the group reaches the server directly."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates that are in force from here on."""

    n: int
    t: int
    gates: tuple[dict[str, Any], ...]
    """The gates as the relay has them: name, condition and action (`mcpspy.gate.compiled`)."""
    by: str
    """Who set them: `file` or `viewer`."""


@dataclass(frozen=True, slots=True)
class End:
    """The relay ended normally."""

    n: int
    t: int
    code: int | None = None
    signal: int | None = None
    why: str | None = None
    """Why the server could not be started."""


Record = Open | Frame | Release | Gates | Close | Gap | Signal | End
