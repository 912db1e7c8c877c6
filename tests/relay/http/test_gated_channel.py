"""Frames that a gate holds are forwarded in their order, and released by their number."""

import asyncio

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Release
from mcpspy.gate.gate import LIMIT, Exit, Refuse, Reply
from mcpspy.gate.messages import read
from mcpspy.gate.order import BYTES, FRAMES
from mcpspy.recording.http_exchange import HttpExchange
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.gated_body import EventBlocks, Piece
from mcpspy.relay.http.gated_channel import GatedChannel
from mcpspy.relay.live_gate import LiveGate
from tests.relay.stage import scripted
from tests.transcript import begin

A, B, C = (b'data: {"method":"%b"}\n\n' % name for name in (b"a", b"b", b"c"))
HOLD = {"name": "g", "when": {"method": "a"}, "action": {"hold": 60_000_000_000}}


class Stream:
    """An event stream from a server through a gate; `out` has the forwarded bytes.

    With `broken`, the client has disconnected. It accepts more bytes while `room` is set.
    """

    def __init__(self, path, gate=HOLD, drain=None):
        self.path, self.out, self.said = path, [], []
        self.broken, self.room = False, asyncio.Event()
        self.room.set()
        recording = Recording(self.said.append, sink=begin(path))
        exchange = HttpExchange(recording)
        exchange.open_request(0, {"method": "GET", "target": "/", "version": "1.1", "headers": []})
        head = {"status": 200, "reason": "OK", "headers": [["content-type", "text/event-stream"]]}
        gates = self.gates = LiveGate([gate], {}, self.said.append)
        self.blocks = EventBlocks(LIMIT)
        channel = exchange.open_response(0, head)
        facts = gates.facts("server", "sse")
        self.gated_channel = GatedChannel(gates, facts, channel, recording, self.write, self.said.append, drain=drain)

    async def write(self, raw):
        if self.broken:
            raise ConnectionResetError
        self.out.append(raw)
        await self.room.wait()

    async def feed(self, raw):
        await self.gated_channel.feed(self.blocks.feed(raw), 1)

    async def until(self, condition):
        while not condition():  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0)

    def records(self, kind):
        return [it for it in Capture(str(self.path)).records() if isinstance(it, kind)]


@pytest.mark.parametrize(
    ("message", "how", "sent"),
    [(None, "continued", A), (None, "dropped", b""), (b"[\n]", "edited", b"data: [ ]\n\n")],
)
@scripted
async def test_a_held_event_is_released_by_its_number(tmp_path, message, how, sent):
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.feed(A + B)
    assert stream.out == []
    stream.gated_channel.release(1, how, message)
    await stream.gated_channel.drained()
    assert b"".join(stream.out) == sent + B
    stream.gated_channel.abandon()
    first, second = stream.records(Release)
    assert (first.held, first.how, first.dropped) == (1, how, how == "dropped")
    assert (second.held, second.how) == (2, "delayed")
    assert [frame.held for frame in stream.records(Frame)] == [1, 2]


@scripted
async def test_the_end_lets_all_go_in_order_and_a_client_that_left_drops_it(tmp_path):
    stream = Stream(tmp_path / "a.jsonl")
    await stream.feed(A + B + C)
    await stream.gated_channel.end()
    assert b"".join(stream.out) == A + B + C
    other = Stream(tmp_path / "b.jsonl")
    await other.feed(A + B)
    other.gated_channel.abandon()
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
    stream.gated_channel.release(1, "continued")
    await feeding
    assert b"".join(stream.out) == A + long
    stream.gated_channel.abandon()
    assert [frame.undecided for frame in stream.records(Frame)] == [False, True]


@scripted
async def test_no_more_waits_than_may_although_it_came_at_once(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    feeding = asyncio.create_task(stream.feed(A * (FRAMES + 500)))
    for _ in range(FRAMES):
        await asyncio.sleep(0)
    assert not feeding.done()
    assert len(stream.records(Frame)) == FRAMES
    await stream.gated_channel.end()
    await feeding
    assert b"".join(stream.out) == A * (FRAMES + 500)
    stream.gated_channel.abandon()


@scripted
async def test_many_frames_of_one_chunk_let_others_have_their_turn(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    feeding = asyncio.create_task(stream.feed(B * 1000))
    turns = 0
    while not feeding.done():
        await asyncio.sleep(0)
        turns += 1
    assert b"".join(stream.out) == B * 1000
    assert 10 < len(stream.out) < 100
    assert turns > 10


@scripted
async def test_a_receiver_that_has_left_is_told_and_recorded(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.feed(A)
    stream.broken = True
    stream.gated_channel.release(1, "continued")
    await stream.gated_channel.drained()
    stream.gated_channel.abandon()
    (release,) = stream.records(Release)
    assert release.dropped


@scripted
async def test_a_frame_of_ours_waits_until_no_frame_is_being_forwarded_in_pieces(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    stream.gated_channel.add(Reply(b"1\n", "gate g"))
    await stream.gated_channel.drained()
    await stream.gated_channel.feed([Piece(b"data: ", more=True)], 1)
    stream.gated_channel.add(Reply(b"2\n", "gate g"))
    await stream.gated_channel.feed([Piece(b"x\n", more=True)], 1)
    assert stream.out == [b"1\n\n", b"data: ", b"x\n"]
    await stream.gated_channel.feed([Piece(b"\n")], 1)
    assert stream.out[3:] == [b"\n", b"2\n\n"]
    assert [(it.raw, it.sender, it.by) for it in stream.records(Frame)] == [
        (b"1\n", "mcpspy", "gate g"),
        (b"data: x\n", None, None),
        (b"2\n", "mcpspy", "gate g"),
    ]


@pytest.mark.parametrize(("count", "size"), [(FRAMES, 1), (2, BYTES // 2)])
@scripted
async def test_only_so_much_of_ours_waits(tmp_path, count, size):
    """The side that causes replies then waits, and is no longer read."""
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.gated_channel.feed([Piece(b"data: ", more=True)], 1)
    for _ in range(count - 1):
        stream.gated_channel.add(Reply(b"1" * size, "gate g"))
    await stream.gated_channel.own_room()
    stream.gated_channel.add(Reply(b"1" * size, "gate g"))
    waiting = asyncio.create_task(stream.gated_channel.own_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await stream.gated_channel.feed([Piece(b"x\n\n")], 1)
    await waiting
    assert len(stream.out) == count + 2


@scripted
async def test_what_was_handed_on_counts_as_sent_although_nobody_may_take_it(tmp_path):
    written = asyncio.Event()

    async def never():
        written.set()
        await asyncio.Event().wait()

    stream = Stream(tmp_path / "capture.jsonl", HOLD | {"action": {"delay": 1}}, drain=never)
    await stream.feed(A)
    await written.wait()
    stream.gated_channel.abandon()  # the task of the timer waits in `drain`, and is cancelled
    assert stream.out == [A]
    assert [(it.how, it.dropped) for it in stream.records(Release)] == [("delayed", False)]


@scripted
async def test_frames_of_one_chunk_are_recorded_in_their_order(tmp_path):
    """Also if a later frame is held."""
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.feed(B + C + A + B)
    stream.gated_channel.abandon()
    assert [it.raw for it in stream.records(Frame)] == [B[:-1], C[:-1], A[:-1], B[:-1]]
    assert b"".join(stream.out) == B + C


@scripted
async def test_a_release_that_comes_too_late_lets_nothing_go(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.feed(A)
    stream.gated_channel.release(1, "continued")
    stream.gated_channel.abandon()
    stream.gated_channel.release(1, "continued")
    await stream.gated_channel.drained()
    assert [(it.held, it.how, it.dropped) for it in stream.records(Release)] == [(1, "closed", True)]
    assert stream.out == []


@scripted
async def test_whoever_holds_a_frame_is_known_as_long_as_it_does(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.feed(A + B + A + A)
    channel, holders = stream.gated_channel, stream.gates.holders
    assert holders == dict.fromkeys((1, 2, 3, 4), channel)
    channel.release(1, "dropped")
    await stream.until(lambda: len(holders) < 4)
    assert sorted(holders) == [3, 4]
    await channel.end()
    assert holders == {}
    await stream.feed(B)
    assert holders == {}
    channel.abandon()


@pytest.mark.parametrize("order", [("answered", b"{}"), ("edited", b"{}")])
@scripted
async def test_what_cannot_be_done_with_a_held_frame_is_told_once_and_it_stays_held(tmp_path, order):
    """A frame without a request cannot be answered, and an event without data cannot carry a message."""
    bare = b"event: a\n\n"
    stream = Stream(tmp_path / "capture.jsonl", HOLD | {"when": {}})
    await stream.feed(bare)
    stream.gated_channel.release(1, *order)
    await stream.until(lambda: stream.said)
    assert list(stream.gates.holders) == [1]
    assert stream.out == []
    stream.gated_channel.release(1, "continued")
    await stream.gated_channel.drained()
    assert (stream.out, len(stream.said)) == ([bare], 1)


@pytest.mark.parametrize(("verdict", "word"), [(Refuse(503, "gate g"), "status"), (Exit(1, "gate g"), "end a server")])
@scripted
async def test_a_verdict_that_is_for_others_lets_the_frame_pass_and_is_told(tmp_path, verdict, word):
    stream = Stream(tmp_path / "capture.jsonl")
    await stream.gated_channel.take(Piece(A, A[:-1], b"\n"), verdict, 1)
    assert (stream.out, len(stream.said)) == ([A], 1)
    assert word in stream.said[0]
    stream.gated_channel.abandon()
    assert [it.by for it in stream.records(Frame)] == [None]


@scripted
async def test_what_comes_behind_a_verdict_that_closes_is_recorded_as_not_sent(tmp_path):
    close = {"name": "g", "when": {"method": "b"}, "action": {"close": True}}
    stream = Stream(tmp_path / "capture.jsonl", close)
    await stream.feed(A + B + C + b"\n")
    await stream.feed(C + b"data: cut")
    await stream.gated_channel.feed(stream.blocks.end(), 1)
    stream.gated_channel.abandon()
    assert stream.out == [A]
    a, *others = stream.records(Frame)
    assert (a.dropped, a.by) == (False, None)
    assert [it.raw for it in others] == [B[:-1], C[:-1], C[:-1], b"data: cut"]
    assert [(it.dropped, it.by, it.cut) for it in others] == [(True, "gate g", False)] * 3 + [(True, "gate g", True)]


@scripted
async def test_what_a_gate_has_changed_and_nobody_takes_is_recorded_as_not_sent(tmp_path):
    stream = Stream(tmp_path / "capture.jsonl", HOLD | {"action": {"send": ["1", "2"]}})
    stream.broken = True
    with pytest.raises(ConnectionResetError):
        await stream.feed(A + B)
    changed, passed = stream.records(Frame)
    assert (changed.raw, changed.sent, changed.dropped, changed.by) == (A[:-1], None, True, "gate g")
    assert (passed.raw, passed.dropped) == (B[:-1], False)


@scripted
async def test_a_request_that_is_held_alone_can_be_cancelled(tmp_path):
    hold = {"name": "g", "when": {}, "action": {"hold": 60_000_000_000}}
    stream = Stream(tmp_path / "capture.jsonl", hold)
    ask = '{"jsonrpc":"2.0","id":%d,"method":"a"}'
    await stream.feed(f"data: {ask % 1}\n\ndata: [{ask % 2},{ask % 3}]\n\n".encode())
    ids = [read(b'{"id":%d,"method":"a"}' % number, "body")[0].id for number in (1, 2, 4)]
    assert [await stream.gated_channel.cancel(key) for key in ids] == ["gate g", "", ""]
    assert stream.out == []
    (release,) = stream.records(Release)
    assert (release.held, release.how, release.dropped, release.by) == (1, "cancelled", True, "gate g")
    stream.gated_channel.abandon()


@scripted
async def test_the_parts_of_a_batch_are_not_searched_for_each_other(tmp_path):
    """The search would take time quadratic in the number of parts."""

    class Counted(Piece):
        compared = 0

        def __eq__(self, other):
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = Piece.__hash__

    stream = Stream(tmp_path / "capture.jsonl")
    await stream.gated_channel.feed([Counted(b": %d\n" % number) for number in range(1000)], 1)
    assert Counted.compared == 0
