"""Acts of gates on frames: the part in the frame record, and the part in its later release record."""

import pytest

from mcpspy.capture.records import Frame, Release
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.gate_acts import GateActs
from tests.rules.gate_sessions import TRANSPORTS, Stdio, request, result

SECOND = 1_000_000_000
CALL, DONE = request(3, "tools/call", name="search"), result(3, content=[])


def take(acts=None, **fields):
    frame = Frame(7, 1, 5, b"{}", **fields)
    return (acts or GateActs()).take(frame, frame.sender or "client")


@pytest.mark.parametrize(
    ("fields", "how", "text"),
    [
        ({"by": "gate g", "sent": b"[]"}, "edited", "edited by gate g"),
        ({"by": "gate g", "sent": b"{}"}, "repeated", "repeated by gate g"),
        ({"by": "gate g", "dropped": True}, "dropped", "dropped by gate g"),
        ({"by": "gate g", "sender": "mcpspy"}, "made", "sent by gate g"),
        ({"by": "viewer", "sender": "mcpspy"}, "made", "sent by a viewer"),
        ({"by": "viewer", "dropped": True}, "dropped", "answers a viewer"),
        ({"by": "gate g", "held": 3}, "held", "held by gate g"),
        ({"by": "reload", "sender": "mcpspy"}, "made", "sent by reload"),
        ({"by": "reload", "dropped": True}, "dropped", "dropped by reload"),
        ({"by": "reload", "held": 3}, "held", "held by reload"),
    ],
)
def test_a_frame_tells_what_was_done_to_it(fields, how, text):
    act = take(**fields)
    assert (act.n, act.how, str(act)) == (7, how, text)


@pytest.mark.parametrize("by", ["endpoint", "oauth", "location"])
def test_what_the_proxy_changes_of_its_own_is_no_act(by):
    assert take(by=by, sent=b"[]") is None


@pytest.mark.parametrize(
    ("release", "how", "text"),
    [
        ({"how": "continued"}, "continued", "held 12.30 s by gate g"),
        ({"how": "delayed"}, "delayed", "delayed 12.30 s by gate g"),
        ({"how": "expired"}, "expired", "held 12.30 s, expired (gate g)"),
        ({"how": "edited", "sent": b"[]", "by": "viewer"}, "edited", "held 12.30 s, edited by a viewer (gate g)"),
        ({"how": "delayed", "sent": b"[]", "by": "gate g"}, "edited", "held 12.30 s, edited (gate g)"),
        ({"how": "dropped", "dropped": True, "by": "gate g"}, "dropped", "held 12.30 s, dropped (gate g)"),
        ({"how": "expired", "dropped": True}, "dropped", "held 12.30 s, dropped (gate g)"),
        ({"how": "answered", "dropped": True, "by": "gate g"}, "answered", "held 12.30 s, answered (gate g)"),
        ({"how": "cancelled", "dropped": True, "by": "gate g"}, "cancelled", "held 12.30 s, cancelled (gate g)"),
        ({"how": "closed"}, "closed", "held 12.30 s, closed (gate g)"),
    ],
)
def test_the_release_of_a_held_frame_completes_what_is_known(release, how, text):
    acts = GateActs()
    act = take(acts, by="gate g", held=3)
    assert act.waits
    assert acts.release(Release(9, 5 + 12_300_000_000, 3, **release)) is act
    assert (act.how, act.held, act.waits, str(act)) == (how, 12_300_000_000, False, text)
    assert acts.release(Release(9, 20 * SECOND, 3, "continued")) is None


def test_frames_that_are_never_released_are_forgotten_in_time():
    acts = GateActs()
    for number in range(20_000):
        take(acts, by="gate g", held=number)
    assert acts.release(Release(9, SECOND, 0, "continued")) is None
    assert acts.release(Release(9, SECOND, 19_999, "continued"))


def messages(wire):
    conversation = Conversation()
    found = [event for record in wire.records for event in conversation.feed(record)]
    return {(it.sender, it.body.value.get("method", "response")): it for it in found if hasattr(it, "body")}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_response_that_a_gate_made_answers_the_request(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=None, answered=True)
    wire.made("server", DONE, of=3)
    found = messages(wire)
    exchange = found["client", "tools/call"].exchange
    assert exchange.response is found["mcpspy", "response"]
    assert (exchange.status, exchange.request.act.how) == ("ok", "answered")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_response_to_a_viewer_answers_its_request(transport):
    wire = TRANSPORTS[transport]()
    wire.made("client", CALL | {"id": "mcpspy-1"}, by="viewer")
    wire.server(DONE | {"id": "mcpspy-1"}, of="mcpspy-1", sent=None, by="viewer")
    found = messages(wire)
    assert found["mcpspy", "tools/call"].exchange.response is found["server", "response"]
    assert str(found["server", "response"].act) == "answers a viewer"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_answer_to_a_repeated_request_has_its_request(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=CALL)
    wire.made("client", CALL)
    for _ in range(2):
        wire.server(DONE, of=3, open=True)
    found = messages(wire)
    assert found["client", "tools/call"].exchange.status == "ok"
    assert found["mcpspy", "tools/call"].exchange.status == "ok"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_latency_is_that_of_the_server(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, hold=12, how="continued")
    wire.wait(12.5)
    wire.server(DONE, of=3, hold=20, how="continued")
    wire.wait(21)
    exchange = messages(wire)["client", "tools/call"].exchange
    assert 0.5 * SECOND <= exchange.latency < 0.6 * SECOND
    assert 7 * SECOND < exchange.response.act.held < 8 * SECOND


@pytest.mark.parametrize(
    ("gated", "status"),
    [
        ({"sent": None}, "dropped"),
        ({"hold": 1, "how": "dropped", "sent": None}, "dropped"),
        ({"hold": 99, "how": "expired"}, "held"),
        ({"hold": 1, "how": "expired"}, "unanswered"),
        ({"sent": b"{}"}, "unanswered"),
    ],
)
def test_a_request_that_never_reached_its_peer_is_not_unanswered(gated, status):
    wire = Stdio()
    wire.client(CALL, **gated)
    wire.wait(2)
    assert messages(wire)["client", "tools/call"].exchange.final_status(live=False) == status


def test_the_ids_of_servers_that_replaced_one_another_are_those_that_the_client_knows():
    """Each server counts from 1, so two requests may have the same id; each still gets its response."""
    wire = Stdio()
    for known in (1, "mcpspy-server-1"):
        changed = {} if known == 1 else {"by": "reload"}
        wire.server(request(1, "ping"), **({"sent": request(known, "ping")} if changed else {}), **changed)
        wire.client(result(known), **({"sent": result(1)} if changed else {}), **changed)
    conversation = Conversation()
    found = [event for record in wire.records for event in conversation.feed(record)]
    assert [str(event.id) for event in found] == ["1", "1", '"mcpspy-server-1"', '"mcpspy-server-1"']
    assert [event.exchange.response is found[at | 1] for at, event in enumerate(found)] == [True] * 4
    assert list(conversation.pending()) == []
