"""The state that both directions share under a gate: verdicts that fit stdio, and viewers' own requests."""

import pytest

from mcpspy.capture.records import Frame
from mcpspy.gate.gate import LIMIT, PASS, UNDECIDED, Drop, Gate, Hold, Refuse
from mcpspy.relay.stdio.gated import GatedSession
from tests import limits
from tests.relay.stdio.pair import Pair, aside, exactly, line, send

ASK = b'{"jsonrpc":"2.0","id":"mcpspy-1","method":"tools/call"}'
OTHER = b'{"id":2,"result":{}}'


class Fixed:
    """A gate that always has the same verdict."""

    by, follows, waits = "gate g", False, False

    def __init__(self, verdict):
        self.verdict = verdict

    def wants(self, facts):
        return False

    def decide(self, frame, facts, t):
        return self.verdict


@pytest.fixture
def session():
    said = []
    made = GatedSession(Gate([], said.append), said.append, None)
    made.said = said
    return made


def decide(session, frame=b"{}"):
    return session.decide(frame, session.gate.facts("client", "lines"), 0)


@pytest.mark.parametrize("verdict", [PASS, UNDECIDED, Drop("gate g"), Hold(1, "gate g", "expired", PASS)])
def test_a_verdict_is_the_gates(session, verdict):
    session.gate.set_live([Fixed(verdict)])
    assert decide(session) is verdict
    assert session.said == []


@pytest.mark.parametrize("verdict", [Refuse(503, "gate g"), Hold(1, "gate g", "delayed", Refuse(503, "gate g"))])
def test_a_status_has_no_meaning_on_stdio_which_is_said_once(session, verdict):
    session.gate.set_live([Fixed(verdict)])
    assert [decide(session), decide(session)] == [PASS, PASS]
    assert session.said == ["gate g: status works over HTTP only; frames on stdio pass unchanged"]


def test_a_bug_of_the_gate_itself_lets_frames_pass_and_is_said_once(session):
    session.gate.decide = None
    assert [decide(session), decide(session)] == [PASS, PASS]
    (sentence,) = session.said
    assert sentence.startswith("the gate failed (TypeError")


def test_the_response_to_a_viewers_request_is_known_once(session):
    assert session.asks(ASK.replace(b",", b",\r\n")) == ASK.replace(b",", b",  ")
    assert not session.is_answer(b'{"id":"mcpspy-2","result":{}}')
    assert not session.is_answer(b'{"id":1,"result":"mcpspy-1"}')
    assert not session.is_answer(b'{"id":"mcpspy-1","method":"ping"}')
    assert session.is_answer(b'{"id":"\\u006dcpspy-1","error":{}}')
    assert not session.is_answer(b'{"id":"mcpspy-1","result":{}}')


@pytest.mark.parametrize("start", [b'{"id":"mcpspy-1","result":', b'{"jsonrpc":"2.0", "id": "mcpspy-1", "error":'])
def test_the_start_of_a_long_response_tells_whose_it_is(session, start):
    session.asks(ASK)
    assert not session.begins_answer(b'{"id":1,"result":"\\"id\\":"mcpspy-1"')
    assert session.begins_answer(start + b'"xxx')
    assert not session.begins_answer(start)


def test_a_long_response_to_a_viewer_is_recorded_and_not_forwarded(tmp_path):
    relay = Pair(tmp_path / "capture.jsonl", [])
    relay.there.reply(relay.session.asks(ASK), "viewer")
    assert line(relay.server[1]) == ASK
    long = b'{"id":"mcpspy-1","result":"' + b"x" * (2 * LIMIT) + b'"}'
    writer = aside(send, relay.server[0], long, OTHER)
    assert line(relay.client[1]) == OTHER
    writer.join(limits.LIMIT)
    assert relay.finish() == (b"", b"")
    answer, other = [frame for frame in relay.records(Frame) if frame.ch == 2]
    assert (answer.raw, answer.dropped, answer.by) == (long, True, "viewer")
    assert (other.raw, other.dropped) == (OTHER, False)


@pytest.mark.parametrize("size", [1, 2 * LIMIT])
def test_the_clients_response_to_a_request_of_that_id_is_no_answer(tmp_path, size):
    """A server may use the id of a viewer's request for a request of its own."""
    relay = Pair(tmp_path / "capture.jsonl", [])
    relay.there.reply(relay.session.asks(ASK), "viewer")
    assert line(relay.server[1]) == ASK
    response = b'{"id":"mcpspy-1","result":"' + b"x" * size + b'"}'
    writer = aside(send, relay.client[0], response)
    assert exactly(relay.server[1], len(response) + 1) == response + b"\n"
    writer.join(limits.LIMIT)
    send(relay.server[0], response[:100] + b'"}' if size > 100 else response)
    assert relay.finish() == (b"", b"")


def test_a_viewers_request_to_a_server_with_a_closed_stdin_is_reported(tmp_path):
    relay = Pair(tmp_path / "capture.jsonl", [])
    relay.close(relay.client[0])
    assert limits.read(relay.server[1], 1) == b""
    relay.threads[0].join(limits.LIMIT)
    relay.there.reply(relay.session.asks(ASK), "viewer")
    relay.there.reply(ASK, "gate g")
    assert relay.said == ["a viewer's request was not sent: the server's stdin is closed"]
    relay.finish()
