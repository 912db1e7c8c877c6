"""Rules about the end of a server: whether it ended by itself, with requests in flight.

Clients end a server by closing stdin and by signals, often with requests in flight; what the server does after that is
no fault. Over HTTP a server is gone where it breaks off an answer, or cannot be reached.
"""

from collections.abc import Iterator

from mcpspy.conversation.model import ENDLESS, Message, ServerExit
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.wire.jsonrpc import Error

_MOST = 100  # requests in flight that are named


@rule(
    "lifecycle/server-exit",
    "error",
    """The server was gone before the client: its process could not be started, ended without an answer to the first
    request, or ended by a signal or another code than 0 with requests in flight; over HTTP it broke off its answer, or
    could not be reached. What a server does after its client has closed stdin or sent a signal is no finding.""",
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
    """Looks at the end of a process, and over HTTP at requests whose answer was broken off."""

    def check(self, event: ServerExit | Message) -> Iterator[Fault]:
        """Look at the end of a process, and at an answer that the relay gave in the server's place."""
        if isinstance(event, ServerExit):
            yield from self._exit(event)
        elif event.exchange and event.http and event.http.unreached:
            why = member(event.body.value, "error", "message")
            told = f": {why[:200]}" if isinstance(why, str) else ""
            yield Fault(f"the server did not answer {event.exchange.method}{told}")

    def _exit(self, exited: ServerExit) -> Iterator[Fault]:
        """See who left first, and what was in flight."""
        end, session = exited.end, exited.session
        if end.why is not None:
            yield Fault(end.why)
            return
        if session.gone is None or self.history.lossy:
            return
        waiting = [it for it in session.exchanges() if it.request.sender == "client" and not it.cancelled]
        certain = [it for it in waiting if not it.in_doubt and it.method != ENDLESS]
        how = f"by the signal {end.signal}" if end.signal is not None else f"with the code {end.code}"
        requests = tuple(it.request.n for it in certain[:_MOST])
        if not self.history.answered and not (waiting and not certain):
            what = f"the answer to {certain[0].method}" if certain else "an answer to anything"
            yield Fault(f"the server ended {how} without {what}", related=requests)
        elif certain and end.code != 0:
            more = f" and {len(certain) - 1} more" if len(certain) > 1 else ""
            yield Fault(f"the server ended {how}, with {certain[0].method}{more} in flight", related=requests)

    def end(self, request: Message) -> Iterator[Fault]:
        """See whether the answer was broken off; a stream that was resumed has brought it since."""
        exchange = request.exchange
        if exchange and exchange.lost and not exchange.cancelled and not exchange.in_doubt:
            how = "the server could not be reached for" if exchange.refused else "the server broke off its answer to"
            yield Fault(f"{how} {exchange.method}", "", (exchange.lost,), blame="server")
