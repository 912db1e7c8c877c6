"""The first screen: the list of sessions, live ones first, as they start and end."""

import os
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

import pytest
from textual.widgets import Input

from mcpspy.conversation.counts import COUNTED
from mcpspy.tui.model.commands import ANYWHERE
from mcpspy.tui.sessions import SessionRows
from mcpspy.tui.views.table import COMMANDS
from tests.transcript import WALL, abandon, begin, capture, finish, record
from tests.tui.screen import lines, on_screen, play, resize, sessions, shown, timeline, title, until


def test_where_there_are_no_captures_it_says_what_to_do(tmp_path):
    async def scenario(pilot):
        text = "\n".join(lines(pilot.app))
        assert f"No captures in {tmp_path} yet." in text
        for command in ("mcpspy install", "mcpspy wrap -- COMMAND", "mcpspy proxy URL", "mcpspy demo"):
            assert f"  {command} " in text
        assert title(pilot.app) == f"mcpspy · 0 sessions, 0 live · {tmp_path}"
        await pilot.press("down", "enter", "G", "y", "w")
        await until(pilot, on_screen(pilot, "copied mcpspy wrap -- COMMAND"))
        assert pilot.app.clipboard == "mcpspy wrap -- COMMAND"
        capture(tmp_path / "a.jsonl", "")
        await until(pilot, lambda: sessions(pilot).count() == 1)
        await pilot.press("y")
        assert pilot.app.screen.query(SessionRows), "there is nothing to begin"

    play(scenario, tmp_path, size=(160, 20))


def test_a_session_appears_as_it_starts_above_those_that_are_over_and_says_when_it_has_ended(tmp_path):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "No captures"))
        writer = begin(tmp_path / "b.jsonl", name="running")
        await until(pilot, on_screen(pilot, "● live running"))
        assert "No captures" not in "\n".join(lines(pilot.app))
        assert "1 session, 1 live" in title(pilot.app)
        capture(tmp_path / "a.jsonl", "> {}", name="done")
        rows = sessions(pilot)
        await until(pilot, lambda: rows.count() == 2)
        assert shown(rows)[0].startswith("       ● live running ")
        assert "● live" not in shown(rows)[1]
        rows.move_to(1)
        styles = [segment.style.color for segment in rows.render_line(0)]
        assert styles[0] != styles[1]
        record(writer, '> {"id":1,"method":"ping"}\n< | not JSON')
        await until(pilot, lambda: shown(rows)[0].split()[4:7] == ["1", "2", "✗2"])
        finish(writer)
        await until(pilot, on_screen(pilot, "2 sessions, 0 live"))
        assert "live" not in shown(rows)[0]
        assert "".join(text for text, _ in rows.cells(0, 160)).endswith("node weather.js")

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


def test_sessions_are_opened_by_keys_and_clicks_and_one_that_is_deleted_meanwhile_is_said_to_be_gone(tmp_path):
    for name in "ab":
        capture(tmp_path / f"{name}.jsonl", "> {}", name=f"server-{name}")

    async def scenario(pilot):
        rows = sessions(pilot)
        await pilot.press("down", "enter")
        await until(pilot, on_screen(pilot, "server-b · stdio · ended"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "2 sessions"))
        assert (rows.cursor, pilot.app.focused) == (1, rows)
        await pilot.click("SessionRows", offset=(3, 1))
        await until(pilot, on_screen(pilot, "server-b · stdio · ended"))
        assert timeline(pilot).has_focus
        await pilot.press("escape")

        await until(pilot, on_screen(pilot, "2 sessions"))
        os.unlink(tmp_path / "b.jsonl")
        rows.action_choose()
        await until(pilot, on_screen(pilot, "cannot read"))
        await until(pilot, on_screen(pilot, "directory"))
        await until(pilot, lambda: rows.count() == 1)
        await pilot.press("space")
        await until(pilot, on_screen(pilot, "1 marked"))
        os.unlink(tmp_path / "a.jsonl")
        await until(pilot, on_screen(pilot, "No captures"))
        assert not on_screen(pilot, "0 marked")()
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "No captures"))

    play(scenario, tmp_path)


def test_files_that_cannot_be_read_are_named_below_the_list_and_what_is_too_large_is_not_counted(tmp_path):
    bad = tmp_path / "\x1b[2J[b].jsonl"
    bad.write_bytes(b'{"mcpspy":2}\n')

    async def scenario(pilot):
        rows = sessions(pilot)
        for entries in (0, 1):
            await until(pilot, on_screen(pilot, "1 file not shown: \\e[2J[b].jsonl has format 2, "))
            assert rows.count() == entries
            os.truncate(capture(tmp_path / "a.jsonl", ""), COUNTED + 1)
            await until(pilot, lambda: rows.count() == 1)
        await until(pilot, on_screen(pilot, "uncounted"))
        bad.unlink()
        await until(pilot, lambda: not on_screen(pilot, "not shown")())
        for width in (40, 20):
            await resize(pilot, width, 5)
            await until(pilot, lambda width=width: rows.size.width <= width)
            assert rows.render_line(0).cell_length == rows.scrollable_content_region.width

    play(scenario, tmp_path)


# Marks, filters by words, and several sessions at once.


@pytest.fixture
def three(tmp_path):
    """A directory of three captures that began at the same time, so the list has them in the order of their names."""
    for name in "abc":
        capture(tmp_path / f"{name}.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}', name=f"server-{name}")
    return tmp_path


def names(pilot):
    return [entry.header.name[-1] for entry in sessions(pilot).entries]


def test_words_leave_only_what_has_them_and_escape_brings_back_the_rest_and_then_marks_none(three):
    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, lambda: rows.count() == 3)
        await pilot.press("down", "slash", *"SERVER-b")
        await until(pilot, lambda: names(pilot) == ["b"])
        await until(pilot, on_screen(pilot, "1 of 3"))
        await pilot.press("enter")
        assert pilot.app.focused is rows
        assert rows.entry().header.name == "server-b"
        await pilot.press("escape")
        await until(pilot, lambda: names(pilot) == ["a", "b", "c"])
        assert rows.entry().header.name == "server-b", "what was selected stays so"
        await pilot.press("slash", *"nothing has this")
        await until(pilot, lambda: names(pilot) == [])
        await pilot.press("enter", "enter", "space", "escape")
        await until(pilot, lambda: names(pilot) == ["a", "b", "c"])

        await pilot.press("g", "space", "space")
        assert [entry.header.name for entry in rows.picked()] == ["server-a", "server-b"]
        assert rows.cursor == 2
        await until(pilot, lambda: [line[0] for line in shown(rows)[:3]] == ["*", "*", " "])
        await until(pilot, on_screen(pilot, "2 marked"))
        await pilot.press("slash", *"server-b", "enter")
        await until(pilot, lambda: rows.count() == 1)
        await pilot.press("escape")
        await until(pilot, lambda: rows.count() == 3)
        assert len(rows.marked) == 2
        await pilot.press("escape")
        await until(pilot, lambda: not on_screen(pilot, "marked ·")())
        assert not rows.marked
        assert "*" not in "".join(shown(rows))

        await pilot.press("g", "space", "space", "up", "space")
        assert [entry.header.name for entry in rows.picked()] == ["server-a"]
        os.unlink(three / "a.jsonl")
        await until(pilot, lambda: rows.count() == 2)
        assert rows.picked() == []

    play(scenario, three)


def test_a_command_that_is_the_same_everywhere_is_done_here_too(three):
    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 3)
        await pilot.press("ctrl+f", *"server-b", "enter")
        await pilot.press("colon", *"theme nord", "enter")
        assert pilot.app.theme == "nord"
        assert pilot.app.focused is sessions(pilot)
        assert on_screen(pilot, "/server-b")(), "the words are looked for as before"
        assert names(pilot) == ["b"]
        await pilot.press("colon", *"x:/", "escape")
        assert names(pilot) == ["b"]
        await pilot.press("colon", *"help", "enter")
        await until(pilot, on_screen(pilot, "Esc goes back"))
        await pilot.press("escape", "colon", *"quit", "enter")
        await until(pilot, lambda: not pilot.app.is_running)

    play(scenario, three)


REFUSED = {
    **{
        name: f"{name} works in a session only: Enter opens the selected one"
        for name in COMMANDS
        if name not in ANYWHERE
    },
    "17": "goto works in a session only",
    "theme nrod": "no theme 'nrod'; did you mean 'nord'?",
    "x": "no command 'x'",
}


def test_a_command_that_is_not_for_here_says_so_and_stays_to_be_mended(three):
    async def scenario(pilot):
        for command, said in REFUSED.items():
            await pilot.press("colon")
            pilot.app.screen.query_one(Input).insert_text_at_cursor(command)
            await pilot.pause()
            assert not on_screen(pilot, said)(), said
            await pilot.press("enter")
            await until(pilot, on_screen(pilot, said))
            assert on_screen(pilot, f":{command}")()
            await pilot.press("z")
            await until(pilot, lambda said=said: not on_screen(pilot, said)())
            await pilot.press("escape")
            assert not on_screen(pilot, f":{command}")()

    play(scenario, three)


def test_marked_sessions_are_merged_by_time_and_each_line_says_whose_it_is(three):
    async def scenario(pilot):
        await pilot.press("space", "space", "m")
        await until(pilot, on_screen(pilot, "server-a + server-b · stdio · ended · 4 rows"))
        rows = timeline(pilot)
        await until(pilot, lambda: rows.count() == 4)
        lines_shown = shown(rows)[:4]
        assert [line[2:10] for line in lines_shown] == ["server-a", "server-b"] * 2
        assert ["#5 " in line for line in lines_shown] == [True, True, False, False]
        await pilot.press("down")
        assert rows.place() == 1
        await pilot.press("5")
        await until(pilot, on_screen(pilot, "server-b · stdio · ended · 2 rows"))
        await until(pilot, on_screen(pilot, "the server wrote nothing to stderr"))
        await pilot.press("escape", "escape")
        await until(pilot, on_screen(pilot, "server-a + server-b"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "3 sessions"))

    play(scenario, three)


def test_marked_sessions_are_opened_in_turn_and_stay_as_they_were_left(three):
    async def scenario(pilot):
        await pilot.press("space", "space", "space", "v")
        await until(pilot, on_screen(pilot, "server-a · stdio · ended · 2 rows · 1 problem"))
        await pilot.press("1", "down")
        assert timeline(pilot).cursor == 1
        await pilot.press("]")
        await until(pilot, on_screen(pilot, "server-b · stdio"))
        await pilot.press("[", "[")
        await until(pilot, on_screen(pilot, "server-c · stdio"))
        await pilot.press("]")
        await until(pilot, on_screen(pilot, "server-a · stdio"))
        assert timeline(pilot).cursor == 1
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "w problems"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "3 sessions"))
        await until(pilot, lambda: not pilot.app.is_screen_installed("turn 0"))
        await pilot.press("v")
        await until(pilot, on_screen(pilot, "server-a · stdio"))

    play(scenario, three)


@pytest.mark.parametrize(("key", "action"), [("m", "merge"), ("v", "view")])
def test_too_few_marks_and_marked_sessions_that_were_deleted_open_nothing(three, key, action):
    async def scenario(pilot):
        await pilot.press("space", key)
        await until(pilot, on_screen(pilot, "mark two sessions with the space bar"))
        assert sessions(pilot).count() == 3
        await pilot.press("space")
        os.unlink(three / "b.jsonl")
        await pilot.app.screen.run_action(action)  # before the list is read again
        await until(pilot, on_screen(pilot, "cannot read"))
        assert sessions(pilot).display

    play(scenario, three)


@contextmanager
def talking(writers):
    """Write exchanges into all these sessions, as their relays would. Yield the count of exchanges for each."""
    over, said = Event(), dict.fromkeys(writers, 0)

    def talk():
        for n in count():
            for place, (name, writer) in enumerate(writers.items()):
                if n % (1 + place % 3) == 0:
                    answer = '"error":{"code":1,"message":"no"}' if said[name] % 4 == 3 else '"result":{}'
                    writer.frame(1, n * 10**7, b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n, more=False, cut=False)
                    answer = f'{{"jsonrpc":"2.0","id":{n},{answer}}}'.encode()
                    writer.frame(2, n * 10**7 + 1000, answer, more=False, cut=False)
                    said[name] += 1
            if over.wait(0.02):
                return

    thread = Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield said
    finally:
        over.set()
        thread.join()


@pytest.fixture
def fifty(tmp_path, monkeypatch):
    """Fifty live sessions that began three minutes ago, by name."""
    monkeypatch.setattr("mcpspy.tui.sessions.time.time", lambda: WALL / 1e9 + 180)
    writers = {f"server-{n:02}": begin(tmp_path / f"{n:02}.jsonl", name=f"server-{n:02}") for n in range(50)}
    for writer in writers.values():
        record(writer, "")
    yield writers
    for writer in writers.values():
        finish(writer, 10**12)


def words(rows, place):
    return "".join(text for text, _ in rows.cells(place, 120)).split()


def test_fifty_live_sessions_are_told_of_as_they_go_on_and_stay_where_they_are_also_as_one_dies(tmp_path, fifty):
    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, on_screen(pilot, "50 sessions, 50 live"))
        await pilot.press("G", "k", "k", "k")

        def here():
            return rows.entry().header.name, rows.cursor - rows.scroll_offset.y

        before = here()
        assert before[0] == "server-46"
        with talking(fifty) as said:
            for frames in range(10, 60, 10):
                await until(pilot, lambda frames=frames: rows.entry().counts.frames >= frames)
                assert here() == before
                assert [entry.header.name for entry in rows.entries] == sorted(fifty)
        for place, (name, exchanges) in enumerate(said.items()):
            expected = f"● live {name} stdio 1 {2 * exchanges}"
            await until(pilot, lambda place=place, text=expected: " ".join(words(rows, place)[:6]) == text, expected)
        abandon(fifty.pop("server-03"))  # as if its relay was killed
        await until(pilot, on_screen(pilot, "50 sessions, 49 live"))
        assert here() == before
        assert words(rows, 49)[:4] == ["3", "min", "ago", "server-03"]

    play(scenario, tmp_path)


def test_of_fifty_live_sessions_one_is_opened_and_all_are_merged_while_they_go_on_and_one_dies(tmp_path, fifty):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "50 sessions, 50 live"))
        with talking(fifty):
            await pilot.press("j", "enter")
            await until(pilot, on_screen(pilot, "server-01 · stdio · live"))
            await until(pilot, lambda: timeline(pilot).count() > 10)
            await pilot.press("escape", "g", *["space"] * 50)
            await until(pilot, on_screen(pilot, "50 marked"))
            await pilot.press("m")
            await until(pilot, on_screen(pilot, "server-00 + server-01"))
            await until(pilot, lambda: timeline(pilot).count() > 1000)
        merged = timeline(pilot).session
        abandon(fifty.pop("server-03"))
        await until(pilot, lambda: len(merged) == merged.counts.frames == sum(map(len, merged.sessions)))
        assert merged.state == "live"
        for name in list(fifty):
            finish(fifty.pop(name), 10**12)
        await until(pilot, lambda: merged.complete)
        assert len(merged) == merged.counts.frames + 49  # one end for each session that was not killed
        await until(pilot, on_screen(pilot, "· killed ·"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "50 sessions, 0 live"))

    play(scenario, tmp_path)


@pytest.mark.field
def test_ten_thousand_captures_are_there_little_by_little_while_keys_are_answered(tmp_path):
    header = '{"mcpspy":1,"started":"2026-11-20T00:00:00Z","transport":"stdio","name":"x","argv":["x"]}\n'
    for number in range(10_000):
        with open(tmp_path / f"{number:05}.jsonl", "w", encoding="utf-8") as file:
            file.write(header)

    async def scenario(pilot):
        rows = sessions(pilot)
        assert 0 < rows.count() < 10_000
        await pilot.press("j")
        chosen = rows.entry().path
        await until(pilot, on_screen(pilot, "10,000 sessions"))
        assert rows.entry().path == chosen

    play(scenario, tmp_path)
