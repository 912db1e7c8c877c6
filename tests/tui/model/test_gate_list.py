"""The gates of one session or of several, one line for each."""

from contextlib import ExitStack, closing

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.gate_list import FILE, HERE, OTHER, gate_lines
from mcpspy.tui.model.merged import Merged
from tests.tui.gates.relay import ScriptedRelay


def settle(session):
    for _ in range(3):
        while session.grow(1):
            pass


def told(shown):
    return [(line.name, line.source, line.on, line.acted, line.latest) for line in gate_lines(shown)]


def test_ours_come_first_then_those_of_the_file_and_of_other_viewers(tmp_path):
    relay = ScriptedRelay(tmp_path / "a.jsonl")
    with closing(OpenCapture(relay.path)) as session:
        assert told(session) == []
        settle(session)
        mine = session.control.add("name:get*", {"name": "get*"})
        slow = {"name": "slow", "when": {"method": "tools/*"}, "action": {"delay": 2 * 10**9}}
        other = {"name": "other", "when": {}, "action": {"drop": True}}
        relay.writer.gates(0, [slow], "file")
        relay.writer.gates(0, [*relay.look(), other], "viewer")
        relay.hold(1, mine.name)
        relay.frame(by="gate slow", sent=None)
        settle(session)
        assert told(session) == [
            ("break get*", HERE, True, 1, 12), ("slow", FILE, True, 1, 13), ("other", OTHER, True, 0, 0),
        ]  # fmt: skip
        assert [(line.text, line.action) for line in gate_lines(session)] == [
            ("name:get*", "hold 60 s"), ("method:tools/*", "delay 2 s"), ("every frame", "drop"),
        ]  # fmt: skip
        session.control.toggle(mine)
        assert told(session)[0] == ("break get*", HERE, False, 1, 12)
        session.control.remove(mine)
        assert [name for name, *_ in told(session)] == ["slow", "other"]


def test_what_is_no_gate_is_shown_as_far_as_it_can_be(tmp_path):
    relay = ScriptedRelay(tmp_path / "a.jsonl")
    with closing(OpenCapture(relay.path)) as session:
        relay.writer.gates(0, [{"name": 5, "when": [], "action": "drop"}, {}], "nobody")
        relay.writer.gates(0, [{"name": 5, "when": [], "action": "drop"}], "file")
        settle(session)
        assert [(line.name, line.text, line.action) for line in gate_lines(session)] == [("5", "every frame", "")]


def test_a_merge_has_those_of_all_its_sessions(tmp_path):
    with ExitStack() as stack:
        sessions = [OpenCapture(ScriptedRelay(tmp_path / name, name=name).path) for name in ("a", "b")]
        merged = stack.enter_context(closing(Merged(sessions)))
        while merged.grow(1):
            pass
        sessions[1].control.add("from:client", {"from": "client"})
        sessions[0].control.add("from:server", {"from": "server"})
        assert [(line.session.header.name, line.name) for line in gate_lines(merged)] == [
            ("a", "break from:server"), ("b", "break from:client"),
        ]  # fmt: skip
