"""Breakpoints and held frames from the user's side: keys pressed, orders to the relay, and the screen."""

import json
import os
from contextlib import nullcontext
from unittest.mock import patch

import pytest
from textual.app import App
from textual.widgets import Input, TextArea

from mcpspy.browse.gates import HOLD
from mcpspy.tui.session import SessionScreen
from tests.test_text import unsafe
from tests.tui.gates.relay import CALL, CLIENT, RESULT, SERVER, ScriptedRelay
from tests.tui.screen import lines, message, on_screen, play, sessions, timeline, until

GATE = "break get_forecast"
BREAKPOINT = {
    "name": GATE,
    "when": {"method": "tools/call", "name": "get_forecast", "from": "client"},
    "action": {"hold": HOLD},
}


@pytest.fixture(autouse=True)
def none(monkeypatch):
    """Unset the editor of the user who runs the tests."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


@pytest.fixture
def relay(tmp_path):
    return ScriptedRelay(tmp_path / "a.jsonl")


async def shown(pilot, count=5):
    """Wait until the timeline of the live session has `count` rows, and return it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen), "a session")
    rows = timeline(pilot)
    await until(pilot, lambda: rows.count() == count, f"{count} rows")
    return rows


async def held(pilot, relay, number=1, raw=CALL, channel=CLIENT, at=90):
    """Add a held frame to the timeline and select it. Return the timeline."""
    rows = await shown(pilot, 4 + number)
    relay.hold(number, GATE, raw, channel, at=at)
    await shown(pilot, 5 + number)
    await pilot.press("G")
    await until(pilot, on_screen(pilot, "held 1"))
    return rows


async def on_message(pilot):
    """Wait until another screen covers the session's screen."""
    await until(pilot, lambda: not isinstance(pilot.app.screen, SessionScreen), "a question")


async def back(pilot):
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen), "the session")


def area(pilot):
    return pilot.app.screen.query_one(TextArea)


def test_b_holds_frames_like_the_selected_one_from_now_on_and_a_mistake_is_asked_again(relay):
    async def scenario(pilot):
        async def asked(filter_, says):
            await pilot.press("B")
            await until(pilot, on_screen(pilot, "hold the frames of weather that match"))
            await pilot.press("ctrl+u", *filter_, "enter")
            await until(pilot, on_screen(pilot, says))

        await shown(pilot)
        await pilot.press("up", "B")
        await until(pilot, on_screen(pilot, "hold the frames of weather that match"))
        assert pilot.app.screen.query_one(Input).value == "method:tools/call name:get_forecast from:client"
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, f"{GATE}: matching frames are held"))
        assert relay.look() == [BREAKPOINT]
        assert oct(os.stat(relay.folder.path).st_mode)[-3:] == "700" or os.name != "posix"

        await asked("metod:x", "unknown key 'metod'; did you mean 'method'?")
        await pilot.press("ctrl+u", "enter")
        await until(pilot, on_screen(pilot, "a breakpoint needs a filter"))
        assert relay.look() == [BREAKPOINT]
        await pilot.press(*"from:server", "enter")
        await back(pilot)
        assert [gate["when"] for gate in relay.look()] == [BREAKPOINT["when"], {"from": "server"}]
        await asked("from:server", "there is such a breakpoint already")
        await pilot.press("escape")
        await back(pilot)

    play(scenario, relay.path)
    assert relay.look() == []


def test_a_held_row_says_how_long_and_is_continued_or_dropped_by_keys_that_do_nothing_elsewhere(relay):
    async def scenario(pilot):
        rows = await shown(pilot)
        await pilot.press("D", "A")
        await until(pilot, lambda: rows.hunt is None)
        await pilot.press("up", "E")  # to the previous finding, which does not exist
        await until(pilot, on_screen(pilot, "no row matches"))
        assert relay.look() == [] == relay.orders
        assert os.path.basename(relay.folder.path) not in os.listdir(os.path.dirname(relay.folder.path))

        await held(pilot, relay)
        await until(pilot, on_screen(pilot, "client gives up in "))
        (line,) = (line for line in lines(pilot.app) if "held 1" in line)
        assert "client gives up in 4" in line or "client gives up in 5" in line
        await until(pilot, lambda: "1 held" in lines(pilot.app)[-2])
        await until(pilot, lambda: "continue" in lines(pilot.app)[-1])
        await pilot.press("tab", "enter", "tab")  # Enter folds in the message
        assert relay.look() == [] == relay.orders
        await pilot.press("enter")
        assert await relay.order(pilot) == {"release": 1, "how": "continued"}
        await until(pilot, on_screen(pilot, "#10 is continued"))
        assert rows.has_focus
        relay.release(1, "continued")
        await until(pilot, lambda: rows.session.held == [])
        await until(pilot, lambda: "1 held" not in lines(pilot.app)[-2])
        await until(pilot, lambda: not on_screen(pilot, "gives up")())
        await until(pilot, lambda: "continue" not in lines(pilot.app)[-1])
        await pilot.press("enter")
        await until(pilot, lambda: not rows.has_focus)
        assert relay.look() == [] == relay.orders

        await pilot.press("escape")
        await held(pilot, relay, 2)
        await pilot.press("D")
        assert await relay.order(pilot) == {"release": 2, "how": "dropped"}
        relay.release(2, "expired")
        await until(pilot, lambda: rows.session.held == [])

    play(scenario, relay.path)


def test_a_client_whose_time_out_is_not_known_says_so(tmp_path):
    relay = ScriptedRelay(tmp_path / "a.jsonl", client="nobody")

    async def scenario(pilot):
        await held(pilot, relay)
        await until(pilot, on_screen(pilot, "s · client time-out unknown"))

    play(scenario, relay.path)


BATCH = b'[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]'


def test_held_rows_are_edited_and_answered_and_a_mistake_is_asked_again(relay):
    async def scenario(pilot):
        async def opens(key, title):
            await pilot.press(key)
            await until(pilot, on_screen(pilot, title))

        async def refused(key, why):
            await pilot.press("up", "down")
            assert not on_screen(pilot, why)()
            await pilot.press(key)
            await until(pilot, on_screen(pilot, why))

        await held(pilot, relay)
        await opens("E", "edit #10 of weather · held")
        await pilot.press("x", "ctrl+s")
        await until(pilot, on_screen(pilot, "not JSON: Expecting value at line 1, column 1"))
        await pilot.press("y", "escape")
        await back(pilot)
        assert relay.look() == [] == relay.orders
        await opens("E", "edit #10")
        assert area(pilot).text.startswith("xy{"), "what was left is kept"
        await pilot.press("delete", "delete")
        area(pilot).text = area(pilot).text.replace("Oslo", "Bergen")
        await pilot.press("ctrl+s")
        edited = {"release": 1, "how": "edited", "frame": CALL.decode().replace("Oslo", "Bergen")}
        assert await relay.order(pilot) == edited
        await back(pilot)
        await until(pilot, on_screen(pilot, "#10 is edited"))

        await held(pilot, relay, 2)
        await opens("A", "answer #11 of weather")
        proposed, area(pilot).text = area(pilot).text, "{}"
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "either result or error"))
        assert relay.look() == [] == relay.orders
        area(pilot).text = proposed
        await pilot.press("ctrl+s")
        order = await relay.order(pilot)
        assert (order["release"], order["how"]) == (2, "answered")
        answer = {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": ""}]}}
        assert json.loads(order["frame"]) == answer
        await back(pilot)

        await held(pilot, relay, 3, b'{"jsonrpc":"2.0","id":77,"result":{}}', SERVER)
        await refused("A", "only a request can be answered")
        await opens("E", "edit #12")
        await pilot.press("ctrl+s")
        assert (await relay.order(pilot))["release"] == 3
        await back(pilot)

        for number, raw in enumerate((BATCH, b"n\xff{"), 4):
            await held(pilot, relay, number, raw)
            await refused("A", "only a request can be answered")
            batch = raw is BATCH
            why = "a batch cannot be edited here" if batch else "only a request of the client can be sent again"
            await refused("R", why)
            await opens("E", f"edit #{9 + number}")
            assert not unsafe("".join(lines(pilot.app)))
            area(pilot).text = "{}"
            await pilot.press("ctrl+s")
            assert await relay.order(pilot) == {"release": number, "how": "edited", "frame": "{}"}
            await back(pilot)

    play(scenario, relay.path)


def test_a_result_can_be_held_and_edited(relay):
    async def scenario(pilot):
        await shown(pilot)
        relay.frame(at=80)
        await shown(pilot, 6)
        relay.hold(1, GATE, RESULT, SERVER, at=90)
        await shown(pilot, 7)
        await pilot.press("G")
        await until(pilot, on_screen(pilot, "client gives up in 3"))
        await pilot.press("E")
        await on_message(pilot)
        area(pilot).text = area(pilot).text.replace("[]", '["x"]')
        await pilot.press("ctrl+s")
        assert (await relay.order(pilot))["frame"] == RESULT.decode().replace("[]", '["x"]')

    play(scenario, relay.path)


def test_the_editor_says_when_the_frame_goes_on_by_itself(relay):
    async def scenario(pilot):
        relay.writer.gates(relay.now(), [BREAKPOINT], "viewer")
        await shown(pilot, 6)
        relay.hold(1, GATE, at=100)
        await shown(pilot, 7)
        await pilot.press("G", "H", "E")
        await until(pilot, on_screen(pilot, "edit #11 of weather · continues by itself in 5"))

    play(scenario, relay.path)


def test_a_frame_that_went_meanwhile_is_not_edited(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("E")
        await until(pilot, on_screen(pilot, "edit #10"))
        relay.release(1, "expired")
        await until(pilot, on_screen(pilot, "it is no longer held"))
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "#10 is no longer held"))
        assert relay.look() == [] == relay.orders

    play(scenario, relay.path)


def test_e_edits_in_the_editor_of_the_person(relay, tmp_path, monkeypatch):
    program = tmp_path / "editor"
    program.write_text("#!/bin/sh\nsed -i.bak s/Oslo/Bergen/ $1\nrm $1.bak\n")
    program.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(program))

    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("E")
        assert json.loads((await relay.order(pilot))["frame"])["params"]["arguments"] == {"city": "Bergen"}
        await back(pilot)

    with patch.object(App, "suspend", lambda _: nullcontext()):
        play(scenario, relay.path)


def test_h_goes_to_the_next_held_row(relay):
    async def scenario(pilot):
        rows = await held(pilot, relay)
        relay.frame(b'{"jsonrpc":"2.0","method":"a"}')
        relay.hold(2, GATE, at=95)
        await shown(pilot, 8)
        await pilot.press("g")
        chosen = []
        for _ in range(3):
            before = rows.selected
            await pilot.press("H")
            await until(pilot, lambda before=before: rows.selected != before)
            chosen.append(rows.selected)
        assert chosen == [10, 12, 10]
        relay.release(1, "continued")
        relay.release(2, "continued")
        await until(pilot, lambda: not rows.session.held)
        await pilot.press("H")
        await until(pilot, on_screen(pilot, "no frame is held"))

    play(scenario, relay.path)


def test_r_sends_the_request_again_under_an_id_of_ours_and_shows_the_answer(relay):
    async def scenario(pilot):
        rows = await shown(pilot)
        await pilot.press("R")  # on the response, it resends the request
        await until(pilot, on_screen(pilot, "send to weather under the id mcpspy-"))
        area(pilot).text = area(pilot).text.replace("Bergen", "Oslo")
        await pilot.press("ctrl+s")
        order = await relay.order(pilot)
        request = json.loads(order["send"])
        assert (request["method"], request["params"]["arguments"]["city"]) == ("tools/call", "Oslo")
        assert '"d":1.50' in order["send"].replace(" ", "")
        assert request["id"].startswith("mcpspy-")
        assert "session" not in order
        await back(pilot)
        await until(pilot, on_screen(pilot, f"sent again as {request['id']}"))
        relay.frame(order["send"].encode(), by="viewer", **{"from": "mcpspy"})
        answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}).encode()
        relay.frame(answer, SERVER, sent=None, by="viewer")
        await until(pilot, lambda: rows.selected == 11)
        await until(pilot, on_screen(pilot, f"#11 answers {request['id']}; the client does not see it"))
        await until(pilot, lambda: "  content: []" in message(pilot))

        rows.move_to(3)
        await pilot.press("R")
        await on_message(pilot)
        await pilot.press("ctrl+s")
        number = json.loads((await relay.order(pilot))["send"])["id"]
        await back(pilot)
        await pilot.press("g")
        relay.frame(json.dumps({"id": number, "result": {}}).encode(), SERVER, sent=None, by="viewer")
        await until(pilot, on_screen(pilot, f"#12 answers {number}"))
        assert rows.selected == 5, "the answer does not take a person away from another row"

        rows.move_to(3)
        await pilot.press("R")
        await on_message(pilot)
        area(pilot).text = '{"id":1,"method":"ping"}'  # the client would see the answer
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "the id must stay"))
        await pilot.press("escape")
        await back(pilot)
        assert relay.look() == [] == relay.orders
        await pilot.press("up", "R")
        await until(pilot, on_screen(pilot, "only a request of the client can be sent again"))

    play(scenario, relay.path)


def test_a_session_that_cannot_be_controlled_says_why_in_one_line(tmp_path):
    relay = ScriptedRelay(tmp_path / "a.jsonl", control=False)

    async def scenario(pilot):
        async def refused(why, keys="BR"):
            for key in keys:
                await pilot.press("down", "up")
                assert not on_screen(pilot, why)()
                await pilot.press(key)
                await until(pilot, on_screen(pilot, why))

        await shown(pilot)
        await pilot.press("up")
        await refused("weather cannot be controlled: it runs with --no-control")
        relay.end()
        await shown(pilot, 6)
        await until(pilot, lambda: timeline(pilot).session.complete)
        await refused("weather has ended: only a running session can be controlled", "B")

    play(scenario, relay.path, size=(160, 30))


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_directory_that_may_not_be_used_is_one_line(relay, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", relay.folder.path)

    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("D")
        await until(pilot, on_screen(pilot, "cannot control this session: "))
        await pilot.press("B")
        await until(pilot, on_screen(pilot, "hold the frames"))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "cannot control this session: "))
        assert os.listdir(tmp_path / "elsewhere") == []

    play(scenario, relay.path)


def test_what_is_held_goes_on_when_the_session_is_left(relay):
    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("up", "B")
        await until(pilot, on_screen(pilot, "hold the frames"))
        await pilot.press("enter")
        await back(pilot)
        relay.hold(1, GATE)
        await shown(pilot, 6)
        await until(pilot, lambda: timeline(pilot).session.held)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, SessionScreen))
        assert await relay.order(pilot) == {"release": 1, "how": "continued"}
        assert relay.look() == []

    play(scenario, relay.path)


def test_the_gates_go_when_the_application_ends(relay):
    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("B")
        await until(pilot, on_screen(pilot, "hold the frames"))
        await pilot.press("enter")
        await back(pilot)
        assert len(relay.look()) == 1
        relay.hold(1, GATE)
        await until(pilot, lambda: relay.look() is not None)
        await pilot.press("q")

    play(scenario, relay.path)
    assert relay.look() == []


def test_in_a_merge_each_row_goes_to_the_relay_of_its_session(tmp_path):
    first = ScriptedRelay(tmp_path / "a.jsonl", ago=100, name="first")
    second = ScriptedRelay(tmp_path / "b.jsonl", ago=99, name="second")

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "m")
        await shown(pilot, 10)
        second.hold(7, GATE, at=89)
        await shown(pilot, 11)
        await pilot.press("G")
        await until(pilot, on_screen(pilot, "held 1"))
        (line,) = (line for line in lines(pilot.app) if "held 1" in line)
        assert "second" in line
        assert "gives up in 4" in line or "gives up in 5" in line
        await pilot.press("B")
        await until(pilot, on_screen(pilot, "hold the frames of second"))
        await pilot.press("enter")
        await back(pilot)
        assert (len(first.look()), len(second.look())) == (0, 1)
        await pilot.press("g", "H")
        await until(pilot, lambda: timeline(pilot).selected == 11)
        await pilot.press("enter")
        assert await second.order(pilot) == {"release": 7, "how": "continued"}
        assert first.look() == [] == first.orders
        await pilot.press("up", "R")
        await on_message(pilot)
        await pilot.press("ctrl+s")
        await back(pilot)
        number = json.loads((await second.order(pilot))["send"])["id"]
        second.frame(json.dumps({"id": number, "result": {}}).encode(), SERVER, sent=None, by="viewer")
        await until(pilot, lambda: timeline(pilot).selected == 12)

    play(scenario, tmp_path, size=(140, 30))
    assert second.look() == []
