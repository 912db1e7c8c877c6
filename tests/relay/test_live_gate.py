"""The gate of one capture: in force only while a gate is set, or while a viewer waits for a response."""

import asyncio

import pytest

from mcpspy.capture.live import LiveViewer
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Gates
from mcpspy.gate.gate import PASS, Drop
from mcpspy.recording.recording import Recording
from mcpspy.relay.control import INTERVAL
from mcpspy.relay.live_gate import LiveGate
from tests.relay.stage import scripted

DROP = {"name": "d", "when": {"method": "a"}, "action": {"drop": True}}
FRAME = b'{"method":"a"}'
OWN = "string", "mcpspy-1"
ANSWER = b'{"jsonrpc":"2.0","id":"mcpspy-1","result":{}}'


class Session:
    def __init__(self, path, gates=(), *, control=True):
        self.path, self.said, self.sent, self.t = str(path), [], [], 0
        self.recording = Recording(self.said.append)
        self.recording.begin("http", "n", output=self.path, control=control)
        self.gate = LiveGate(gates, {}, self.said.append, control=control)
        self.gate.begin(self.recording, lambda *sent: self.sent.append(sent))
        self.viewer = LiveViewer(self.path, Capture(self.path).header.id)

    def decide(self, frame=FRAME, sender="client", framing="lines"):
        self.t += INTERVAL
        return self.gate.decide(frame, self.gate.facts(sender, framing), self.t)

    def look(self):
        self.t += INTERVAL
        return self.gate.look(self.t)

    def recorded(self):
        return [(list(it.gates), it.by) for it in Capture(self.path).records() if isinstance(it, Gates)]


@pytest.fixture
def session(tmp_path):
    session = Session(tmp_path / "capture.jsonl")
    yield session
    session.viewer.close()
    session.gate.end()


def test_a_gate_is_in_force_while_a_viewer_sets_one_and_both_are_recorded(session):
    assert not session.look()
    session.viewer.set_gates([DROP])
    assert session.look()
    assert isinstance(session.decide(), Drop)
    session.viewer.set_gates([])
    assert session.decide() is PASS
    assert not session.look()
    assert session.recorded() == [([DROP], "viewer"), ([], "viewer")]
    assert session.said == []


def test_the_gates_of_a_file_are_always_in_force_and_recorded_at_the_beginning(tmp_path):
    session = Session(tmp_path / "capture.jsonl", [DROP], control=False)
    session.viewer.set_gates([DROP | {"name": "other"}])
    assert session.look()
    assert not session.gate.controlled
    assert session.recorded() == [([DROP], "file")]
    session.viewer.close()


def test_a_relay_that_cannot_send_requests_of_viewers_says_so(tmp_path):
    session = Session(tmp_path / "capture.jsonl")
    session.gate.begin(session.recording)
    session.viewer.send("{}")
    session.look()
    assert session.said == ["this relay cannot send requests of viewers"]


@pytest.mark.parametrize(("framing", "frame"), [("message", ANSWER), ("sse", b"data: " + ANSWER + b"\n")])
def test_the_answer_that_a_viewer_awaits_is_dropped_once(session, framing, frame):
    session.gate.await_answer(OWN)
    assert session.look()
    assert session.decide(frame, "client", framing) is PASS
    assert session.decide(frame.replace(b"-1", b"-2"), "server", framing) is PASS
    verdict = session.decide(frame, "server", framing)
    assert isinstance(verdict, Drop)
    assert verdict.by == "viewer"
    assert not session.look()
    assert session.decide(frame, "server", framing) is PASS


def test_an_answer_that_came_another_way_is_not_awaited(session):
    session.gate.await_answer(OWN)
    session.gate.forget(OWN)
    assert not session.look()


def test_the_answers_that_are_awaited_are_bounded(session):
    for number in range(200):
        session.gate.await_answer(("string", f"mcpspy-{number}"))
    assert session.decide(ANSWER, "server") is PASS
    assert isinstance(session.decide(ANSWER.replace(b"-1", b"-150"), "server"), Drop)


def test_what_is_no_gate_is_refused():
    with pytest.raises(ValueError, match="colour"):
        LiveGate([DROP | {"when": {"colour": "red"}}], {}, print)


class Holding:
    """A holder of frames; it keeps the orders that it receives, and releases the frames."""

    def __init__(self, gate, *numbers):
        self.gate, self.released, self.gone = gate, [], asyncio.Event()
        gate.holders.update(dict.fromkeys(numbers, self))

    def release(self, held, how, message=None):
        self.released.append((held, how))
        del self.gate.holders[held]
        if not self.gate.holders:
            self.gone.set()


@scripted
async def test_while_many_frames_are_held_one_task_looks_for_what_viewers_decide(session):
    holding = Holding(session.gate, *range(1, 101))
    before = asyncio.all_tasks()
    for _ in range(100):
        session.gate.watch(session.recording.clock.now)
    (task,) = asyncio.all_tasks() - before
    for number in range(1, 101):
        session.viewer.release(number, "continued")
    await holding.gone.wait()
    assert holding.released == [(number, "continued") for number in range(1, 101)]
    await task  # the task ends when nothing is held


@scripted
async def test_the_end_of_the_relay_ends_the_task(session):
    Holding(session.gate, 1)
    before = asyncio.all_tasks()
    session.gate.watch(session.recording.clock.now)
    (task,) = asyncio.all_tasks() - before
    session.gate.end()
    await asyncio.wait([task])
    assert task.cancelled()
