"""The first screen: the sessions there are, live ones first, as they come and go."""

import os

from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import lines, on_screen, play, sessions, shown, timeline, title, until


def test_where_there_are_no_captures_it_says_what_to_do(tmp_path):
    async def scenario(pilot):
        text = "\n".join(lines(pilot.app))
        assert f"No captures in {tmp_path} yet." in text
        assert "mcpspy wrap -- COMMAND" in text
        assert "mcpspy demo" in text
        assert title(pilot.app) == f"mcpspy · 0 sessions, 0 live · {tmp_path}"
        await pilot.press("down", "enter", "G")

    play(scenario, tmp_path, size=(160, 20))


def test_a_session_appears_as_it_starts_and_says_when_it_has_ended(tmp_path):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "No captures"))
        writer = begin(tmp_path / "a.jsonl")
        await until(pilot, on_screen(pilot, "● live  weather"))
        assert "No captures" not in "\n".join(lines(pilot.app))
        assert "1 session, 1 live" in title(pilot.app)
        record(writer, '> {"id":1,"method":"ping"}\n< not JSON')
        await until(pilot, lambda: "2 frames     1 error" in shown(sessions(pilot))[0])
        finish(writer)
        await until(pilot, on_screen(pilot, "1 session, 0 live"))
        assert "live" not in shown(sessions(pilot))[0]
        assert shown(sessions(pilot))[0].endswith("node weather.js")

    play(scenario, tmp_path)


def test_live_ones_stand_first_and_are_marked(tmp_path):
    capture(tmp_path / "a.jsonl", "> {}", name="done")
    writer = begin(tmp_path / "b.jsonl", name="running")

    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, lambda: "running" in shown(rows)[0])
        assert shown(rows)[0].startswith("     ● live  running ")
        assert shown(rows)[1].split()[-8:-6] != ["●", "live"]
        await pilot.press("down")
        assert rows.render_line(0)._segments[0].style.color != rows.render_line(0)._segments[1].style.color
        finish(writer)

    play(scenario, tmp_path)


def test_what_is_selected_stays_so_while_others_come_and_go(tmp_path):
    for name in "abc":
        capture(tmp_path / f"{name}.jsonl", "", name=name)

    async def scenario(pilot):
        rows = sessions(pilot)
        await pilot.press("down")
        assert rows.entry().header.name == "b"
        writer = begin(tmp_path / "live.jsonl")
        await until(pilot, lambda: rows.count() == 4)
        assert (rows.entry().header.name, rows.cursor) == ("b", 2)
        os.unlink(tmp_path / "a.jsonl")
        await until(pilot, lambda: rows.count() == 3)
        assert (rows.entry().header.name, rows.cursor) == ("b", 1)
        os.unlink(tmp_path / "b.jsonl")
        await until(pilot, lambda: rows.count() == 2)
        assert rows.entry() is not None
        finish(writer)

    play(scenario, tmp_path)


def test_the_last_session_that_is_deleted_leaves_what_to_do(tmp_path):
    path = capture(tmp_path / "a.jsonl", "")

    async def scenario(pilot):
        os.unlink(path)
        await until(pilot, on_screen(pilot, "No captures"))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "No captures"))

    play(scenario, tmp_path)


def test_enter_opens_the_selected_session_and_escape_comes_back(tmp_path):
    for name in "ab":
        capture(tmp_path / f"{name}.jsonl", "> {}", name=f"server-{name}")

    async def scenario(pilot):
        await pilot.press("down", "enter")
        await until(pilot, on_screen(pilot, "server-b · stdio · ended"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "2 sessions"))
        assert sessions(pilot).cursor == 1
        assert pilot.app.focused is sessions(pilot)

    play(scenario, tmp_path)


def test_a_click_on_the_selected_session_opens_it(tmp_path):
    capture(tmp_path / "a.jsonl", "> {}")

    async def scenario(pilot):
        await pilot.click("SessionRows", offset=(3, 0))
        await until(pilot, on_screen(pilot, "weather · stdio · ended"))
        assert timeline(pilot).has_focus

    play(scenario, tmp_path)


def test_a_session_that_is_deleted_as_it_is_chosen_is_said_to_be_gone(tmp_path):
    capture(tmp_path / "a.jsonl", "")

    async def scenario(pilot):
        sessions(pilot)._library.look()
        os.unlink(tmp_path / "a.jsonl")
        sessions(pilot).action_choose()
        await until(pilot, lambda: pilot.app._notifications)
        (said,) = pilot.app._notifications
        assert said.message == f"cannot read {tmp_path / 'a.jsonl'}: No such file or directory"

    play(scenario, tmp_path)


def test_a_session_that_is_not_counted_says_so(tmp_path, monkeypatch):
    for module in ("library", "sessions"):
        monkeypatch.setattr(f"mcpspy.tui.{module}.COUNTED", 10)
    capture(tmp_path / "a.jsonl", "")

    async def scenario(pilot):
        assert "not counted" in shown(sessions(pilot))[0]

    play(scenario, tmp_path)


def test_the_golden_captures_are_listed_with_their_counts():
    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, lambda: all(entry.finished for entry in rows._library.entries))
        await until(pilot, on_screen(pilot, "103 frames    5 errors"))
        assert rows.count() == len(list(CAPTURES.glob("*.jsonl")))

    play(scenario, CAPTURES)


def test_a_narrow_screen_shows_what_fits(tmp_path):
    capture(tmp_path / "a.jsonl", "")

    async def scenario(pilot):
        rows = sessions(pilot)
        assert rows.render_line(0).cell_length == rows.scrollable_content_region.width
        await pilot.resize_terminal(20, 5)
        await until(pilot, lambda: rows.size.width < 21)
        assert rows.render_line(0).cell_length == rows.scrollable_content_region.width

    play(scenario, tmp_path, size=(40, 10))
