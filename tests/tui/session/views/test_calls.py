"""The view of calls: a row for each request, which jumps to it."""

from unittest.mock import patch

import pytest

from mcpspy.tui.views.calls import CallsRows, CallsView
from tests.transcript import WALL, begin, capture, finish, record
from tests.tui.model import test_merged
from tests.tui.screen import on_screen, opened, play, sessions, shown, timeline, until
from tests.tui.views import view

CALL = '{"id":%d,"method":"tools/call","params":{"name":"book","_meta":{"progressToken":1}}}'


def words(app):
    """Return the rows, with runs of blanks joined."""
    return [" ".join(line.split()) for line in shown(app.rows) if line]


def test_each_call_has_a_row_that_leads_to_its_request(tmp_path):
    text = "@1 > 1 ping\n! on\n@2 < 1 = {}\n@2 > 2 tools/list\n@3 < 2 = {}"

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "+2.00 s"))
        assert [line.split("#")[1] for line in words(pilot.app)] == [
            "5 → ping ok ok 1.00 s 36 B ▄▄▄▄▄▄▄▄▄▄",
            "8 → tools/list ok ok 1.00 s 36 B ▄▄▄▄▄▄▄▄▄▄",
        ]
        await pilot.press("enter", "down", "enter")

    assert view(CallsView, capture(tmp_path / "a.jsonl", text), scenario).jumps == [5, 8]


def test_what_runs_says_for_how_long_and_how_far_it_has_come(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, f"@1 > {CALL % 1}")

    async def scenario(pilot):
        app = pilot.app
        with patch("time.time", return_value=WALL / 1e9 + 4):
            app.grow()
            await pilot.pause()
            assert "waiting 3.0 s" in words(app)[0]
            progress = b'{"method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":2}}'
            writer.frame(2, 2 * 10**9, progress, more=False, cut=False)
            app.grow()
            await pilot.pause()
            assert "1/2 ████░░░░ 3.0 s" in words(app)[0]
            writer.frame(2, 3 * 10**9, b'{"id":1,"result":{}}', more=False, cut=False)
            app.grow()
            await pilot.pause()
        assert "ok 2.00 s" in words(app)[0]
        assert app.rows.follow
        finish(writer)

    view(CallsView, tmp_path / "a.jsonl", scenario)


@pytest.mark.parametrize(("live", "text"), [(True, "no calls so far"), (False, "nothing was called")])
def test_without_a_call_it_says_so(tmp_path, live, text):
    writer = begin(tmp_path / "a.jsonl")
    if not live:
        finish(writer)

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, text))
        await pilot.press("enter", "down", "G")
        if live:
            finish(writer)

    view(CallsView, tmp_path / "a.jsonl", scenario)


def test_a_merge_has_the_calls_of_all_sessions_and_enter_leads_to_the_timeline(tmp_path):
    paths = [test_merged.capture(tmp_path / f"{name}.jsonl", 0, "@1 > 1 ping\n@2 < 1 = {}") for name in ("one", "two")]

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "m")
        await opened(pilot)
        await pilot.press("7")
        await until(pilot, on_screen(pilot, "session"))
        for name in ("one", "two"):
            await until(pilot, on_screen(pilot, f"  {name} "))
        await pilot.press("G", "enter")
        await until(pilot, lambda: timeline(pilot).has_focus and timeline(pilot).cursor == 1)

    play(scenario, *paths)


def called(rows):
    """Return the names of the calls on the screen."""
    return [line.split("→")[1].split()[0] for line in shown(rows) if "→" in line]


def asks(number, name):
    return f'{{"id":{number},"method":"tools/call","params":{{"name":"{name}"}}}}'


def test_calls_are_sorted_and_stay_so_while_more_come_and_in_the_next_session(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    no = '{"id":2,"error":{"code":-1,"message":"no"}}'
    record(writer, f"@1 > {asks(1, 'c')}\n@2 < 1 = {{}}\n@3 > {asks(2, 'a')}\n@6 < {no}")

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 1)
        await pilot.press("enter", "7")
        await until(pilot, on_screen(pilot, "request↑"))
        rows = pilot.app.screen.query_one(CallsRows)
        assert rows.follow
        assert called(rows) == ["c", "a"]
        await pilot.press("S")
        await until(pilot, on_screen(pilot, "latency↓"))
        assert (called(rows), rows.cursor, rows.follow) == (["a", "c"], 0, False)
        await pilot.press("down")
        record(writer, f"@10 > {asks(3, 'b')}\n@12 < 3 = {{}}")
        await until(pilot, lambda: called(rows) == ["a", "b", "c"])
        assert rows.cursor == 2, "the selected call stays selected"
        await pilot.press("enter")
        await until(pilot, lambda: timeline(pilot).selected == 5)
        await pilot.press("7", "S", "S")
        await until(pilot, on_screen(pilot, "status↓"))
        assert called(rows)[0] == "a"
        await pilot.press("S")
        await until(pilot, on_screen(pilot, "call↑"))
        finish(writer)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: sessions(pilot).has_focus)
        await pilot.press("enter", "7")
        await until(pilot, on_screen(pilot, "call↑"))
        rows = pilot.app.screen.query_one(CallsRows)
        await until(pilot, lambda: called(rows) == ["a", "b", "c"])
        await pilot.press("f")
        await until(pilot, on_screen(pilot, "request↑"))
        assert (called(rows), rows.cursor) == (["c", "a", "b"], 2)

    play(scenario, tmp_path)
