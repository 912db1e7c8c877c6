"""What a gate holds is forwarded in its order, and released by its number."""

import asyncio

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Release
from mcpspy.gate.compiled import CompiledGate
from mcpspy.gate.gate import LIMIT, Gate
from mcpspy.gate.verdicts import Drop, Send
from mcpspy.recording.http_exchange import HttpExchange
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.gated_body import EventBlocks
from mcpspy.relay.http.passage import Passage
from tests.relay.stage import scripted
from tests.transcript import begin

A, B, C = (b'data: {"method":"%b"}\n\n' % name for name in (b"a", b"b", b"c"))
HOLD = {"name": "g", "when": {"method": "a"}, "action": {"hold": 60_000_000_000}}


class Stream:
    """An event stream from a server through a gate; `out` is what was forwarded."""

    def __init__(self, path, gate=HOLD):
        self.path, self.out, self.said = path, [], []
        recording = Recording(self.said.append, sink=begin(path))
        exchange = HttpExchange(recording)
        exchange.open_request(0, {"method": "GET", "target": "/", "version": "1.1", "headers": []})
        head = {"status": 200, "reason": "OK", "headers": [["content-type", "text/event-stream"]]}
        gates = Gate([CompiledGate(gate)], self.said.append)
        self.blocks = EventBlocks(LIMIT)
        channel = exchange.open_response(0, head)
        facts = gates.facts("server", "sse")
        self.passage = Passage(gates, facts, channel, recording, self.write, self.said.append)

    async def write(self, raw):
        self.out.append(raw)

    async def feed(self, raw):
        await self.passage.feed(self.blocks.feed(raw), 1)

    def records(self, kind):
        return [it for it in Capture(str(self.path)).records() if isinstance(it, kind)]


@pytest.mark.parametrize(
    ("verdict", "how", "sent"),
    [(None, "continued", A), (Drop("me"), "dropped", b""), (Send((b"x\n",), "me"), "edited", b"x\n\n")],
)
@scripted
async def test_a_held_event_is_released_by_its_number(tmp_path, verdict, how, sent):
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.feed(A + B)
    assert stream.out == []
    await stream.passage.release(1, how, verdict)
    assert b"".join(stream.out) == sent + B
    stream.passage.abandon()
    first, second = stream.records(Release)
    assert (first.held, first.how, first.dropped) == (1, how, how == "dropped")
    assert (second.held, second.how) == (2, "delayed")
    assert [frame.held for frame in stream.records(Frame)] == [1, 2]


@scripted
async def test_the_end_lets_all_go_in_order_and_a_client_that_left_drops_it(tmp_path):
    stream = Stream(tmp_path / "a.jsonl")
    await stream.feed(A + B + C)
    await stream.passage.end()
    assert b"".join(stream.out) == A + B + C
    other = Stream(tmp_path / "b.jsonl")
    await other.feed(A + B)
    other.passage.abandon()
    assert other.out == []
    assert [(it.how, it.dropped) for it in other.records(Release)] == [("closed", True), ("closed", True)]
    assert not [it for it in stream.records(Release) if it.dropped]


@scripted
async def test_an_event_that_is_too_long_waits_for_what_is_held(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    long = b"data: " + b"x" * LIMIT + b"\n\n"
    feeding = asyncio.create_task(stream.feed(A + long))
    await asyncio.sleep(0)
    assert stream.out == []
    await stream.passage.release(1, "continued")
    await feeding
    assert b"".join(stream.out) == A + long
    stream.passage.abandon()
    assert [frame.undecided for frame in stream.records(Frame)] == [False, True]


@scripted
async def test_a_receiver_that_has_left_is_told_and_recorded(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")

    async def broken(raw):
        raise ConnectionResetError

    await stream.feed(A)
    stream.passage._write = broken
    with pytest.raises(ConnectionResetError):
        await stream.passage.release(1, "continued")
    stream.passage.abandon()
    (release,) = stream.records(Release)
    assert release.dropped
