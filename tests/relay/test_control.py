"""A relay under the control of viewers: their gates come into force and are removed, and their orders are executed."""

import pytest

from mcpspy.capture.live import LiveFolder, LiveViewer
from mcpspy.gate.check import GATES, TEXTS
from mcpspy.gate.gate import PASS, Drop, Gate
from mcpspy.relay.control import HOLDING, INTERVAL, Control

DROP = {"name": "d", "when": {"method": "a"}, "action": {"drop": True}}
FRAME = b'{"method":"a"}'


class Relay:
    """The side of the relay; it keeps all calls that it receives."""

    def __init__(self, capture):
        self.reports, self.recorded, self.sent, self.released = [], [], [], []
        self.gate = Gate([], self.reports.append)
        self.viewer = LiveViewer(capture, "ab")
        folder = LiveFolder(self.viewer.path)
        self.control = Control(folder, self.gate, self.reports.append, self.recorded.append, self.send)
        self.t = 0

    def send(self, frame, session):
        self.sent.append((frame, session))

    def release(self, held, how, message=None):
        self.released.append((held, how, message))

    def look(self):
        self.t += INTERVAL
        self.control.look(self.t)

    def decide(self):
        return self.gate.decide(FRAME, self.gate.facts("client", "lines"), self.t)


@pytest.fixture
def relay(tmp_path):
    relay = Relay(str(tmp_path / "capture.jsonl"))
    yield relay
    relay.viewer.close()


def test_gates_come_into_force_and_go(relay):
    assert relay.decide() is PASS
    relay.viewer.set_gates([DROP])
    relay.look()
    assert isinstance(relay.decide(), Drop)
    relay.viewer.set_gates([])
    relay.look()
    assert relay.decide() is PASS
    assert relay.recorded == [[DROP], []]
    assert relay.reports == []


def test_what_is_no_gate_is_told_once_whatever_else_viewers_want(relay):
    relay.viewer.set_gates([DROP, {"name": "x", "when": {}, "action": {}}])
    for _ in range(3):
        relay.viewer.release(1, "continued")
        relay.look()
    assert isinstance(relay.decide(), Drop)
    assert relay.recorded == [[DROP]]
    assert len(relay.reports) == 1


def test_the_filters_of_all_viewers_together_have_a_bound(relay):
    """A-21: each text is compared with each frame."""
    many = {"method": [f"m{number}*" for number in range(900)]}
    gates = [DROP | {"name": str(number), "when": many} for number in range(TEXTS // 900 + 1)]
    relay.viewer.set_gates(gates)
    relay.look()
    assert [len(found) for found in relay.recorded] == [len(gates) - 1]
    assert relay.reports == [f"the filters of viewers have more than {TEXTS} texts; the other gates are not in force"]


def test_a_flood_of_orders_that_cannot_be_understood_is_one_message(relay):
    """A-21."""
    for _ in range(50):
        relay.viewer.release(1, "odd")
    relay.look()
    assert len(relay.reports) == 1
    assert relay.reports[0].startswith("a viewer's order about held frame 1 cannot be understood: odd (and 49 more")


def test_a_gate_that_stays_goes_on_counting(relay):
    once = DROP | {"times": 1}
    relay.viewer.set_gates([once])
    relay.look()
    assert isinstance(relay.decide(), Drop)
    relay.viewer.set_gates([once, DROP | {"name": "other", "when": {"method": "b"}}])
    relay.look()
    assert relay.decide() is PASS


def test_a_gate_that_is_none_is_reported_once(relay):
    relay.viewer.set_gates([DROP, DROP | {"name": "other", "action": {}}])
    relay.look()
    relay.viewer.release(1, "continued")
    relay.look()
    wrong = "gate other needs exactly one action; only delay may be added to it"
    assert relay.reports == [f"{wrong}; a viewer has set it, and it is not in force"]
    assert relay.recorded == [[DROP]]
    assert isinstance(relay.decide(), Drop)


def test_it_looks_every_100_ms_and_every_10_ms_while_something_is_held(relay):
    relay.look()
    relay.viewer.set_gates([DROP])
    relay.control.look(relay.t + INTERVAL - 1)
    assert relay.decide() is PASS
    relay.control.look(relay.t + INTERVAL)
    assert isinstance(relay.decide(), Drop)
    relay.gate.holders[1] = relay
    relay.t += 2 * INTERVAL
    relay.control.look(relay.t)
    relay.viewer.release(1, "continued")
    relay.control.look(relay.t + HOLDING - 1)
    assert relay.released == []
    relay.control.look(relay.t + HOLDING)
    assert relay.released == [(1, "continued", None)]


def test_orders_go_to_those_who_hold_the_frame_and_to_the_server(relay):
    relay.gate.holders[3] = relay
    relay.viewer.release(3, "edited", '{"é":1}')
    relay.viewer.release(4, "dropped")
    relay.viewer.send('{"id":"mcpspy-1"}', "s")
    relay.viewer.send("{}")
    relay.look()
    assert relay.released == [(3, "edited", '{"é":1}'.encode())]
    assert relay.sent == [(b'{"id":"mcpspy-1"}', "s"), (b"{}", None)]


def test_an_order_that_is_none_is_named_and_the_others_are_carried_out(relay):
    relay.gate.holders[1] = relay
    for held, how in ((1, ["x"]), (1, "edited"), (True, "dropped"), (1, "continued")):
        relay.viewer.release(held, how)
    relay.look()
    assert relay.reports == ["a viewer's order about held frame 1 cannot be understood: ['x'] (and 1 more such faults)"]
    assert relay.released == [(1, "continued", None)]


def test_what_is_no_gate_is_named_and_the_others_are_in_force(relay):
    relay.viewer.set_gates([{"name": "x", "when": {"colour": "red"}, "action": {"drop": True}}, DROP])
    relay.look()
    assert isinstance(relay.decide(), Drop)
    assert relay.recorded == [[DROP]]
    assert len(relay.reports) == 1
    assert "colour" in relay.reports[0]


def test_a_bug_is_reported_and_traffic_goes_on(relay):
    def fails(held, how, message):
        raise ZeroDivisionError

    relay.release = fails
    relay.gate.holders[1] = relay
    relay.viewer.release(1, "continued")
    relay.look()
    assert relay.reports == ["a live gate failed (ZeroDivisionError: ); traffic goes on"]


def test_faults_of_many_gates_are_one_message(relay):
    """A-21: and the next look with the same faults is none."""
    relay.viewer.set_gates([{"name": "x", "when": {}, "action": {"hold": 10**400}}] * 500 + [DROP])
    relay.look()
    assert isinstance(relay.decide(), Drop)
    assert len(relay.reports) == 1
    assert "and 499 more such faults" in relay.reports[0]
    relay.viewer.set_gates([{"name": "x", "when": {}, "action": {"hold": 10**400}}] * 500)
    relay.look()
    assert len(relay.reports) == 1


def test_viewers_set_a_limited_number_of_gates(relay):
    """A-21: the first ones are in force."""
    relay.viewer.set_gates([DROP | {"name": str(number)} for number in range(GATES + 5)])
    relay.look()
    assert [len(gates) for gates in relay.recorded] == [GATES]
    assert relay.reports == ["viewers have set more than 1000 gates; the others are not in force"]
    relay.viewer.set_gates([DROP | {"name": str(number)} for number in range(GATES)])
    relay.look()
    assert relay.reports == relay.reports[:1]


def test_a_patch_that_doubles_a_message_again_and_again_ends(relay):
    """A-21: the frame passes unchanged, with one report."""
    doubling = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(900)]
    grows = {"name": "g", "when": {}, "action": {"edit": doubling}}
    relay.viewer.set_gates([grows])
    relay.look()
    assert [relay.decide(), relay.decide()] == [PASS, PASS]
    assert len(relay.reports) == 1
    assert "would have more than" in relay.reports[0]
