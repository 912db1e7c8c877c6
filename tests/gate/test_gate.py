"""The interface that relays use."""

import pytest

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import LIMIT, PASS, Drop, Gate, Hold, Pass, Send

CALL = b'{"id":3,"method":"tools/call","params":{"name":"search"}}'
PING = b'{"id":4,"method":"ping"}'


def compiled(name, when, action=None):
    return DeclaredGate({"name": name, "when": when, "action": action or {"drop": True}})


@pytest.fixture
def said():
    return []


class Rewriter:
    """A gate that is not compiled from a file, like those of the relay itself."""

    by = "endpoint"
    follows = False
    waits = True

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def wants(self, facts):
        return False

    def decide(self, frame, facts, t):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_first_verdict_that_does_something_counts(said):
    first, second, third = Rewriter(PASS), Rewriter(Send((b"a",), "endpoint")), Rewriter(Drop("x"))
    gate = Gate([first, second, third], said.append)
    assert gate.decide(CALL, gate.facts("client", "sse"), 0).frames == (b"a",)
    assert (first.asked, second.asked, third.asked) == (1, 1, 0)


def test_without_a_gate_that_names_it_a_frame_passes(said):
    gate = Gate([compiled("a", {"method": "x"})], said.append)
    assert gate.decide(CALL, gate.facts("client", "lines"), 0) is PASS


def test_a_gate_that_raises_lets_the_frame_pass_and_is_reported_once(said):
    """Principle 1."""
    gate = Gate([Rewriter(RuntimeError("a bug")), compiled("a", {"method": "x"})], said.append)
    facts = gate.facts("client", "lines")
    assert [gate.decide(CALL, facts, t) for t in range(3)] == [PASS] * 3
    assert isinstance(gate.decide(b'{"method":"x"}', facts, 3), Drop), "the next gate is asked all the same"
    assert said == ["endpoint failed (RuntimeError: a bug); such frames pass unchanged"]


def test_a_gate_that_raises_when_it_is_asked_what_it_follows_does_no_more_harm(said):
    class Following(Rewriter):
        follows = True

        def wants(self, facts):
            raise RuntimeError("a bug")

    gate = Gate([Following(PASS)], said.append)
    assert gate.decide(CALL, gate.facts("client", "lines"), 0) is PASS
    assert len(said) == 1


def test_an_action_that_cannot_be_applied_lets_the_frame_pass(said):
    gate = Gate([compiled("a", {}, {"answer": '{"result":{}}'})], said.append)
    facts = gate.facts("client", "lines")
    assert [gate.decide(b'{"method":"x"}', facts, t) for t in range(2)] == [PASS] * 2
    assert said == ["gate a failed (ValueError: only a single request can be answered); such frames pass unchanged"]


def test_a_frame_over_1_mib_passes_undecided(said):
    rewriter = Rewriter(Drop("x"))
    gate = Gate([rewriter], said.append)
    facts = gate.facts("client", "lines")
    verdict = gate.decide(b"x" * (LIMIT + 1), facts, 0)
    assert isinstance(verdict, Pass)
    assert verdict.undecided
    assert rewriter.asked == 0
    assert isinstance(gate.decide(b"x" * LIMIT, facts, 0), Drop)


def test_a_response_is_known_by_its_request_until_it_has_come(said):
    gate = Gate([compiled("a", {"kind": "result", "name": "search"})], said.append)
    client, server = gate.facts("client", "lines"), gate.facts("server", "lines")
    result = b'{"id":3,"result":{}}'
    assert gate.decide(result, server, 0) is PASS
    gate.decide(CALL, client, 0)
    assert gate.decide(b'{"id":"3","result":{}}', server, 0) is PASS
    assert gate.decide(b'{"id":3.0,"result":{}}', server, 0) is PASS
    assert isinstance(gate.decide(result, server, 0), Drop)
    assert gate.decide(result, server, 0) is PASS, "the second response to it is an orphan"


def test_sessions_do_not_mix(said):
    gate = Gate([compiled("a", {"kind": "result", "method": "tools/call"})], said.append)
    gate.decide(CALL, gate.facts("client", "body", "one"), 0)
    event = b'data: {"id":3,"result":{}}\n'
    assert gate.decide(event, gate.facts("server", "sse", "two"), 0) is PASS
    assert isinstance(gate.decide(event, gate.facts("server", "sse", "one"), 0), Drop)


@pytest.mark.parametrize(
    ("frame", "overtakes", "cancels"),
    [
        (PING, True, None),
        (b'{"method":"notifications/cancelled","params":{"requestId":"3"}}', True, ("string", "3")),
        (b'{"method":"notifications\\/cancelled"}', True, None),
        (b'{"method":"notifications/cancelled","params":{"requestId":[]}}', True, None),
        (CALL, False, None),
        (b'{"id":5,"method":"tools/call","params":{"name":"ping"}}', False, None),
        (b'[{"id":4,"method":"ping"},{"id":5,"method":"x"}]', False, None),
        (b'"ping"', False, None),
    ],
)
def test_pings_and_cancellations_overtake(said, frame, overtakes, cancels):
    gate = Gate([compiled("a", {"method": "never"}, {"hold": 5})], said.append)
    verdict = gate.decide(frame, gate.facts("client", "lines"), 0)
    assert (verdict.overtakes, verdict.cancels) == (overtakes, cancels)


def test_the_response_to_a_ping_overtakes_too(said):
    gate = Gate([compiled("a", {"method": "x"}, {"hold": 5})], said.append)
    client, server = gate.facts("client", "lines"), gate.facts("server", "lines")
    gate.decide(PING, client, 0)
    assert not gate.decide(b'{"id":5,"result":{}}', server, 0).overtakes
    assert gate.decide(b'{"id":4,"result":{}}', server, 0).overtakes
    assert not gate.decide(b'{"id":4,"result":{}}', server, 0).overtakes


def test_a_ping_that_a_gate_names_is_the_gates(said):
    gate = Gate([compiled("a", {"method": "ping"})], said.append)
    assert isinstance(gate.decide(PING, gate.facts("client", "lines"), 0), Drop)


@pytest.mark.parametrize("action", [{"hold": 5}, {"delay": 5, "drop": True}, {"throttle": 5}, {"drop": True}], ids=str)
def test_nothing_overtakes_where_nothing_can_wait(said, action):
    """In that case, a ping need not be parsed."""
    gate = Gate([compiled("a", {"method": "x"}, action)], said.append)
    waits = action != {"drop": True}
    assert isinstance(gate.decide(b'{"method":"x"}', gate.facts("server", "lines"), 0), Hold) == waits
    assert gate.decide(PING, gate.facts("client", "lines"), 0).overtakes == waits
    gate.holders[1] = gate
    assert gate.decide(PING, gate.facts("client", "lines"), 0).overtakes, "a gate that is gone holds something"
