"""The records of a capture, as its readers see them.

A capture is a header line followed by records; `docs/capture-format.md` describes the file. These classes know nothing
of files or JSON: the reader makes them, everything after it folds over them.

Times are nanoseconds on a monotonic clock since the capture started. `n` is the line number in the file, the header
being line 1: the permanent address of a record, shown as `#17`.
"""

from dataclasses import dataclass
from typing import Any, Literal

Sender = Literal["client", "server", "mcpspy"]
Role = Literal["stdin", "stdout", "stderr", "request", "response", "ws"]
Framing = Literal["lines", "sse", "body", "message"]
How = Literal["eof", "reset", "abort", "exit", "shutdown"]
Target = Literal["group", "process"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What a capture that was made of another program's file says of that (docs/import.md)."""

    form: str
    """What the file is: `a HAR`."""
    approximate: tuple[str, ...] = ()
    """What is not as it was on the wire: `times of events`, `times of stderr`, `bytes`."""
    missing: tuple[str, ...] = ()
    """What the file cannot hold: `heads`, `stderr`, `argv`."""


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
    """The command of a stdio server, secrets replaced."""
    url: str | None = None
    """The upstream of an HTTP server, secrets replaced."""
    cwd: str | None = None
    env: tuple[str, ...] = ()
    """Names of the environment variables that the server got; never values."""
    pid: int | None = None
    """The relay's process."""
    ppid: int | None = None
    """The process that started the relay: the client."""
    client_start: int | None = None
    """When that process began, in clock ticks since the system did; with `ppid` it tells processes apart."""
    imported: Imported | None = None
    """None: a relay of ours has recorded it."""
    continues: str | None = None
    """The id of the capture that goes on in this file, which it left for its size or because it was lost."""
    control: bool = False
    """A viewer can set gates on the session while it runs."""
    scrubbed: bool = False
    """Secrets and personal data were taken out of it (`mcpspy scrub`)."""


@dataclass(frozen=True, slots=True)
class Open:
    """A channel begins: a one-way ordered byte stream of one peer."""

    n: int
    ch: int
    t: int
    sender: Sender
    role: Role
    framing: Framing
    answers: int | None = None
    """On a response, the channel of its request."""
    peer: str | None = None
    head: dict[str, Any] | None = None
    """The HTTP head as received: method and target, or status and reason, and the headers in order."""
    sent: dict[str, Any] | None = None
    """What was forwarded instead, where that differs."""
    by: str | None = None
    """Why it differs."""


@dataclass(frozen=True, slots=True)
class Omitted:
    """What is left of a frame that is too large to be joined and decoded, beside its first bytes."""

    size: int
    """Bytes of the whole frame."""
    tail: bytes
    """Its last bytes."""


@dataclass(slots=True)  # not frozen as the others are: there are millions, and each would take 2 µs more
class Frame:
    """One delimited unit of a channel as received: a line, an SSE event, a body, a WebSocket message."""

    n: int
    ch: int
    t: int
    raw: bytes
    cut: bool = False
    """The peer ended before the delimiter, or the rest of the frame was lost."""
    op: str | None = None
    sender: Sender | None = None
    """Set where it differs from the channel's."""
    sent: bytes | None = None
    """What was forwarded instead."""
    by: str | None = None
    """Why something else, or nothing, was forwarded, or who held the frame."""
    dropped: bool = False
    """Nothing was forwarded."""
    held: int | None = None
    """The number of a frame that was held; its `Release` says what became of it."""
    undecided: bool = False
    """No gate decided on it, as for one that is too long, and it passed as it came."""
    omitted: Omitted | None = None
    """Set where `raw` is only the beginning of a frame that is too large to be decoded."""

    @property
    def size(self) -> int:
        """Bytes of the whole frame."""
        return self.omitted.size if self.omitted else len(self.raw)


@dataclass(frozen=True, slots=True)
class Release:
    """A held frame went, or was dropped."""

    n: int
    t: int
    held: int
    """The number of the frame."""
    how: str
    """continued, delayed, edited, dropped, answered, expired, cancelled or closed."""
    sent: bytes | None = None
    """What was forwarded instead of the frame as it came."""
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
    """Why a WebSocket was closed; with no code: why the content coding of a body could not be undone."""

    @property
    def undecoded(self) -> bool:
        """Whether the content coding of the channel could not be undone."""
        return self.reason is not None and self.code is None


@dataclass(frozen=True, slots=True)
class Gap:
    """Something is missing here: records that could not be written, or a line that does not parse."""

    n: int
    t: int
    """Of a damaged line: the time of the record before it."""
    lost: int
    why: str


@dataclass(frozen=True, slots=True)
class Signal:
    """The relay of a stdio server received a signal."""

    n: int
    t: int
    signal: int
    """Its number."""
    to: Target
    """What it was sent to: the process group, of which the server is one, or the relay's process alone."""
    forwarded: bool
    """Whether the relay sent it to the server; one to the group reaches the server without us."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates that are in force from here on."""

    n: int
    t: int
    gates: tuple[dict[str, Any], ...]
    """Each as the relay has it: its name, what it matches, and its action (`mcpspy.gate.compiled`)."""
    by: str
    """Who set them: `file` or `viewer`."""


@dataclass(frozen=True, slots=True)
class End:
    """The relay ended in order."""

    n: int
    t: int
    code: int | None = None
    signal: int | None = None
    why: str | None = None
    """Why the server could not be started."""


Record = Open | Frame | Release | Gates | Close | Gap | Signal | End
