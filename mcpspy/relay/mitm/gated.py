"""The gate of `mitm` for one flow: JSON bodies here, events and WebSocket messages in other modules.

The rules:

- A request with a JSON body is collected and decided on before it is forwarded; so is a JSON response.
- A body that is too long passes undecided. So does a body that cannot be decoded, with a notice for the user.
- A request that is dropped or answered never reaches the server. For a dropped request, the client gets status 202. For
  an answered one, it gets the answer with status 200. For a refused one, it gets the status that the gate names and a
  JSON-RPC error.
- A body keeps its content coding, and its length is corrected.
- A cancellation drops a request of its session that is held in another flow, and is dropped itself.
- While no gate is in force, nothing is collected. A gate that comes into force applies from the next head on, or from
  the next message of a WebSocket on.

Nothing here imports mitmproxy; only attributes of its flows and messages are used.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mcpspy.gate.facts import Facts
from mcpspy.gate.verdicts import Drop, Pass, Refuse, Reply, Send
from mcpspy.recording.http_exchange import Body, Fields
from mcpspy.relay.http.collected_body import CollectedBody, announces_too_much, decodable
from mcpspy.relay.http.gated_channel import GatedChannel, cancel
from mcpspy.relay.http.heads import RawHeaders, every, first, is_json
from mcpspy.relay.http.local_replies import gated_answer, reason
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm.flow import Flow
from mcpspy.relay.mitm.gated_events import GatedEvents
from mcpspy.relay.mitm.gated_socket import GatedSocket
from mcpspy.relay.mitm.queue import Turns

if TYPE_CHECKING:
    from mcpspy.gate.verdicts import Verdict

Answer = tuple[int, bytes, RawHeaders]
"""Status, body and headers of our own response."""


class GatedFlow:
    """The gate of one flow.

    `peer` is the client's address. `say` gets a sentence for the user, `record` an entry that ends the recorded flow.
    """

    def __init__(
        self,
        gate: LiveGate,
        turns: Turns,
        headers: RawHeaders,
        peer: str,
        say: Callable[[str], None],
        record: Callable[[Callable[[Flow, int], object]], None],
    ) -> None:
        session = first(headers, b"mcp-session-id")
        self._gate = gate
        self._turns = turns
        self._session = session.decode("latin-1") if session else peer
        self._say = say
        self._record = record
        self._begin: Callable[[Fields | None], object] | None = None
        self._by_client = True  # whether the collected body is the client's
        self._gated_channel: GatedChannel | None = None
        self._plain = b""  # the last body that was decided on, decoded
        self._left = False  # whether the client has disconnected while a body was held
        self._closed = False
        self.events: GatedEvents | None = None
        """The response, if it is an event stream."""
        self.socket: GatedSocket | None = None
        """The WebSocket, if the flow has become one."""
        turns.flow.abandon = self.abandon

    @property
    def collecting(self) -> bool:
        """Whether a body is being collected, so that nothing of it is recorded yet."""
        return self._begin is not None

    @property
    def closed(self) -> bool:
        """Whether a verdict has ended the flow."""
        parts = self.events, self.socket
        return self._closed or any(part.closed for part in parts if part)

    def collect_request(self, request: Any) -> bool | Callable[[bytes], list[bytes]] | None:
        """Return the value for `request.stream`, as `_collect` does."""
        if request.method != "POST" or not self._gate.look(self._turns.flow.origin.now()):
            return None
        return self._collect(request, self._turns.flow.open_request, by_client=True)

    def take_response(
        self, request: Any, response: Any, begin: Callable[[Fields | None], object]
    ) -> bool | Callable[[bytes], list[bytes]] | None:
        """Return the value for `response.stream`, as `_collect` does; `begin` opens the channel of the response.

        If an event stream has a length, it is removed from the head, because the gate may change the length.
        """
        headers = list(response.headers.fields)
        if request.method == "HEAD" or response.status_code in (101, 204, 304):
            return None
        if not self._gate.look(self._turns.flow.origin.now()):
            return None
        if "text/event-stream" not in every(headers, b"content-type").lower():
            return self._collect(response, begin, by_client=False)
        encoding = every(headers, b"content-encoding")
        if not decodable(encoding):
            self._say(_undecidable("server"))
            return None
        if request.http_version == "HTTP/1.0" and first(headers, b"content-length"):
            return None
        changes = _without_length(response) if first(headers, b"content-length") else None
        self._turns.add(lambda _flow, _t: begin(changes))
        facts = self._gate.facts("server", "sse", self._session)
        self.events = GatedEvents(self._gate, facts, self._turns, encoding, self._say)
        return self.events

    def _collect(
        self, message: Any, begin: Callable[[Fields | None], object], *, by_client: bool
    ) -> bool | Callable[[bytes], list[bytes]] | None:
        """Return False to collect a JSON body, a function to stream one that passes undecided, else None."""
        headers = list(message.headers.fields)
        if not is_json(headers):
            return None
        self._begin, self._by_client = begin, by_client
        if not decodable(every(headers, b"content-encoding")):
            self._say(_undecidable("client" if by_client else "server"))
            return self.let_pass(undecided=True)
        return self.let_pass(undecided=True) if announces_too_much(headers) else False

    def let_pass(self, *, undecided: bool) -> Callable[[bytes], list[bytes]]:
        """Stop collecting: open the channel, and return the function that passes chunks on and records them.

        `undecided` is set if the gate cannot decide on the body.
        """
        begin, self._begin, by_client = self._begin, None, self._by_client

        def opened(flow: Flow, _: int) -> None:
            if begin:
                begin(None)
            body = flow.request if by_client else flow.response
            if undecided and body:
                body.undecided()

        def pass_on(chunk: bytes) -> list[bytes]:
            if chunk:
                self._turns.feed(chunk, by_client=by_client)
            return [chunk] if chunk else []

        self._turns.add(opened)
        return pass_on

    async def request(self, flow: Any) -> Answer | None:
        """Decide on the body of the request; return the answer to it if it is not forwarded, else None.

        If a verdict closes the stream, the flow is killed.
        """
        replies: list[Reply | Refuse] = []

        async def reply(answer: Reply | Refuse) -> None:
            replies.append(answer)

        passes = await self._decide(flow.request, "client", reply)
        self._turns.add(lambda recording, t: recording.request_ended(t))
        if self._left or self._closed:
            self.close(flow)
        if passes or self._left or self._closed:
            return None
        answer = replies[0] if replies else None
        status, head, body = gated_answer(answer, self._plain)
        by = {"by": answer.by} if answer else None

        def answered(recording: Flow, t: int) -> None:
            channel = recording.respond(t, status, reason(status), head.headers, "mcpspy", by)
            if answer:
                channel.frame(body, t, gated=by)
            recording.response_ended(t, switch=False)

        self._record(answered)
        return status, body, [field for field in head.headers if field[0] != b"Content-Length"]

    async def response(self, flow: Any) -> None:
        """Decide on the body of the response. If a verdict closes the stream, the flow is killed."""
        passes = await self._decide(flow.response, "server", None)
        if self._left or self._closed:
            self.close(flow)
        elif not passes:
            flow.response.raw_content = b""
            _set_length(flow.response, 0)

    def close(self, flow: Any) -> None:
        """End the flow; the client gets no response, or not all of it."""
        self._record(lambda recording, t: recording.end(t, "eof", "abort"))
        if flow.killable:
            flow.kill()

    def open_socket(self, wake: Callable[[], None]) -> GatedSocket:
        """Return the `GatedSocket` of a flow that has become a WebSocket; `wake` is passed to it."""
        self.socket = GatedSocket(self._gate, self._turns, self._say, wake)
        return self.socket

    def left(self) -> None:
        """Stop holding a body, because the client has disconnected."""
        if self._gated_channel:
            self._left = True
            self._gated_channel.abandon()

    def abandon(self) -> None:
        """Record that held frames are not forwarded."""
        self.left()
        if self.events:
            self.events.abandon()
        if self.socket:
            self.socket.abandon()

    async def _decide(self, message: Any, sender: str, reply: Callable[[Reply | Refuse], Any] | None) -> bool:
        """Decide on a whole body, apply the verdict, and put the result into the message.

        Returns False if nothing of the body is forwarded.
        """
        headers = list(message.headers.fields)
        body = CollectedBody(message.raw_content or b"", every(headers, b"content-encoding"))
        flow, self._plain = self._turns.flow, body.plain
        t = flow.origin.now()
        facts = self._gate.facts(sender, "body", self._session)
        verdict = body.decide(self._gate, facts, t)
        if isinstance(verdict, Pass) and verdict.cancels and sender == "client":
            by = await cancel(flow.origin.held, self._session, verdict.cancels)
            verdict = Drop(by) if by else verdict
        if isinstance(verdict, Pass):
            if body.damaged:
                self._say(_undecidable(sender))
            self.let_pass(undecided=verdict.undecided or body.damaged)(body.raw)
            return True
        begin, self._begin = self._begin, None
        self._turns.finish()  # so that this channel is recorded next
        sent = verdict.frames if isinstance(verdict, Send) else () if isinstance(verdict, Drop) else None
        changes = None
        if sent is not None and (sent or sender == "server"):
            size = b"%d" % (len(body.forwarded(sent)) if sent else 0)
            if first(headers, b"content-length") not in (None, size):
                changes = {"sent": {"headers": [["content-length", size.decode()]]}, "by": verdict.by}
        if begin:
            begin(changes)
        channel = flow.request if sender == "client" else flow.response
        return channel is None or await self._wait(message, body, channel, facts, verdict, reply, t)

    async def _wait(
        self,
        message: Any,
        body: CollectedBody,
        channel: Body,
        facts: Facts,
        verdict: "Verdict",
        reply: Callable[[Reply | Refuse], Any] | None,
        t: int,
    ) -> bool:
        out: list[bytes] = []

        async def write(forwarded: bytes) -> None:
            out.append(forwarded)

        flow = self._turns.flow
        gated_channel = body.gated_channel(
            self._gate, facts, channel, flow.recording, write, self._say, reply=reply, refuse=reply
        )
        self._gated_channel, waiting = gated_channel, (self._session, gated_channel)
        if facts.sender == "client":
            flow.origin.held.append(waiting)
        try:
            await body.carry_out(gated_channel, verdict, t)
        finally:
            self._gated_channel = None
            if waiting in flow.origin.held:
                flow.origin.held.remove(waiting)
        self._closed = gated_channel.closed
        if out:
            message.raw_content = out[0]
            _set_length(message, len(out[0]))
        return bool(out)


def _undecidable(sender: str) -> str:
    """Return the notice for the user about a content coding that cannot be decoded."""
    what = "request" if sender == "client" else "response"
    return f"a {what} has a content coding that cannot be decoded; such {what}s pass undecided"


def _set_length(message: Any, size: int) -> None:
    """Correct the length of a body, if the head has one."""
    if "content-length" in message.headers:
        message.headers["content-length"] = str(size)


def _without_length(message: Any) -> Fields:
    """Remove the length from a head, because the body may change. Returns `sent` and `by`."""
    del message.headers["content-length"]
    sent: list[Iterable[str | None]] = [["content-length", None]]
    if message.http_version.startswith("HTTP/1"):
        message.headers["transfer-encoding"] = "chunked"
    return {"sent": {"headers": sent}, "by": "gate"}
