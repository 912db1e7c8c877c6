"""The view of gates: how often each acted, and switching it on and off."""

import pytest

from mcpspy.tui.session import SessionScreen
from mcpspy.tui.views.gates import GatesView
from tests.transcript import capture
from tests.tui.gates.relay import ScriptedRelay
from tests.tui.screen import on_screen, play, sessions, shown, timeline, until
from tests.tui.views import view

SLOW = {"name": "slow", "when": {"method": "tools/*"}, "action": {"delay": 2 * 10**9}}


@pytest.fixture
def relay(tmp_path):
    relay = ScriptedRelay(tmp_path / "a.jsonl")
    relay.writer.gates(0, [SLOW], "file")
    relay.frame(by="gate slow", held=1)
    relay.release(1, "delayed")
    return relay


async def gates(pilot):
    """Open the view of gates in the session's screen and return it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen) and timeline(pilot).count() > 5)
    await pilot.press("6")
    await until(pilot, lambda: pilot.app.screen.query(GatesView))
    return pilot.app.screen.query_one(GatesView)


async def with_breakpoint(pilot):
    """Set a breakpoint of this viewer, then open the view of gates and return it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen) and timeline(pilot).count() > 5)
    timeline(pilot).session.sessions[0].control.add("from:client", {"from": "client"})
    return await gates(pilot)


def test_a_gate_has_a_line_is_turned_off_and_on_and_removed_and_leads_to_its_latest_frame(relay):
    async def scenario(pilot):
        rows = await with_breakpoint(pilot)
        await until(pilot, lambda: rows.count() == 2)
        first, second = (" ".join(line.split()) for line in shown(rows)[:2])
        assert first == "● on break from:client 0 hold 60 s set here from:client"
        assert second == "● on slow 1 delay 2 s gate file method:tools/*"
        assert len(relay.look()) == 1
        await pilot.press("space")
        await until(pilot, on_screen(pilot, "○ off break from:client"))
        assert relay.look() == []
        await pilot.press("space")
        await until(pilot, on_screen(pilot, "● on  break from:client"))
        assert len(relay.look()) == 1
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "break from:client has not acted yet"))
        await pilot.press("x")
        await until(pilot, lambda: rows.count() == 1)
        assert relay.look() == []
        await pilot.press("enter")
        await until(pilot, lambda: timeline(pilot).has_focus and timeline(pilot).selected == 11)

    play(scenario, relay.path, size=(130, 30))


def test_a_gate_of_others_stays(relay):
    async def scenario(pilot):
        await gates(pilot)
        await pilot.press("delete")
        await until(pilot, on_screen(pilot, "slow was set by the gate file"))
        relay.writer.gates(0, [SLOW | {"name": "theirs"}], "viewer")
        await until(pilot, on_screen(pilot, "theirs"))
        await pilot.press("G", "space")
        await until(pilot, on_screen(pilot, "theirs was set by another viewer"))

    play(scenario, relay.path)


def test_a_change_that_is_not_possible_is_said(relay):
    async def scenario(pilot):
        await with_breakpoint(pilot)
        relay.end()
        await until(pilot, lambda: timeline(pilot).session.complete)
        await pilot.press("x")
        await until(pilot, on_screen(pilot, "weather has ended"))
        await until(pilot, on_screen(pilot, "● on  break from:client"))

    play(scenario, relay.path)


def test_an_empty_view_says_how_to_set_a_gate_or_why_none_can_be_and_takes_every_key(tmp_path):
    async def scenario(pilot):
        await pilot.press("space", "x", "enter")

    live = view(GatesView, ScriptedRelay(tmp_path / "a.jsonl").path, scenario)
    assert (live.view.nothing(), live.jumps) == ("no gate is set; B in the timeline sets a breakpoint", [])
    nothing = view(GatesView, capture(tmp_path / "b.jsonl", "> 1 ping"), scenario).view.nothing()
    assert nothing == "no gate: weather has ended: only a running session can be controlled"


def test_a_merge_names_the_session_of_each_gate(tmp_path):
    first, second = (ScriptedRelay(tmp_path / name, name=name[0] * 3) for name in ("a.jsonl", "b.jsonl"))
    for relay, name in ((first, "slow"), (second, "slower")):
        relay.writer.gates(0, [SLOW | {"name": name}], "file")
        relay.frame(by=f"gate {name}", sent=None)

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "m")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen) and timeline(pilot).count() == 14)
        rows = await gates(pilot)
        assert {tuple(line.split()[2:4]) for line in shown(rows)[:2]} == {("aaa", "slow"), ("bbb", "slower")}
        place = next(at for at, line in enumerate(shown(rows)) if "slower" in line)
        await pilot.press(*["down"] * place, "enter")
        await until(pilot, lambda: timeline(pilot).has_focus)
        line = timeline(pilot).session.line(timeline(pilot).place())
        assert (line.source.name, line.source.n) == ("bbb", 11)

    play(scenario, tmp_path)
