"""The body of a request that passes the gate of the relay: JSON of at most 1 MiB, decided on as a whole.

A request that is dropped or answered never reaches the upstream. For a dropped request, the client gets status 202. For
an answered one, it gets the answer with status 200. For a refused one, it gets the status that the gate names and a
JSON-RPC error. A client of HTTP+SSE gets the answer on its event stream, unless that stream has a content coding and
was open before the gate was in force. If a verdict replaces one frame by several, they are written into the same body,
one after the other.

A cancellation in another request of the session drops the request that it names if that request is held, and is dropped
itself. A held request in a batch is not dropped.

A client that waits before it sends its body (`Expect: 100-continue`) gets the 100 response here; the upstream gets the
request when the body is known. A body with an unknown content coding passes undecided, and the user gets one notice.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http import HttpVersion11

from mcpspy.gate.gate import LIMIT
from mcpspy.gate.verdicts import Drop, Hold, Pass, Refuse, Reply, Send
from mcpspy.recording.http_exchange import Body
from mcpspy.relay.http.collected_body import CollectedBody, announces_too_much, keeps_body
from mcpspy.relay.http.gated_channel import cancel
from mcpspy.relay.http.heads import Head, every, recorded
from mcpspy.relay.http.local_replies import gated_answer, reason
from mcpspy.relay.http.route import RequestContext, say_once
from mcpspy.relay.live_gate import LiveGate

if TYPE_CHECKING:
    from mcpspy.gate.verdicts import Verdict


async def collect(request: web.BaseRequest, head: Head) -> tuple[bytes, bool, bool]:
    """Read a body until it is complete or too long for a decision.

    Returns the bytes read so far, whether they are the whole body, and whether it is too long; if it is, more may
    follow. If the Content-Length is too large, nothing is read.
    """
    content = request.content
    if announces_too_much(list(request.raw_headers)):
        return b"", False, True
    if any(name.lower() == b"expect" for name, _ in head.headers):
        if request.version >= HttpVersion11:
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # RFC 9110, 10.1.1
        head.drop(b"expect", "gate")
    parts, size, broken = [], 0, False
    try:
        while not content.at_eof() and size <= LIMIT:
            parts.append(await content.readany())
            size += len(parts[-1])
    except (web.RequestPayloadError, ConnectionError):  # the code that forwards the body gets this error again
        broken = True
    return b"".join(parts), content.at_eof() and not broken, size > LIMIT


async def decide(
    exchange: RequestContext, gate: LiveGate, body: bytes, head: Head, *, chunked: bool, begin: Callable[[], Body]
) -> bytes | Pass | None:
    """Apply the gate's verdict to the body of a request.

    Returns the bytes to forward instead, the verdict if the body passes, or None if the request is not forwarded.
    `head` is changed if the length may change; `begin` opens the channel of the request.
    """
    collected = CollectedBody(body, every(exchange.headers, b"content-encoding"))
    if collected.damaged:
        say_once(exchange, "a request has a content coding that cannot be decoded; such requests pass undecided")
    t = exchange.route.now()
    facts = gate.facts("client", "body", exchange.session)
    verdict: Verdict = collected.decide(gate, facts, t)
    if isinstance(verdict, Pass):
        by = await cancel(exchange.route.held, exchange.session, verdict.cancels) if verdict.cancels else ""
        if not by:
            return verdict
        verdict = Drop(by)
    if isinstance(verdict, Send | Hold) and not (chunked or keeps_body(verdict)):
        head.chunk(verdict.by)
        chunked = True
    out: list[bytes] = []
    answers: list[Reply | Refuse] = []

    async def write(forwarded: bytes) -> None:
        out.append(forwarded)

    async def reply(answer: Reply | Refuse) -> None:
        answers.append(answer)

    channel = begin()
    gated_channel = collected.gated_channel(
        gate, facts, channel, exchange.route.recording, write, partial(say_once, exchange), reply=reply, refuse=reply
    )
    waiting = (exchange.session, gated_channel)
    exchange.route.held.append(waiting)
    try:
        await collected.carry_out(gated_channel, verdict, t)
    finally:
        exchange.route.held.remove(waiting)
    channel.end(exchange.route.now(), "eof")
    if out:
        if out[0] is not body and not chunked:  # the body was changed while it was delayed
            head.chunk("gate")
        return out[0]
    if gated_channel.closed:
        exchange.keep_alive = False
        if exchange.request.transport:
            exchange.request.transport.close()
    else:
        await _answer(exchange, answers[0] if answers else None, collected.plain)
    return None


async def _answer(exchange: RequestContext, reply: Reply | Refuse | None, request: bytes) -> None:
    """Answer the client in place of the upstream: with the reply or the status; with 202 if there is neither."""
    t = exchange.route.now()
    stream = exchange.route.streams.get(exchange.session)
    if stream and isinstance(reply, Reply):  # a client of HTTP+SSE expects the answer on its stream
        stream.add(Reply(b"event: message\ndata: " + reply.frame + b"\n", reply.by))
        reply = None
    status, head, body = gated_answer(reply, request)
    exchange.say_whether_we_close(head)
    await exchange.request.writer.write(head.encode() + body)
    came = {"status": status, "reason": reason(status), "headers": recorded(head.headers)}
    channel = exchange.recorded.open_response(t, came, "mcpspy", {"by": reply.by} if reply else None)
    if reply:
        channel.frame(body, t, gated={"by": reply.by})
    channel.end(t, "eof")
