"""The rows of the list of sessions."""

import pytest
from rich.cells import cell_len

from mcpspy.capture.reader import Capture
from tests.transcript import WALL, abandon, begin, capture, record
from tests.tui.screen import lines, on_screen, play, sessions, until


def words(rows, place):
    return "".join(text for text, _ in rows.cells(place, 120)).split()


def test_wide_characters_leave_the_columns_where_they_are(tmp_path):
    for n, name in enumerate(("plain", "日本語サーバー", "日本語サーバーの長い名前です")):
        capture(tmp_path / f"{n}.jsonl", '> {"id":1,"method":"x"}', name=name, argv=["サーバー" * 40])

    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, lambda: all(" 1 " in line for line in lines(pilot.app)[2:5]))
        found = ["".join(text for text, _ in rows.cells(place, 120)) for place in range(3)]
        assert len({cell_len(line[: line.index(" 1 ")]) for line in found}) == 1
        assert all(cell_len(line) <= 120 for line in found)
        assert "日本語サーバー … " in "".join(found)

    play(scenario, tmp_path)


HELLO = '> {"id":1,"method":"initialize","params":{"clientInfo":{"name":"claude\\u001b[31m","version":"2.1"}}}'


@pytest.fixture
def run(tmp_path):
    """A directory with a run of two captures, one of them killed, and a capture of another client."""
    fields = {"ppid": 42, "client_start": 5, "argv": ("node", "s.js")}
    capture(tmp_path / "main.jsonl", HELLO, name="main", **fields)
    writer = begin(tmp_path / "probe.jsonl", wall=WALL - 10**9, name="probe", **fields)
    record(writer, "@400 > 2 tools/list")
    abandon(writer)
    capture(tmp_path / "other.jsonl", HELLO, wall=WALL - 2 * 10**9, name="other", **fields | {"client_start": 6})
    return tmp_path


async def ready(pilot, rows):
    await until(pilot, lambda: len(rows.entries) == 3 and all(entry.finished for entry in rows.entries))
    rows.grown()


def test_a_run_is_one_row_that_unfolds_and_is_selected_when_it_is_folded_from_within(run):
    async def scenario(pilot):
        rows = sessions(pilot)
        await ready(pilot, rows)
        assert rows.count() == 2
        text = " ".join(words(rows, 0))
        assert text.startswith("▸ ")
        assert " claude\\e[31m 2.1 2 servers 1 2 " in text
        assert text.endswith("1 killed · 2 turns: main, probe")
        assert "other" in words(rows, 1)
        assert rows.entry() is None
        for unfold, fold in (("right", "left"), ("l", "h"), ("enter", "enter"), ("plus", "minus")):
            await pilot.press(unfold)
            assert [words(rows, place)[0] for place in range(3)] == ["▾", "│", "└"], unfold
            assert [words(rows, place)[4] for place in (1, 2)] == ["main", "probe"]
            assert words(rows, 2)[5] == "killed"
            await pilot.press(fold)
            assert rows.count() == 2, fold

        await pilot.press("right", "down", "down")
        assert rows.entry().header.name == "probe"
        await pilot.press("left")
        assert (rows.cursor, rows.count(), rows.entry()) == (0, 2, None)
        await pilot.press("down", "right")
        assert (rows.entry().header.name, rows.count()) == ("other", 2), "there is nothing to unfold"
        await pilot.press("slash", *"42", "enter", "home", "plus")
        assert [entry.header.name for entry in rows.entries] == ["main", "probe", "other"]

    play(scenario, run, size=(120, 20))


def test_m_merges_the_selected_run_and_marks_come_first(run):
    async def scenario(pilot):
        rows = sessions(pilot)
        await ready(pilot, rows)
        await pilot.press("m")
        await until(pilot, on_screen(pilot, "main + probe"))
        await until(pilot, on_screen(pilot, "turn 2 · after 6 min"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "3 sessions"))
        await pilot.press("right", "down", "space", "end", "space", "home", "m")
        await until(pilot, on_screen(pilot, "main + other"))

    play(scenario, run, size=(120, 40))


def test_space_on_a_run_marks_all_of_it(run):
    async def scenario(pilot):
        rows = sessions(pilot)
        await ready(pilot, rows)
        await pilot.press("space")
        assert rows.cursor == 1
        assert sorted(it.header.name for it in rows.picked()) == ["main", "probe"]
        assert words(rows, 0)[0] == "*▸"
        await until(pilot, on_screen(pilot, "2 marked"))
        await pilot.press("home", "right", "down", "space", "home")
        assert [words(rows, place)[0] for place in range(3)] == ["+▾", "│", "*└"]
        await pilot.press("space", "home")
        assert [words(rows, place)[0] for place in range(3)] == ["*▾", "*│", "*└"]
        await pilot.press("space")
        assert rows.marked == set()

    play(scenario, run, size=(120, 20))


def test_a_file_that_goes_on_from_another_one_is_merged_once(tmp_path):
    fields = {"ppid": 42, "client_start": 5}
    path = capture(tmp_path / "a.jsonl", "> {}", name="one", **fields)
    before = {"id": Capture(path).header.id, "file": "a.jsonl", "lines": 1}
    capture(tmp_path / "b.jsonl", "> {}", name="one", **fields, continues=before)
    capture(tmp_path / "c.jsonl", "> {}", wall=WALL - 10**9, name="two", **fields)

    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, lambda: len(rows.entries) == 3)
        assert sorted(it.header.name for it in rows.picked()) == ["one", "two"]

    play(scenario, tmp_path)


def test_rows_say_in_words_what_was_killed_or_imported(tmp_path, run):
    capture(tmp_path / "har.jsonl", "> {}", wall=WALL - 9 * 10**9, name="har", imported={"from": "a HAR"})

    async def scenario(pilot):
        rows = sessions(pilot)
        await until(pilot, lambda: len(rows.entries) == 4 and all(entry.finished for entry in rows.entries))
        rows.grown()
        for width in (80, 120):
            shown = [" ".join(text for text, _ in rows.cells(place, width)) for place in range(rows.count())]
            assert [word in shown[0] for word in ("1 killed", "2 servers")] == [True, width > 100]
            assert " stdio " in shown[1]
            assert " imported " in shown[2]
            assert all(cell_len("".join(text for text, _ in rows.cells(place, width))) <= width for place in range(3))

    play(scenario, tmp_path, size=(120, 20))


def test_the_longest_age_does_not_touch_the_sign(run, monkeypatch):
    monkeypatch.setattr("mcpspy.tui.sessions.age_text", lambda _: "59 min ago")

    async def scenario(pilot):
        rows = sessions(pilot)
        await ready(pilot, rows)
        assert "".join(text for text, _ in rows.cells(0, 80)).startswith(" ▸ 59 min ago claude")

    play(scenario, run, size=(80, 20))


def test_sessions_and_runs_are_sorted_and_the_selected_one_stays_selected(run):
    async def scenario(pilot):
        rows = sessions(pilot)
        await ready(pilot, rows)
        names = [row.run.first.header.name for row in [rows.row()]]
        await pilot.press("down")
        selected = rows.entry().path
        for heading in ("problems↓", "frames↓", "server↑", "started"):
            await pilot.press("S")
            await until(pilot, on_screen(pilot, heading))
            assert rows.cursor == 0
        assert names == [rows.row().run.first.header.name]
        await pilot.press("down")
        assert rows.entry().path == selected
        rows.sort_rows()
        assert rows.entry().path == selected

    play(scenario, run)
