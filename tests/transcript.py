"""Conversations as text, so that a test reads like the conversation itself.

    > {"jsonrpc":"2.0","id":1,"method":"ping"}        the client sends a line
    < {"jsonrpc":"2.0","id":1,"result":{}}            the server sends a line
    > 1 ping                                          the same, as short as in the examples of the rules
    < 1 = {}
    < | not JSON                                      the server sends a line that is not JSON
    = 2025-06-18                                      the three messages of a handshake
    ! warming up                                      the server writes a line to stderr
    ~ 3                                               three records are lost here
    . exit 1                                          the server ends; docs/rules.md has the other ends
    @1.5 > {…}                                        the same at 1.5 seconds

`docs/rules.md` begins with the whole notation. `tests.rules.notation` parses a line's content; `tests.rules.web` parses
the lines of HTTP.

Lines are in the order in which they were recorded, and are counted from 1. Without a time, a line comes a millisecond
after the line above it. A line that was recorded too early or too late has the time when it was sent.
"""

import fcntl
import os
from collections.abc import Iterator

from mcpspy.capture.reader import ordered
from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record, Signal
from mcpspy.capture.writer import Writer, create
from mcpspy.conversation.conversation import Conversation, events_of
from mcpspy.conversation.model import Event, HttpUnit, Message, StreamEnd
from mcpspy.timeline import row_of
from tests.rules.notation import frame, handshake

CHANNELS = {">": 1, "<": 2, "!": 3}
WEB = (">>", "<<", "<-", "<x", "<.")  # see `tests.rules.web`
OPENS = (
    Open(0, 1, 0, "client", "stdin", "lines"),
    Open(0, 2, 0, "server", "stdout", "lines"),
    Open(0, 3, 0, "server", "stderr", "lines"),
)
WALL = 1_764_000_000_123_456_789  # nanoseconds since the epoch: 2025-11-24T16:00:00.123456789Z


def lines(text: str) -> list[tuple[str, int, str]]:
    """Return each line of a transcript: its mark, its time in nanoseconds, and the rest."""
    found = []
    t = 0
    for line in filter(None, map(str.strip, text.split("\n"))):
        t += 1_000_000
        rest = line
        if rest.startswith("@"):
            seconds, _, rest = rest[1:].partition(" ")
            t = round(float(seconds) * 1e9)
        mark, _, rest = rest.lstrip().partition(" ")
        assert mark in (*CHANNELS, *WEB, "~", "=", "."), f"a transcript has no line {line!r}"
        found.append((mark, t, rest))
    return found


def records(text: str) -> list[Record]:
    """Return the records of a transcript in the order of their times, after those that open its channels."""
    found: list[Record] = list(OPENS)
    for n, (mark, t, raw, cut) in enumerate(frames(text), 1):
        if mark == "~":
            found.append(Gap(n, t, int(raw), "no space left on device"))
        elif mark == ".":
            found += _end(n, t, raw.decode())
        else:
            found.append(Frame(n, CHANNELS[mark], t, raw, cut))
    return list(ordered(found))


def frames(text: str) -> Iterator[tuple[str, int, bytes, bool]]:
    """Yield each frame of a transcript: its mark, its time in nanoseconds, its bytes, and whether it is cut."""
    for mark, t, rest in lines(text):
        if mark == "=":
            yield from ((sender, t + n, message, False) for n, (sender, message) in enumerate(handshake(rest)))
        elif mark in "!~.":
            yield mark, t, rest.encode(), False
        else:
            yield mark, t, *frame(rest)


def _end(n: int, t: int, said: str) -> Iterator[Record]:
    """Yield the records for the end of a session, or of a part of it."""
    what, _, rest = said.partition(" ")
    if what in ("exit", "killed"):
        yield Close(n, CHANNELS[">"], t, "exit")
        yield End(n, t, **{"code" if what == "exit" else "signal": int(rest)})
    elif what == "signal":
        number, _, group = rest.partition(" ")
        yield Signal(n, t, int(number), "group" if group else "process", forwarded=not group)
    elif what == "unstarted":
        yield End(n, t, why=rest)
    else:
        yield Close(n, CHANNELS[">" if what == "stdin" else "<"], t, "eof")


def events(text: str) -> list[Event]:
    """Return the events that the fold yields for a transcript, in order."""
    conversation = Conversation()
    return [event for record in records(text) for event in conversation.feed(record)]


def told(text: str) -> list[str]:
    """Return the events of a transcript as text, one line each: the address, what it is, and its outcome."""
    return [outcome(event) for event in events(text)]


def revisions(text: str) -> list[str]:
    """Return the address of each message and the revision that it is judged by."""
    return [
        f"{address(event)} {event.revision.value if event.revision else 'unknown'}"
        for event in events(text)
        if isinstance(event, Message)
    ]


def address(message: Message) -> str:
    """Return `#2`, or `#2.1` for the second message of a batch."""
    return f"#{message.n}.{message.part}" if message.frame.raw.startswith(b"[") else f"#{message.n}"


def outcome(event: Event) -> str:
    """Return an event as text: the address, what it is, and its outcome."""
    if isinstance(event, HttpUnit | StreamEnd):
        return f"#{event.n} {event.kind} {event.text}"
    if not isinstance(event, Message):
        return f"#{event.n} {type(event).__name__.lower() if not isinstance(event, Frame) else 'stderr'}"
    exchange = event.exchange
    kind = type(event.body).__name__
    if kind == "Request":
        doubt = ", in doubt" if exchange.in_doubt else ""
        return f"{address(event)} {event.body.method} {exchange.status}{doubt}"
    if kind in ("Result", "Error"):
        return f"{address(event)} {kind} of {address(exchange.request) if exchange else 'nothing'}"
    return f"{address(event)} {event.body.method if kind == 'Notification' else event.body.reason}"


def begin(path: str, argv: tuple[str, ...] = ("node", "weather.js"), wall: int = WALL, **fields: object) -> Writer:
    """Start a live capture at `path`. It began at `wall`, in nanoseconds since the epoch."""
    header = {"tool": "mcpspy 0.1.0", "transport": "stdio", "name": "weather", "argv": argv} | fields
    complaints: list[str] = []
    writer = create(header, output=str(path), folder=None, environ={}, wall=wall, say=complaints.append)
    assert writer, complaints
    return writer


def capture(path: str, text: str, **fields: object) -> str:
    """Write a finished capture of a transcript and return its path. The transcript's first line is record #5."""
    writer = begin(path, **fields)
    record(writer, text)
    finish(writer, 10_000_000_000)
    return str(path)


def abandon(writer: Writer) -> None:
    """Leave a capture as a killed relay does: without an end record, and unlocked."""
    os.close(descriptor(writer))


def descriptor(writer: Writer) -> int:
    """Return the descriptor that a writer writes to: the only one on its file that is not read-only."""
    file = os.stat(writer.path)
    for fd in map(int, os.listdir("/dev/fd")):
        try:
            if os.path.samestat(os.fstat(fd), file) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                return fd
        except OSError:  # the descriptor that listed the directory
            pass
    raise LookupError(writer.path)


def finish(writer: Writer, t: int = 0, code: int = 0, why: str | None = None) -> None:
    """End a capture as a relay does after its server has exited."""
    writer.end(t, code, why)


def record(writer: Writer, text: str) -> None:
    """Write a transcript into a capture, opening its channels first."""
    for channel in OPENS:
        writer.open(channel.ch, 0, channel.sender, channel.role, channel.framing)
    for mark, t, raw, cut in frames(text):
        writer.frame(CHANNELS[mark], t, raw, more=False, cut=cut)


def rows(records):
    """Return the rows of some records, as far as each is known at its event."""
    return map(row_of, events_of(records))
