"""Looking for viewers: how often, its effects, and its end."""

import os

import pytest

from mcpspy.capture.live import LiveViewer
from mcpspy.gate.gate import Gate
from mcpspy.recording.recording import Clock
from mcpspy.relay.control import HOLDING, INTERVAL
from mcpspy.relay.stdio.gated import GatedSession, Watch
from mcpspy.relay.stdio.pump import NEVER, Pump

DROP = {"name": "d", "when": {}, "action": {"drop": True}}


class Recorded:
    """A fake recording with the attributes that a watch needs."""

    def __init__(self):
        self.clock = Clock()
        self.said, self.sets = [], []
        self.report = self.said.append

    def gates(self, t, gates, by):
        self.sets.append((gates, by))


class There:
    """A fake of the direction to the server."""

    def __init__(self):
        self.sent = []

    def reply(self, frame, by):
        self.sent.append((frame, by))


class Relay:
    def __init__(self, capture):
        self.viewer = LiveViewer(capture, "ab")
        self.recording, self.there = Recorded(), There()
        self.pumps = Pump(0, 1, 0), Pump(0, 1, 0)
        self.made = 0
        self.session = GatedSession(Gate([], self.recording.report), self.recording.report, None)
        self.watch = Watch(self.viewer.path, self.recording, self.pumps, self.gated)

    def gated(self):
        self.made += 1
        return self.session, self.there

    @property
    def due(self):
        first, second = (pump.due for pump in self.pumps)
        assert first == second
        return first


@pytest.fixture
def relay(tmp_path):
    relay = Relay(str(tmp_path / "capture.jsonl"))
    yield relay
    relay.watch.end()
    relay.viewer.close()


def test_a_pump_looks_for_nothing_before_the_watch_has_begun(relay):
    assert relay.due == NEVER
    relay.watch.start()
    assert relay.due == 0
    assert [pump.look for pump in relay.pumps] == [relay.watch.look] * 2


def test_while_there_is_no_viewer_a_look_is_one_call_in_100_ms(relay, monkeypatch):
    looks = []
    exists = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: (looks.append(path), exists(path))[1])
    for t in range(0, 10 * INTERVAL, INTERVAL // 10):
        relay.watch.look(t)
    assert looks == [relay.viewer.path] * 10
    assert relay.made == 0
    assert relay.due == 10 * INTERVAL


def test_a_viewer_puts_a_gate_into_force(relay):
    relay.watch.look(0)
    relay.viewer.set_gates([DROP])
    relay.watch.look(INTERVAL - 1)
    assert relay.made == 0
    relay.watch.look(INTERVAL)
    assert relay.recording.sets == [([DROP], "viewer")]
    assert relay.due == 2 * INTERVAL
    relay.viewer.set_gates([])
    relay.watch.look(2 * INTERVAL)
    assert relay.recording.sets[-1] == ([], "viewer")
    assert (relay.made, relay.recording.said) == (1, [])


def test_while_something_is_held_looks_are_more_frequent(relay):
    relay.viewer.set_gates([DROP])
    relay.watch.look(0)
    relay.session.gate.holders[1] = None
    relay.watch.look(HOLDING)
    assert relay.due == 2 * HOLDING


def test_a_viewers_request_is_handed_to_the_direction_of_the_client_if_its_id_is_one_of_ours(relay):
    relay.viewer.send('{"id":"1","method":"a"}')
    relay.viewer.send('{"id":"mcpspy-1",\n"method":"a"}', "a session")
    relay.watch.look(0)
    assert relay.there.sent == [(b'{"id":"mcpspy-1", "method":"a"}', "viewer")]
    assert relay.recording.said == [
        "a viewer's request was not sent: it must be one JSON-RPC request, its id a string mcpspy-…"
    ]


def test_what_goes_wrong_is_said_once_and_nobody_looks_again(relay, monkeypatch):
    relay.viewer.set_gates([DROP])
    monkeypatch.setattr(relay, "session", None)
    relay.watch.look(0)
    relay.watch.look(INTERVAL)
    assert relay.recording.said == [
        "this session cannot be controlled (AttributeError: 'NoneType' object has no attribute 'gate'); traffic goes on"
    ]
    assert relay.due == NEVER


def test_after_the_end_nobody_looks(relay):
    relay.viewer.set_gates([DROP])
    relay.watch.end()
    relay.watch.look(0)
    assert (relay.made, relay.due) == (0, NEVER)
    assert os.path.isdir(relay.viewer.path)
    relay.watch.remove()
    assert not os.path.exists(relay.viewer.path)
    relay.watch.remove()
