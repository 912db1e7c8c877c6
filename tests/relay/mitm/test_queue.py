"""Bodies that decode to many times their size are recorded in turns with everything else."""

import zlib
from collections import deque

import pytest

from mcpspy.capture.records import Close, Frame
from mcpspy.relay.mitm import flow as module
from mcpspy.relay.mitm.flow import BACKLOG, CODED_PIECE, Turns
from tests.relay.mitm.kept import CALL, JSON


class Loop:
    """An event loop that makes its calls when a test asks for it."""

    def __init__(self):
        self.waiting = deque()

    def later(self, call):
        self.waiting.append(call)

    def turn(self):
        for _ in range(len(self.waiting)):
            self.waiting.popleft()()

    def turns(self):
        count = 0
        while self.waiting:
            count += 1
            self.turn()
        return count


CODED = [*JSON, (b"Content-Encoding", b"deflate")]
MANY = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"%x"}\n' % (n, n * 7919) for n in range(40_000))


def coded_flow(kept, loop, coded):
    """Return the turns of a flow whose compressed response arrives all at once."""
    turns = Turns(kept.flow((b"mcp-method", b"ping")), loop.later)
    turns.feed(CALL, by_client=True)
    turns.add(lambda flow, t: flow.request_ended(t))
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", CODED))
    turns.feed(coded, by_client=False)
    turns.add(lambda flow, t: flow.response_ended(t, switch=False))
    return turns


def test_a_coded_body_is_taken_apart_in_many_turns_and_all_else_waits_for_it(kept, monkeypatch):
    """S-01: other flows have turns in between; the order within a flow is kept."""
    monkeypatch.setattr(module, "TURN", 0)
    coded = zlib.compress(MANY)
    loop = Loop()
    turns = coded_flow(kept, loop, coded)
    assert loop.turns() == -(-len(coded) // CODED_PIECE) + 1
    assert turns.flow.over
    assert b"".join(record.raw for record in kept.records(Frame) if record.ch == 2) == MANY
    assert [record.how for record in kept.records(Close)] == ["eof", "eof"]


def test_what_takes_no_time_shares_a_turn(kept, monkeypatch):
    monkeypatch.setattr(module, "TURN", 1 << 60)
    coded = zlib.compress(MANY)
    loop = Loop()
    turns = Turns(kept.flow((b"mcp-method", b"ping")), loop.later)
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", CODED))
    for start in range(0, len(coded), 64):
        turns.feed(coded[start : start + 64], by_client=False)
    assert loop.turns() == 1


@pytest.mark.parametrize("headers", [JSON, CODED])
def test_a_body_that_is_not_recorded_or_not_coded_takes_one_turn(kept, monkeypatch, headers):
    """A body that is not MCP need not be decoded."""
    monkeypatch.setattr(module, "TURN", 0)
    loop = Loop()
    turns = Turns(kept.flow(), loop.later)
    turns.flow.request_ended(1)
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", headers))
    if headers is CODED:
        turns.flow.pending.discard()
    turns.feed(b"x" * 100_000, by_client=False)
    assert loop.turns() == 1


def test_what_waits_for_its_turn_is_bounded(kept, monkeypatch):
    """M-04: a flow does not block others, unless its backlog would take too much memory."""
    loop = Loop()
    turns = coded_flow(kept, loop, zlib.compress(MANY))
    monkeypatch.setattr(module, "TURN", 0)
    monkeypatch.setattr(module, "BACKLOG", 3 * CODED_PIECE)
    assert loop.turns() == 3 + 2  # the first turn records all but 3 pieces, the last one the end
    assert turns.flow.over
    assert BACKLOG <= 1 << 24


def test_what_waits_is_recorded_at_the_end(kept):
    loop = Loop()
    turns = coded_flow(kept, loop, zlib.compress(MANY))
    turns.finish()
    loop.turns()
    assert b"".join(record.raw for record in kept.records(Frame) if record.ch == 2) == MANY


def test_a_bug_in_one_turn_does_not_lose_the_others(kept):
    """S-01: the event loop reports the exception."""

    def bug(flow, t):
        raise ZeroDivisionError

    loop = Loop()
    turns = Turns(kept.flow((b"mcp-method", b"ping")), loop.later)
    turns.add(bug)
    turns.feed(CALL, by_client=True)
    with pytest.raises(ZeroDivisionError):
        loop.turn()
    loop.turns()
    turns.add(bug)
    turns.finish()
    turns.flow.request_ended(1)
    assert [record.raw for record in kept.records(Frame)] == [CALL]
