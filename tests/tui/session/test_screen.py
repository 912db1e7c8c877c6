"""A session in its views: filters, searches, commands, and moves between the views."""

import os
import re
import time

import pytest
from textual.widgets import Input

from mcpspy.tui.app import HelpScreen
from mcpspy.tui.session import Status
from mcpspy.tui.views.findings import FindingsRows
from mcpspy.tui.views.problems import ProblemsRows
from mcpspy.tui.widgets.prompt import Prompt
from mcpspy.tui.widgets.rows import Jump
from tests import NIGHTLY
from tests.timelines import GOLDEN
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import detail, lines, message, on_screen, opened, play, resize, shown, strips, timeline, until
from tests.zones import zone

PINGS = "".join(f'> {{"id":{n},"method":"ping"}}\n' for n in range(100))
CALLS = """
> {"id":1,"method":"tools/call","params":{"name":"search"}}
@1.5 < {"id":1,"result":{"isError":true,"content":[]}}
> {"id":2,"method":"tools/call","params":{"name":"forecast"}}
@1.6 < {"id":2,"result":{"content":[]}}
> {"id":3,"method":"ping"}
@3.6 < {"id":3,"result":{}}
! warming up
"""


async def typed(pilot, key, text, *, enter=True):
    """Open the prompt with a key, and write into it."""
    await pilot.press(key)
    pilot.app.screen.query_one(Input).insert_text_at_cursor(text)
    await pilot.press(*["enter"] if enter else [])


def numbers(pilot):
    """Return the line numbers of the shown rows."""
    rows = timeline(pilot)
    return [rows.selection.line(at) for at in range(rows.count())]


def prompt(pilot):
    return pilot.app.screen.query_one(Prompt)


def wrong(pilot):
    """Return the error below the prompt, or an empty text."""
    found = prompt(pilot).query_one("#wrong")
    return str(found.content) if found.display else ""


@pytest.fixture
def calls(tmp_path):
    """Frames #5 to #10 are three exchanges, #11 is stderr, #12 the end."""
    return capture(tmp_path / "a.jsonl", CALLS)


# The filter.


def test_a_filter_filters_while_it_is_typed_and_keeps_the_selected_row_until_escape(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("slash", *"method:ping")
        await until(pilot, lambda: numbers(pilot) == [9, 10])
        await until(pilot, on_screen(pilot, "2 of 8"))
        await pilot.press(*["backspace"] * 4, *"tools/call", "space", *"status:ok", "enter")
        await until(pilot, lambda: numbers(pilot) == [7, 8])
        assert pilot.app.focused is rows
        assert on_screen(pilot, "/method:tools/call status:ok")()
        await pilot.press("escape")
        await until(pilot, lambda: rows.count() == 8)

        rows.move_to(3)
        await typed(pilot, "slash", "kind:result")
        await until(pilot, lambda: numbers(pilot) == [6, 8, 10])
        assert (rows.selected, rows.cursor) == (8, 1)
        assert "#8 tools/call" in message(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: rows.count() == 8)
        assert (rows.selected, rows.cursor) == (8, 3)
        assert not prompt(pilot).display

        await pilot.press("slash", "ctrl+u", *"draft", "up")  # the history comes back
        assert prompt(pilot).text == "kind:result"
        await pilot.press("up", "up")
        assert prompt(pilot).text == "method:tools/call status:ok"
        await until(pilot, lambda: numbers(pilot) == [7, 8])
        await pilot.press("down", "down")
        assert prompt(pilot).text == "draft"

    play(scenario, calls)


def test_escape_while_typing_takes_the_filter_and_the_row_of_before(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        await typed(pilot, "slash", "id:>")
        await pilot.press("escape")
        assert rows.count() == 8
        await typed(pilot, "slash", "kind:request")
        await until(pilot, lambda: numbers(pilot) == [5, 7, 9])
        await pilot.press("down")
        await typed(pilot, "slash", " ping", enter=False)
        await until(pilot, lambda: numbers(pilot) == [9])
        await pilot.press("escape")
        await until(pilot, lambda: numbers(pilot) == [5, 7, 9])
        assert rows.selected == 7
        await pilot.press("escape")

        await typed(pilot, "slash", "ping metod:x")  # the nearest key is named at the caret
        await until(pilot, lambda: wrong(pilot))
        assert wrong(pilot).lstrip() == "^ unknown key 'metod' at column 6; did you mean 'method'?"
        caret = next(line for line in lines(pilot.app) if "unknown key" in line).index("^")
        line = next(line for line in lines(pilot.app) if "ping metod:x" in line)
        assert line[caret:].startswith("metod")
        await pilot.press("home", *["right"] * 7, "backspace", *"te")
        await pilot.press("escape")
        assert not wrong(pilot)

        await pilot.press("escape", "escape")
        await until(pilot, on_screen(pilot, "1 session"))

    play(scenario, calls)


def test_a_filter_and_a_search_whose_keys_come_together_with_enter_as_if_pasted(calls):
    async def scenario(pilot):
        rows = await opened(pilot)

        async def pasted(*keys):
            for key in keys:
                pilot.app.simulate_key(key)
            await until(pilot, lambda: pilot.app.focused is rows)

        await pasted("ctrl+f", *"warming", "enter")
        await until(pilot, lambda: rows.selected == 11)

        rows.move_to(0)
        await pasted("slash", *"kind:request", "enter")
        await until(pilot, lambda: numbers(pilot) == [5, 7, 9])
        await pilot.press("down")
        await typed(pilot, "slash", " ping", enter=False)
        await until(pilot, lambda: numbers(pilot) == [9])
        await pilot.press("escape")
        await until(pilot, lambda: numbers(pilot) == [5, 7, 9])
        assert rows.selected == 7

        await typed(pilot, "slash", ">(", enter=False)
        await until(pilot, lambda: wrong(pilot))
        await pilot.press("backspace", "backspace")  # the filter in force again
        await until(pilot, lambda: not wrong(pilot))

    play(scenario, calls)


def test_rows_that_stream_in_are_filtered_and_followed_while_a_filter_is_typed(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, PINGS)

    def said(first, count):
        for n in range(first, first + count):
            method = b"ping" if n % 2 else b"other"
            writer.frame(1, n * 1_000_000, b'{"id":%d,"method":"%s"}' % (n, method), more=False, cut=False)

    async def scenario(pilot):
        rows = timeline(pilot)
        await until(pilot, lambda: rows.count() == 100)
        await pilot.press("slash")
        for place, letter in enumerate("method:other"):
            await pilot.press(letter)
            said(100 + 50 * place, 50)
        await until(pilot, lambda: rows.count() == 300)
        assert all(rows.session.line(rows.selection.place(at)).method == "other" for at in range(300))
        assert rows.follow
        await until(pilot, lambda: rows.cursor == 299)
        await pilot.press("enter", "g")
        await until(pilot, lambda: shown(rows)[0].split()[1] == "#105")
        before = [line.split()[1] for line in shown(rows)]
        said(1000, 500)
        await until(pilot, lambda: rows.count() == 550)
        assert ([line.split()[1] for line in shown(rows)], rows.cursor) == (before, 0)
        finish(writer)

    play(scenario, tmp_path / "a.jsonl")


def test_a_filter_that_nothing_fits_says_so_shows_no_message_and_takes_every_key(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        assert "#5 " in message(pilot)
        await typed(pilot, "slash", "nonsense")
        await until(pilot, on_screen(pilot, "no rows match the filter"))
        await until(pilot, lambda: "#5 " not in message(pilot))
        await pilot.press(*"Ggpm", "up", "down", "apostrophe", *"eLn", "escape", *"tr", "enter", "escape")
        await until(pilot, lambda: rows.count() == 8)
        await until(pilot, lambda: "#5 " in message(pilot))
        assert rows.selected == 5

    play(scenario, calls, draws=True)


# The search.


def test_a_search_hides_nothing_and_keys_go_to_what_matches_to_findings_and_to_slow_calls(calls):
    async def scenario(pilot):
        rows = await opened(pilot)

        async def leads(key, *there):
            for n in there:
                await pilot.press(key)
                await until(pilot, lambda n=n: rows.selected == n, f"#{n}")

        await pilot.press("n")
        assert prompt(pilot).kind == "find", "it asks, because nothing was looked for"
        await pilot.press(*"warming", "enter")
        await until(pilot, lambda: rows.selected == 11)
        await pilot.press("g")
        await pilot.press("ctrl+f", *"kind:result", "enter")  # it replaces the last search
        await until(pilot, lambda: rows.selected == 6)
        await pilot.press("ctrl+f", "right", *" or id:9", "enter", "ctrl+f")
        assert prompt(pilot).text == "kind:result or id:9", "until a key moves the cursor"
        await pilot.press("ctrl+u", *"kind:result", "enter", "g", "n")
        await until(pilot, lambda: rows.selected == 6)
        await leads("n", 8, 10, 6)
        await until(pilot, on_screen(pilot, "the search continued from the other end"))
        await leads("N", 10, 8)
        assert not on_screen(pilot, "went on")()
        assert rows.count() == 8

        for pressed in ("slash", "ctrl+f", "n"):  # from another view they lead to the timeline
            await pilot.press("4")
            await until(pilot, lambda: not rows.is_on_screen)
            await pilot.press(pressed)
            await until(pilot, lambda: rows.is_on_screen)
            await pilot.press(*["escape"] if prompt(pilot).has_focus_within else [])
        assert rows.selected == 10

        await pilot.press("g")
        found = [n for n in numbers(pilot) if rows.session.findings.of(n)]
        assert found[0] == 5
        assert len(found) > 2
        await leads("e", found[1])
        await leads("E", found[0])
        await leads("L", 6, 10)

    play(scenario, calls)


def test_what_is_said_of_a_search_stays_while_rows_stream_in_and_are_followed(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, PINGS)

    async def scenario(pilot):
        rows = timeline(pilot)
        await until(pilot, lambda: rows.follow and rows.cursor == 99)
        await typed(pilot, "ctrl+f", "nowhere")
        await until(pilot, on_screen(pilot, "no row matches"))
        record(writer, '> {"id":100,"method":"ping"}')
        await until(pilot, lambda: rows.cursor == 100)
        await pilot.pause()
        assert on_screen(pilot, "no row matches")()
        await pilot.press("ctrl+f", "ctrl+u", *"id:7", "enter")
        await until(pilot, lambda: rows.selected == 12)
        assert on_screen(pilot, "the search continued from the other end")()
        finish(writer)

    play(scenario, tmp_path / "a.jsonl")


# Commands.

REFUSED = [
    (f"goto {'9' * 5000}", "goto needs the number of a frame"),
    ("fliter x", "no command 'fliter'; did you mean 'filter'?"),
    ("theme nrod", "no theme 'nrod'; did you mean 'nord'?"),
    ("filter metod:x", "unknown key 'metod' at column 1; did you mean 'method'?"),
    ("goto x", "goto needs the number of a frame, such as 17"),
]


def test_commands_are_done_and_what_cannot_be_done_says_why_and_stays_to_be_mended(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        for command, said in REFUSED:
            await typed(pilot, "colon", command)
            await until(pilot, lambda said=said: said in wrong(pilot), said)
            assert prompt(pilot).text == command
            await pilot.press("x")
            await until(pilot, lambda: not wrong(pilot))
            await pilot.press("escape")
            assert pilot.app.focused is rows

        for command, selected in (("10", 10), ("#7", 7), ("goto 12", 12), ("goto 3", 5), ("999999", 12)):
            rows.move_to(1)
            await typed(pilot, "colon", command)  # it goes to a frame, or to the one next to it
            await until(pilot, lambda selected=selected: rows.selected == selected, command)

        await typed(pilot, "colon", "filter kind:result")
        await until(pilot, lambda: numbers(pilot) == [6, 8, 10])
        assert on_screen(pilot, "/kind:result")()
        await typed(pilot, "colon", "find id:3")
        await until(pilot, lambda: rows.selected == 10)
        await typed(pilot, "colon", "filter")
        await until(pilot, lambda: rows.count() == 8)
        await typed(pilot, "colon", "save")
        await until(pilot, on_screen(pilot, "save #10"))
        await pilot.press("escape", "question_mark")
        await until(pilot, on_screen(pilot, "keys, commands and signs"))
        assert isinstance(pilot.app.screen, HelpScreen)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.focused is rows)
        await typed(pilot, "colon", "findings")
        await until(pilot, lambda: pilot.app.screen.query(FindingsRows))
        await typed(pilot, "colon", "theme nord")
        assert pilot.app.theme == "nord"
        await typed(pilot, "colon", "q")
        await until(pilot, lambda: not pilot.app.is_running)

    play(scenario, calls)


# Marks, times, views.


def test_marks_stand_in_the_row_and_are_gone_through_and_t_shows_the_time_since_the_row_above(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("apostrophe")
        await until(pilot, on_screen(pilot, "no row is marked; m marks one"))
        await pilot.press("down", "m", "down", "down", "m", "g")
        assert [line[1] for line in shown(rows)[:5]] == [" ", "*", " ", "*", " "]
        assert on_screen(pilot, "2 marked")()
        await pilot.press("apostrophe")
        assert rows.selected == 6
        await pilot.press("apostrophe")
        assert rows.selected == 8
        await pilot.press("apostrophe", "m")
        assert (rows.selected, rows.marked) == (6, {8})

        assert "1.500" in shown(rows)[1]
        assert on_screen(pilot, "since start")()
        await pilot.press("t")
        await until(pilot, lambda: "+1.499" in shown(rows)[1])
        assert "0.001" in shown(rows)[0]
        assert on_screen(pilot, "since above")()
        await typed(pilot, "slash", "kind:result")
        await until(pilot, lambda: numbers(pilot) == [6, 8, 10])
        await until(pilot, lambda: "+0.100" in shown(rows)[1])

    play(scenario, calls)


def test_t_shows_the_time_of_day_in_local_time_and_the_heading_its_date_and_zone(tmp_path):
    path = capture(tmp_path / "a.jsonl", "@1 > 1 ping\n@2 < 1 = {}\n@7205 > 2 ping\n@7206 < 2 = {}")  # from 16:00 UTC

    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("t", "t")
        await until(pilot, on_screen(pilot, "11-24 +06:00"))
        found = shown(rows)[:4]
        assert [" ".join(line.split()[1:2]) for line in found] == [
            "22:00:01.123", "22:00:02.123", "00:00:05.123", "00:00:06.123",
        ]  # fmt: skip
        assert ["── 2025-11-2" in line for line in found] == [True, False, True, False]
        await pilot.press("G")
        await until(pilot, lambda: " 2025-11-2" in message(pilot) and "+06:00" in message(pilot))
        await typed(pilot, "slash", "time:2025-11-25")
        await until(pilot, lambda: numbers(pilot) == [7, 8])
        await until(pilot, on_screen(pilot, "11-25 +06:00"))
        await pilot.press("escape", "t")
        await until(pilot, on_screen(pilot, "since start"))

    with zone("Asia/Dhaka"):
        play(scenario, path)


def test_the_row_after_which_clocks_show_the_same_hour_again_has_the_time_zone(tmp_path):
    text = "@1 > 1 ping\n@3601 < 1 = {}\n@3602 > 2 ping\n@3603 < 2 = {}"
    path = capture(tmp_path / "a.jsonl", text, wall=1_792_888_200 * 10**9)  # 2026-10-25 00:30 UTC

    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("t", "t")
        await until(pilot, on_screen(pilot, "10-25 +02:00"))
        found = shown(rows)[:3]
        assert [" ".join(line.split()[1:2]) for line in found] == ["02:30:01.000", "02:30:01.000", "02:30:02.000"]
        assert ["── 2026-10-25" in line for line in found] == [True, False, False]
        assert ["── +01:00" in line for line in found] == [False, True, False]
        await typed(pilot, "slash", "time:2:30")
        await until(pilot, lambda: numbers(pilot) == [5, 6, 7, 8, 9])

    with zone("Europe/Oslo"):
        play(scenario, path)


def test_the_heading_needs_sixty_columns(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        height = rows.size.height
        await resize(pilot, 61, 30)
        await until(pilot, on_screen(pilot, "  number     start    message"))
        await resize(pilot, 60, 30)
        await until(pilot, lambda: not on_screen(pilot, "number")())
        assert rows.size.height == height + 1
        await pilot.press("t")
        await until(pilot, on_screen(pilot, "times need 60 columns"))
        await resize(pilot, 120, 30)
        await until(pilot, on_screen(pilot, "since above"))
        await pilot.press("t")
        await until(pilot, on_screen(pilot, "times: time of day"))

    play(scenario, calls, size=(120, 30))


def test_a_name_that_all_rows_have_gives_way_to_what_tells_them_apart(tmp_path):
    params = f'"params":{{"name":"a_name_of_some_length","arguments":{{"x":"{"y" * 60}"}}}}'
    asks = [f'> {{"id":{n},"method":"tools/call",{params}}}\n' for n in (1, 2)]
    path = capture(tmp_path / "a.jsonl", "".join(asks))
    other = capture(tmp_path / "b.jsonl", asks[0] + '> 2 tools/call {"name":"b"}')

    async def scenario(pilot):
        rows = await opened(pilot)
        plain = "tools/call a_n…ngth" in shown(rows)[0]
        assert plain != ("tools/call a_name_of_some_length" in shown(rows)[0])
        found.append(plain)
        await typed(pilot, "slash", "name:a*")
        await until(pilot, lambda: "tools/call a_n…ngth" in shown(rows)[0])

    found = []
    for each in (path, other):
        play(scenario, each, size=(100, 30))
    assert found == [True, False]


def test_digits_and_clicks_show_the_views_which_have_their_own_place_and_lead_back(calls):
    async def scenario(pilot):
        rows = await opened(pilot)
        assert on_screen(pilot, "1/8")()
        for key in "2345":
            await pilot.press(key)
            await until(pilot, lambda: not rows.parent.parent.display)
            assert pilot.app.focused is not None
            assert pilot.app.focused is not rows
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen.query_one(ProblemsRows).has_focus)
        await pilot.press("5")
        await until(pilot, on_screen(pilot, "warming up"))
        await until(pilot, on_screen(pilot, "1/1"))
        await pilot.press("1")
        await until(pilot, lambda: pilot.app.focused is rows)
        await pilot.click(Status, offset=(28, 0))
        await until(pilot, lambda: pilot.app.screen.query_one(FindingsRows).has_focus)
        await pilot.press("down", "down")
        await until(pilot, lambda: " 3/" in lines(pilot.app)[-2])
        assert pilot.app.screen.query_one(FindingsRows).cursor == 2
        await pilot.click(Status, offset=(2, 0))
        await until(pilot, lambda: pilot.app.focused is rows)
        await until(pilot, on_screen(pilot, "1/8"))

        await typed(pilot, "slash", "method:ping")
        await until(pilot, lambda: numbers(pilot) == [9, 10])
        await pilot.press("5")
        pilot.app.focused.post_message(Jump(10))
        await until(pilot, lambda: pilot.app.focused is rows)
        assert (rows.selected, rows.count()) == (10, 2)
        await pilot.press("5")
        pilot.app.focused.post_message(Jump(6))
        await until(pilot, lambda: pilot.app.focused is rows and rows.count() == 8)
        assert rows.selected == 6
        assert on_screen(pilot, "the filter is removed, because it hid #6")()

    play(scenario, calls)


def test_a_request_that_waits_for_its_answer_tells_how_long(tmp_path):
    writer = begin(tmp_path / "a.jsonl", wall=time.time_ns())
    record(writer, '> {"id":1,"method":"ping"}')

    async def scenario(pilot):
        rows = timeline(pilot)
        await until(pilot, lambda: re.search(r"pending +\d\.\d s", shown(rows)[0]))
        first = shown(rows)[0].split()
        await until(pilot, lambda: shown(rows)[0].split() != first)
        finish(writer)
        await until(pilot, lambda: "server-exit" in shown(rows)[0])

    play(scenario, tmp_path / "a.jsonl", size=(120, 30))


def test_the_line_from_a_request_to_its_response_goes_with_the_cursor(tmp_path):
    path = capture(tmp_path / "a.jsonl", '> {"id":7,"method":"slow"}\n> {"id":8,"method":"x"}\n< {"id":7,"result":{}}')

    async def scenario(pilot):
        rows = await opened(pilot)
        ties = [[line[23] for line in shown(rows)[:3]]]
        for _ in range(2):
            await pilot.press("down")
            await pilot.pause()
            ties.append([line[23] for line in shown(rows)[:3]])
        assert ties == [["┌", "│", "└"], [" ", " ", " "], ["┌", "│", "└"]]

    play(scenario, path)


# Every view on every capture.

KEYS = ("down", "pagedown", "G", "enter", "home") if NIGHTLY else ("pagedown", "enter")
SIZES = ((120, 30), (40, 10), (80, 24))
VIEWS = ("12", "34", "51", "23", "45")
"""Each capture is tested with one of the sizes and one of the views, nightly with all of them."""


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_view_shows_every_golden_capture_and_takes_keys(path):
    async def scenario(pilot):
        await opened(pilot)
        turn = GOLDEN.index(path)
        for size in SIZES if NIGHTLY else (SIZES[turn % 3],):
            await resize(pilot, *size)
            for key in "12345" if NIGHTLY else VIEWS[turn % 5]:
                await pilot.press(key, *KEYS)
                assert {strip.cell_length for strip in strips(pilot.app)} <= {size[0]}
            await pilot.press("1")
        await until(pilot, lambda: pilot.app.focused is timeline(pilot))
        assert pilot.app.is_running

    play(scenario, path, draws=True)


def test_views_of_a_capture_that_is_deleted_or_cut_short_stay(tmp_path):
    path = capture(tmp_path / "a.jsonl", CALLS * 50)

    async def scenario(pilot):
        rows = await opened(pilot)
        os.truncate(path, 3000)
        await until(pilot, on_screen(pilot, "truncated or replaced"))
        os.unlink(path)
        for key in "2345":
            await pilot.press(key, "down", "G", "enter")
        await pilot.press("1")
        await typed(pilot, "slash", "ping kind:request")
        await until(pilot, lambda: rows.selection.progress == 1)
        await pilot.press("e", "n", "G", "g")
        assert pilot.app.is_running
        assert detail(pilot)

    play(scenario, path, draws=True)


def test_filters_and_searches_end_where_the_file_was_cut_short_before_it_was_read(tmp_path, monkeypatch):
    path = capture(tmp_path / "a.jsonl", PINGS * 20)
    monkeypatch.setattr("mcpspy.rules.judge.Judge.feed", lambda *_: iter(()))  # the fold yields nothing

    async def scenario(pilot):
        rows = timeline(pilot)
        await until(pilot, lambda: rows.count() == 2001)
        os.truncate(path, 3000)
        await until(pilot, on_screen(pilot, "truncated or replaced"))
        await typed(pilot, "ctrl+f", "id:99")
        await until(pilot, on_screen(pilot, "no row matches"))
        await typed(pilot, "slash", "status:ok")
        await until(pilot, on_screen(pilot, "no rows match the filter"))
        await pilot.press("escape", "G")
        await until(pilot, on_screen(pilot, "it was in the file before"))

    play(scenario, path)
