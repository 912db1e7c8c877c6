"""Rules about the end of a server: whether it ended by itself, with requests in flight.

Clients end a server by closing stdin and by signals, often with requests in flight. What the server does after that is
not reported. Over HTTP a server is gone if it breaks off an answer, ends its stream without the answer, or is
unreachable.
"""

from collections.abc import Iterator, Sequence

from mcpspy.conversation.model import ENDLESS, Exchange, Message, ServerExit, Session
from mcpspy.json_values import member
from mcpspy.rules.http.sessions import is_deleted
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.text import duration_text
from mcpspy.wire.jsonrpc import Error, Result

_MOST = 100  # requests in flight that a finding names
_WAITED, _MOMENT = 5_000_000_000, 500_000_000  # nanoseconds before and after the end of stdin
_LINGERS = 1_500_000_000  # nanoseconds; the SDKs wait for two seconds before they send a signal
_HTTP = "basic/transports#sending-messages-to-the-server"


@rule(
    "lifecycle/server-exit",
    "error",
    """The server ended before the client. On stdio: the process could not be started; it ended by a signal or a
    non-zero exit code before the first request or while a request waited; or it ended with exit code 0 and never
    answered a request. Over HTTP: the server broke off its answer, ended the stream without an answer, sent a body that
    is no answer, or could not be reached. Cancelled requests, and requests whose answer already has a finding, are
    ignored. An end after the client closed stdin or sent a signal is not a finding.""",
    fix="""Read the reason on stderr; with exit code 0 the server found no input, as in a container without `-i`. If a
    request fails, answer with an error, and exit only after stdin is closed.""",
    meanwhile="Check command, arguments and environment: `mcpspy doctor` starts the server as the client does.",
    blame="server",
    spec="basic/lifecycle#shutdown",
    fails="""
        = 2025-06-18
        > 2 tools/list
        . exit 1
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        . stdin closed
        . exit 1
    """,
    on=(ServerExit, Error),
)
class ServerGone(StatefulCheck):
    """Check the end of a process, and over HTTP the requests whose answer was broken off."""

    def check(self, event: ServerExit | Message) -> Iterator[Fault]:
        """Check the end of a process, or an answer that the relay gave in place of the server."""
        if isinstance(event, ServerExit):
            yield from self._exit(event)
        elif event.exchange and event.http and event.http.unreached:
            why = member(event.body.value, "error", "message")
            told = f": {why[:200]}" if isinstance(why, str) else ""
            yield Fault(f"the server did not answer {event.exchange.method}{told}", source=_HTTP)

    def _exit(self, exited: ServerExit) -> Iterator[Fault]:
        """Find which side left first, and which requests were in flight."""
        session = self.session
        requests = [it for it in exited.session.exchanges() if it.request.sender == "client"]
        waiting = [it for it in requests if not it.cancelled and it.request.n not in session.explained]
        certain = [it for it in waiting if not it.in_doubt and it.method != ENDLESS]
        what = self._wrong(exited, [it.method for it in certain], asked=bool(requests))
        if what:
            numbers = [it.request.n for it in certain]
            session.explained.update(dict.fromkeys(numbers))
            yield Fault(what, related=tuple(numbers[:_MOST]))

    def _wrong(self, exited: ServerExit, certain: Sequence[str], *, asked: bool) -> str | None:
        """Return what is wrong with an end, or None.

        `certain` has the methods that were certainly in flight. `asked` is true if a request of the client is still
        kept.
        """
        end = exited.end
        if end.why is not None:
            return end.why
        if exited.session.gone is None or self.session.lossy:
            return None
        how = f"by signal {end.signal}" if end.signal is not None else f"with exit code {end.code}"
        if certain and not self.session.answered:
            return f"the server ended {how} and did not answer {certain[0]}"
        if end.code == 0:
            return None
        if certain:
            more = f" and {len(certain) - 1} more" if len(certain) > 1 else ""
            return f"the server ended {how} while {certain[0]}{more} waited for an answer"
        return None if asked or self.session.answered else f"the server ended {how} before its client sent a request"

    def end(self, request: Message) -> Iterator[Fault]:
        """Report an answer that was broken off, unless a resumed stream delivered it later."""
        exchange = request.exchange
        if request.n in self.session.explained:
            return
        if exchange and exchange.fate and is_deleted(self.session, exchange.fate.t):
            return
        if exchange and exchange.lost and not exchange.cancelled and not exchange.in_doubt:
            how = _lost(exchange)
            yield Fault(f"{how} {exchange.method}", "", (exchange.lost,), blame="server", source=_HTTP)


def _lost(exchange: Exchange) -> str:
    """Return how the answer to a request over HTTP was lost."""
    fate = exchange.fate
    if exchange.refused:
        return "the server was unreachable for"
    if fate and fate.reason == "eof":
        return "the server ended its stream without the answer to"
    return "the server broke off its answer to"


@rule(
    "lifecycle/buffered-output",
    "warning",
    """The server answered nothing while the client waited, and everything a moment after the client had closed stdin.
    Its answers were ready, but stayed in a buffer: a runtime that writes to a pipe, and not to a terminal, writes a
    buffer only when it is full, or at the end of the process. Or the server reads all of stdin before it begins.""",
    fix="Flush stdout after each message: `flush=True` in Python, `fflush(stdout)` in C. Read stdin line by line.",
    meanwhile="Start the server with `stdbuf -oL`, or with `PYTHONUNBUFFERED=1`.",
    blame="server",
    spec="basic/transports#stdio",
    about="pairing",
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        @12 . stdin closed
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
        @12 . stdin closed
    """,
    on=(Result, Error),
    explains=("timed-out", "unanswered", "abandoned"),
    loss="The server answers only after its input has ended",
)
def buffered_output(message: Message, session: Session) -> Iterator[Fault]:
    """Report the first answer of a server, if it came a moment after the client had left."""
    left, exchange = session.left, message.exchange
    if left is None or exchange is None or message.http or message.sender != "server" or session.lossy:
        return
    kept, later = left - exchange.request.t, message.t - left
    if not session.answered and kept >= _WAITED and 0 < later <= _MOMENT:
        times = f"{duration_text(later)} later, after {duration_text(kept)}"
        end = "the client sent a signal" if session.signalled == left else "stdin was closed"
        yield Fault(f"{exchange.method} was answered only after {end} ({times}): the output is buffered", "/id")


@rule(
    "lifecycle/no-exit",
    "info",
    """The server was still running for a while after its client had closed stdin, without a request in flight, until a
    signal ended it. Clients close stdin first and then wait; a server that ignores that delays their exit, and stays as
    an orphan if the client cannot send a signal.""",
    fix="Exit when stdin ends: leave the read loop, close connections, and stop timers and threads.",
    meanwhile="Send SIGTERM some seconds after you have closed stdin, and then SIGKILL.",
    blame="server",
    spec="basic/lifecycle#shutdown",
    fails="""
        = 2025-06-18
        @1 . stdin closed
        @9 . signal 15
        . killed 15
    """,
    passes="""
        = 2025-06-18
        @1 . stdin closed
        . exit 0
    """,
    on=(ServerExit,),
    loss="The server does not exit when its client leaves",
)
def no_exit(exited: ServerExit, session: Session) -> Iterator[Fault]:
    """Report a process that had to be ended by a signal after the end of stdin."""
    left, end = session.left, exited.end
    ended = session.signalled or (end.t if end.signal is not None else None)
    if left is None or ended is None or ended - left < _LINGERS or session.lossy:
        return
    lived, how = ended - left, "until a signal ended it"
    if session.signalled and end.t - session.signalled >= _LINGERS:
        lived, how = end.t - left, "although it had been sent a signal meanwhile"
    if not any(it.request.sender == "client" and not it.cancelled for it in session.exchanges()):
        yield Fault(f"the server was still running {duration_text(lived)} after the client had closed stdin, {how}")
