"""Breakpoints and held frames from the user's side: keys pressed, orders to the relay, and the screen."""

import json
import os
from contextlib import nullcontext
from unittest.mock import patch

import pytest
from textual.app import App
from textual.widgets import Input, TextArea

from mcpspy.browse.control import HOLD
from mcpspy.tui.session.screen import SessionScreen
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


def test_b_holds_frames_like_the_selected_one_from_now_on(relay):
    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("up", "B")
        await until(pilot, on_screen(pilot, "hold the frames of weather that match"))
        assert pilot.app.screen.query_one(Input).value == "method:tools/call name:get_forecast from:client"
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, f"{GATE}: matching frames are held"))
        assert relay.look() == [BREAKPOINT]
        assert oct(os.stat(relay.folder.path).st_mode)[-3:] == "700" or os.name != "posix"

    play(scenario, relay.path)
    assert relay.look() == []


def test_a_breakpoint_can_be_edited_and_a_mistake_is_asked_again(relay):
    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("up", "B")
        await until(pilot, on_screen(pilot, "hold the frames"))
        await pilot.press("ctrl+u", *"metod:x", "enter")
        await until(pilot, on_screen(pilot, "unknown key 'metod'; did you mean method?"))
        assert relay.look() == []
        await pilot.press("ctrl+u", "enter")
        await until(pilot, on_screen(pilot, "a breakpoint needs a filter"))
        await pilot.press(*"from:server", "enter")
        await back(pilot)
        assert [gate["when"] for gate in relay.look()] == [{"from": "server"}]
        await pilot.press("B")
        await until(pilot, on_screen(pilot, "hold the frames"))
        await pilot.press("ctrl+u", *"from:server", "enter")
        await until(pilot, on_screen(pilot, "there is such a breakpoint already"))
        await pilot.press("escape")
        await back(pilot)

    play(scenario, relay.path)


def test_a_held_row_says_how_long_and_when_the_client_gives_up(relay):
    async def scenario(pilot):
        rows = await held(pilot, relay)
        await until(pilot, on_screen(pilot, "client gives up in "))
        (line,) = (line for line in lines(pilot.app) if "held 1" in line)
        assert "client gives up in 4" in line or "client gives up in 5" in line
        await until(pilot, lambda: "1 held" in lines(pilot.app)[-2])
        await until(pilot, lambda: "continue" in lines(pilot.app)[-1])
        relay.release(1, "expired")
        await until(pilot, lambda: rows.session.held == [])
        await until(pilot, lambda: "1 held" not in lines(pilot.app)[-2])
        await until(pilot, lambda: not on_screen(pilot, "gives up")())
        await until(pilot, lambda: "continue" not in lines(pilot.app)[-1])

    play(scenario, relay.path)


def test_a_client_whose_time_out_is_not_known_says_so(tmp_path):
    relay = ScriptedRelay(tmp_path / "a.jsonl", client="nobody")

    async def scenario(pilot):
        await held(pilot, relay)
        await until(pilot, on_screen(pilot, "s · client time-out unknown"))

    play(scenario, relay.path)


def test_enter_continues_a_held_row_and_reads_any_other(relay):
    async def scenario(pilot):
        rows = await held(pilot, relay)
        await pilot.press("enter")
        assert await relay.order(pilot) == {"release": 1, "how": "continued"}
        await until(pilot, on_screen(pilot, "#10 is continued"))
        assert rows.has_focus
        relay.release(1, "continued")
        await until(pilot, lambda: rows.session.held == [])
        await pilot.press("enter")
        await until(pilot, lambda: not rows.has_focus)
        assert relay.look() == [] == relay.orders

    play(scenario, relay.path)


def test_enter_folds_in_the_message_of_a_held_row(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert relay.look() == [] == relay.orders

    play(scenario, relay.path)


def test_d_drops_a_held_row(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("D")
        assert await relay.order(pilot) == {"release": 1, "how": "dropped"}

    play(scenario, relay.path)


def test_keys_of_a_held_row_do_nothing_elsewhere(relay):
    async def scenario(pilot):
        rows = await shown(pilot)
        await pilot.press("D", "A")
        await until(pilot, lambda: rows.hunt is None)
        await pilot.press("up", "E")  # to the previous finding, which does not exist
        await until(pilot, on_screen(pilot, "no row matches"))
        assert relay.look() == [] == relay.orders

    play(scenario, relay.path)
    assert not os.path.exists(relay.folder.path)


def test_e_edits_a_held_row_in_place(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("E")
        await until(pilot, on_screen(pilot, "edit #10 of weather · held"))
        area(pilot).text = area(pilot).text.replace("Oslo", "Bergen")
        await pilot.press("ctrl+s")
        order = await relay.order(pilot)
        assert order == {"release": 1, "how": "edited", "frame": CALL.decode().replace("Oslo", "Bergen")}
        await back(pilot)
        await until(pilot, on_screen(pilot, "#10 is edited"))

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


def test_what_is_no_json_asks_again_and_what_was_left_is_kept(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("E")
        await until(pilot, on_screen(pilot, "edit #10"))
        await pilot.press("x", "ctrl+s")
        await until(pilot, on_screen(pilot, "not JSON: Expecting value at line 1, column 1"))
        await pilot.press("y", "escape")
        await back(pilot)
        assert relay.look() == [] == relay.orders
        await pilot.press("E")
        await until(pilot, on_screen(pilot, "edit #10"))
        assert area(pilot).text.startswith("xy{")
        await pilot.press("delete", "delete", "ctrl+s")
        await back(pilot)
        assert (await relay.order(pilot))["frame"] == CALL.decode()

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


def test_a_answers_a_held_request_instead_of_the_peer(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("A")
        await until(pilot, on_screen(pilot, "answer #10 of weather"))
        await pilot.press("ctrl+s")
        order = await relay.order(pilot)
        assert (order["release"], order["how"]) == (1, "answered")
        answer = json.loads(order["frame"])
        assert answer == {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": ""}]}}

    play(scenario, relay.path)


def test_only_a_response_answers(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await pilot.press("A")
        await until(pilot, on_screen(pilot, "answer #10"))
        area(pilot).text = "{}"
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "either result or error"))
        await pilot.press("escape")
        await back(pilot)
        assert relay.look() == [] == relay.orders

    play(scenario, relay.path)


def test_a_held_response_has_no_answer_but_can_be_edited(relay):
    async def scenario(pilot):
        await held(pilot, relay)
        await held(pilot, relay, 2, b'{"jsonrpc":"2.0","id":77,"result":{}}', SERVER)
        await pilot.press("A")
        await until(pilot, on_screen(pilot, "only a request can be answered"))
        await pilot.press("E")
        await until(pilot, on_screen(pilot, "edit #11"))
        await pilot.press("ctrl+s")
        assert (await relay.order(pilot))["release"] == 2

    play(scenario, relay.path)


@pytest.mark.parametrize(
    "raw", [b'[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]', b"n\xff{"]
)
def test_a_batch_and_what_is_no_message_can_be_held_too(relay, raw):
    async def scenario(pilot):
        await held(pilot, relay, raw=raw)
        await pilot.press("A")
        await until(pilot, on_screen(pilot, "only a request can be answered"))
        await pilot.press("R")
        await until(pilot, on_screen(pilot, "only a request of the client can be sent again"))
        await pilot.press("E")
        await until(pilot, on_screen(pilot, "edit #10"))
        assert not unsafe("".join(lines(pilot.app)))
        area(pilot).text = "{}"
        await pilot.press("ctrl+s")
        assert await relay.order(pilot) == {"release": 1, "how": "edited", "frame": "{}"}

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
        await until(pilot, lambda: '"content": []' in message(pilot))

    play(scenario, relay.path)


def test_the_answer_does_not_take_a_person_away_from_another_row(relay):
    async def scenario(pilot):
        rows = await shown(pilot)
        await pilot.press("up", "R")
        await on_message(pilot)
        await pilot.press("ctrl+s")
        number = json.loads((await relay.order(pilot))["send"])["id"]
        await back(pilot)
        await pilot.press("g")
        relay.frame(json.dumps({"id": number, "result": {}}).encode(), SERVER, sent=None, by="viewer")
        await until(pilot, on_screen(pilot, f"#10 answers {number}"))
        assert rows.selected == 5

    play(scenario, relay.path)


def test_a_request_that_the_client_would_see_the_answer_of_is_asked_again(relay):
    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("up", "R")
        await on_message(pilot)
        area(pilot).text = '{"id":1,"method":"ping"}'
        await pilot.press("ctrl+s")
        await until(pilot, on_screen(pilot, "the id must stay"))
        await pilot.press("escape")
        await back(pilot)
        assert relay.look() == [] == relay.orders

    play(scenario, relay.path)


def test_a_notification_is_not_sent_again(relay):
    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("up", "up", "R")
        await until(pilot, on_screen(pilot, "only a request of the client can be sent again"))

    play(scenario, relay.path)


@pytest.mark.parametrize("key", ["B", "R"])
def test_a_session_that_cannot_be_controlled_says_why_in_one_line(tmp_path, key):
    relay = ScriptedRelay(tmp_path / "a.jsonl", control=False)

    async def scenario(pilot):
        await shown(pilot)
        await pilot.press("up", key)
        await until(pilot, on_screen(pilot, "weather cannot be controlled: it runs with --no-control"))
        relay.end()
        await shown(pilot, 6)
        await until(pilot, lambda: timeline(pilot).session.complete)
        await pilot.press(key)
        await until(pilot, on_screen(pilot, "weather has ended: only a running session can be controlled"))

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
