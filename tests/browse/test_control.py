"""A viewer's orders to a session, as the relay reads them in the live directory."""

import os

import pytest

from mcpspy.browse.gates import HOLD
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import CaptureError, UsageError
from tests.transcript import capture
from tests.tui.gates.relay import ScriptedRelay

CALLS = {"method": "tools/call"}


@pytest.fixture
def relay(tmp_path):
    return ScriptedRelay(tmp_path / "a.jsonl")


@pytest.fixture
def session(relay):
    session = OpenCapture(relay.path)
    settle(session)
    yield session
    session.close()


def settle(session):
    for _ in range(3):
        while session.grow(1):
            pass


def test_a_breakpoint_is_in_force_until_it_is_turned_off_or_removed(relay, session):
    gate = session.control.add("method:tools/call", CALLS)
    compiled = {"name": "break tools/call", "when": CALLS, "action": {"hold": HOLD}}
    assert relay.look() == [compiled]
    session.control.toggle(gate)
    assert (relay.look(), gate.on) == ([], False)
    session.control.toggle(gate)
    assert (relay.look(), gate.on) == ([compiled], True)
    session.control.remove(gate)
    assert (relay.look(), session.control.gates) == ([], [])


def test_names_are_short_and_no_two_gates_of_a_session_have_one(relay, session):
    relay.writer.gates(0, [{"name": "break get*", "when": {}, "action": {"drop": True}}], "file")
    settle(session)
    wanted = [{"name": name} for name in ("get*", {"is": "a*"}, "a*", "l" * 99)]
    whens = [*wanted, {"method": ["x", "y"]}, {"from": "client"}]
    gates = [session.control.add(f"text {number}", when) for number, when in enumerate(whens)]
    names = ["break get* 2", "break a*", "break a* 2", f"break {'l' * 34}", "break x", "break text 5"]
    assert [gate.name for gate in gates] == names
    session.control.remove(gates[1])
    assert session.control.add("again", {"name": "a*"}).name == "break a* 3"
    assert session.control.has_set("break a*")
    assert not session.control.has_set("break get*")


def test_the_same_breakpoint_is_set_once(relay, session):
    session.control.add("from:client", {"from": "client"})
    with pytest.raises(UsageError, match="already"):
        session.control.add("from:client", {"from": "client"})
    assert len(relay.look()) == 1


def test_orders_reach_the_relay_in_their_order(relay, session):
    relay.hold(1, "stop")
    relay.hold(2, "stop")
    settle(session)
    first, second = session.held
    session.control.release(second, "edited", "{}")
    session.control.release(first, "continued")
    session.control.send('{"id":"mcpspy-1"}', "abc")
    relay.look()
    assert relay.orders == [
        {"release": 2, "how": "edited", "frame": "{}"},
        {"release": 1, "how": "continued"},
        {"send": '{"id":"mcpspy-1"}', "session": "abc"},
    ]


def test_what_its_gates_hold_goes_on_when_the_viewer_leaves(relay, session):
    mine = session.control.add("method:tools/call", CALLS)
    relay.hold(1, mine.name)
    relay.hold(2, "of a file")
    settle(session)
    relay.hold(3, mine.name)  # since the viewer last read the capture
    relay.release(1, "dropped")
    session.close()
    assert relay.look() == []
    assert relay.orders == [{"release": 3, "how": "continued"}]
    session.close()


def test_a_viewer_that_did_nothing_leaves_no_trace(relay, session):
    session.close()
    assert not os.path.exists(relay.folder.path)


def test_only_a_running_session_can_be_controlled(relay, session, tmp_path):
    assert session.control.refusal() is None
    relay.end()
    settle(session)
    assert session.control.refusal() == "weather has ended: only a running session can be controlled"
    with pytest.raises(CaptureError, match="has ended"):
        session.control.add("from:client", {"from": "client"})
    assert session.control.gates == []


def test_a_gate_of_a_session_that_has_ended_meanwhile_stays_as_it_is(relay, session):
    gate = session.control.add("from:client", {"from": "client"})
    relay.end()
    settle(session)
    with pytest.raises(CaptureError):
        session.control.toggle(gate)
    with pytest.raises(CaptureError):
        session.control.remove(gate)
    assert (session.control.gates, gate.on) == ([gate], True)


def test_a_session_that_takes_no_orders_says_so(tmp_path):
    session = OpenCapture(ScriptedRelay(tmp_path / "a.jsonl", control=False).path)
    assert "--no-control" in session.control.refusal()
    session.close()


def test_an_imported_session_says_so(tmp_path):
    imported = {"from": "a HAR", "approximate": [], "missing": []}
    session = OpenCapture(capture(tmp_path / "a.jsonl", "> 1 ping", imported=imported))
    assert session.control.refusal().startswith("weather was imported from a HAR:")
    session.close()


@pytest.mark.skipif(os.name != "posix", reason="modes and symbolic links")
def test_a_directory_that_is_not_ours_alone_is_refused_in_one_line(relay, session, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", relay.folder.path)
    with pytest.raises(CaptureError, match="not a directory") as error:
        session.control.add("from:client", {"from": "client"})
    assert "\n" not in str(error.value)
    os.unlink(relay.folder.path)
    os.mkdir(relay.folder.path, 0o755)
    with pytest.raises(CaptureError, match="other users"):
        session.control.add("from:client", {"from": "client"})
    assert session.control.gates == []
