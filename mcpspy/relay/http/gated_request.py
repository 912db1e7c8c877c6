"""The body of a request on its way through the gate of the relay: JSON of at most 1 MiB, decided on as a whole.

A request that is dropped or answered never reaches the upstream: the client gets status 202, or the answer with status
200. Several frames in the place of one stand in the same body, one after the other.
"""

from collections.abc import Callable

from aiohttp import web
from aiohttp.streams import StreamReader

from mcpspy.gate.gate import LIMIT, Gate
from mcpspy.gate.verdicts import PASS, Hold, Pass, Reply, Send
from mcpspy.recording.http_body import Body
from mcpspy.relay.http.encoders import coded, encoder
from mcpspy.relay.http.gated_body import Piece
from mcpspy.relay.http.heads import Head, every
from mcpspy.relay.http.passage import Passage
from mcpspy.relay.http.route import Asked
from mcpspy.wire.content_coding import Decoder


def too_long(body: bytes) -> bool:
    """Whether a body is too long to decide on."""
    return len(body) > LIMIT


async def collect(content: StreamReader) -> tuple[bytes, bool]:
    """What has come of a body, up to somewhat more than may be decided on; and whether it is whole."""
    parts, size = [], 0
    try:
        while not content.at_eof() and size <= LIMIT:
            parts.append(await content.readany())
            size += len(parts[-1])
    except (web.RequestPayloadError, ConnectionError):  # who forwards the body meets it again
        return b"".join(parts), False
    return b"".join(parts), content.at_eof()


async def decide(
    exchange: Asked, gate: Gate, body: bytes, head: Head, *, chunked: bool, begin: Callable[[], Body]
) -> bytes | Pass | None:
    """The body to forward instead, the verdict that it passes, or None where the request goes no further.

    `head` is changed where the length may be another; `begin` opens the channel of the request.
    """
    encoding = every(exchange.headers, b"content-encoding")
    decoder = Decoder(encoding)
    plain = b"".join(decoder.feed(body))
    decoder.end()
    if not plain or decoder.fault or not (decoder.plain or encoder(encoding)):
        return PASS
    t = exchange.route.now()
    facts = gate.facts("client", "body", exchange.session)
    verdict = gate.decide(plain, facts, t)
    if isinstance(verdict, Pass):
        return verdict
    if isinstance(verdict, Send | Hold) and not chunked:
        head.chunk(verdict.by)
    channel = begin()
    channel.decoded()
    out: list[bytes] = []
    answers: list[Reply] = []

    async def write(forwarded: bytes) -> None:
        out.append(forwarded)

    async def reply(answer: Reply) -> None:
        answers.append(answer)

    passage = Passage(
        gate,
        facts,
        channel,
        exchange.route.recording,
        write,
        exchange.relay.say,
        render=lambda frame, _: coded(frame, encoding),
        reply=reply,
    )
    try:
        await passage.take(Piece(body, plain), verdict, t)
        await passage.drained()
    finally:
        passage.abandon()
    channel.end(exchange.route.now(), "eof")
    if out:
        return b"".join(out)
    if passage.closed:
        exchange.keep_alive = False
        if exchange.request.transport:
            exchange.request.transport.close()
    else:
        await _answer(exchange, answers[0] if answers else None)
    return None


async def _answer(exchange: Asked, reply: Reply | None) -> None:
    """Answer the client in the upstream's place: with the reply, or that the request was accepted."""
    t = exchange.route.now()
    status, reason, body = (200, "OK", reply.frame) if reply else (202, "Accepted", b"")
    headers = [(b"Content-Type", b"application/json")] if reply else []
    head = Head(f"HTTP/1.1 {status} {reason}".encode(), [*headers, (b"Content-Length", b"%d" % len(body))])
    exchange.say_whether_we_close(head)
    await exchange.request.writer.write(head.encode() + body)
    channel = exchange.open_response("mcpspy", t, head.headers, status, reason, Head(b""))
    if reply:
        channel.frame(body, t, gated={"by": reply.by})
    channel.end(t, "eof")
