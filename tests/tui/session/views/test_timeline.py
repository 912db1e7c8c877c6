"""The timeline of a session: it grows, follows the end, and keeps its position."""

import os
from itertools import repeat

from textual.events import MouseScrollUp

from tests.test_timeline import EVERY_OUTCOME
from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import (
    descriptors,
    detail,
    lines,
    message,
    on_screen,
    opened,
    pane,
    play,
    resize,
    sessions,
    shown,
    strips,
    timeline,
    title,
    until,
)

PINGS = "".join(f'> {{"id":{n},"method":"ping"}}\n' for n in range(100))


def said(writer, first, count):
    """Write `count` more pings."""
    for n in range(first, first + count):
        writer.frame(1, n * 1_000_000, b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n, more=False, cut=False)


def test_a_row_says_what_it_is_and_how_it_went(tmp_path):
    path = capture(
        tmp_path / "a.jsonl",
        """
        > {"id":1,"method":"tools/call","params":{"name":"forecast"}}
        @1.5 < {"id":1,"result":{"isError":true}}
        > {"method":"notifications/initialized"}
        ! warming up
        < | not JSON
        < {"id":"x","result":{}}
        > [{"id":2,"method":"a"},{"id":3,"method":"b"}]
        > {"id":4,"method":"ping"}
        """,
    )

    async def scenario(pilot):
        rows = await opened(pilot)
        assert [line[:1] for line in shown(rows)][:4] == ["✗", "✗", "✗", " "]
        assert [" ".join(line.lstrip("✗!· ").split()) for line in shown(rows)][:9] == [
            "#5 0.001 ┌→ tools/call forecast id 1 59 B",
            "#6 1.500 └← tool-error isError=true tools/call forecast id 1 1.50 s 34 B",
            "#7 1.501 → notifications/initialized 38 B",
            "#8 1.502 ← stderr: warming up",
            "#9 1.503 ← invalid: not JSON (error at character 0): not JSON",
            '#10 1.504 ← (no request seen) id "x" 22 B',
            "#11 1.505 → batch: 2 messages: a, b",
            "#12 1.506 → ping id 4 server-exit 24 B",
            "#13 10.000 · end: the server exited with code 0",
        ]
        assert title(pilot.app).startswith("weather · stdio · ended · 9 rows · 3 problems · found: ✗ ")

    play(scenario, path, size=(160, 30))


def test_rows_appear_as_they_are_said_and_the_newest_is_followed(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")

    async def scenario(pilot):
        rows = timeline(pilot)
        assert "weather · stdio · live" in title(pilot.app)
        assert rows.follow
        said(writer, 0, 3)
        await until(pilot, lambda: rows.cursor == 2)
        await until(pilot, on_screen(pilot, "3 rows · following"))
        await until(pilot, lambda: "#7 ping" in message(pilot))
        said(writer, 3, 200)
        await until(pilot, lambda: rows.cursor == 202)
        assert "#207 " in shown(rows)[-1]
        await until(pilot, lambda: "pending" in shown(rows)[-1])
        writer.frame(2, 300_000_000, b'{"id":202,"result":{}}', more=False, cut=False)
        await until(pilot, lambda: rows.cursor == 203)
        await until(pilot, lambda: "pending" not in shown(rows)[-2])
        finish(writer)
        await until(pilot, on_screen(pilot, "weather · stdio · ended · 205 rows"))
        assert ["server-exit" in line for line in shown(rows)[-4:]] == [True, False, False, False]

    play(scenario, tmp_path / "a.jsonl")


def test_a_response_that_comes_is_told_of_the_request_that_is_looked_at(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")

    async def scenario(pilot):
        said(writer, 1, 1)
        await until(pilot, lambda: "pending" in message(pilot))
        await pilot.press("f")
        writer.frame(2, 11_000_000, b'{"id":1,"result":{}}', more=False, cut=False)
        await until(pilot, lambda: "ok · answered by #6 · 10.0 ms" in message(pilot))
        assert timeline(pilot).cursor == 0
        finish(writer)

    play(scenario, tmp_path / "a.jsonl")


def numbers(rows):
    """Return the numbers of the rows on the screen. The mark of a finding may appear before a number later."""
    return [next(word for word in line.split() if word.startswith("#")) for line in shown(rows)]


def test_what_is_looked_at_stays_where_it_is_while_the_session_grows_until_a_key_follows_again(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, PINGS)

    async def scenario(pilot):
        rows = timeline(pilot)
        for turn, pressed in enumerate(("up", "pageup", "f", "click", "g", "scroll")):
            count = 100 + 55 * turn
            await until(pilot, lambda n=count: rows.follow and rows.cursor == n - 1 and rows.scroll_offset.y > 0)
            before = rows.scroll_offset.y
            if pressed == "click":
                await pilot.click("TimelineRows", offset=(3, 2))
            elif pressed == "scroll":
                rows.post_message(MouseScrollUp(rows, 1, 1, 0, 0, 0, shift=False, meta=False, ctrl=False))
                await until(pilot, lambda before=before: rows.scroll_offset.y < before)
            else:
                await pilot.press(pressed)
            assert not rows.follow, pressed
            await until(pilot, lambda: "following" not in title(pilot.app))
            seen = numbers(rows), rows.cursor, rows.scroll_offset.y
            said(writer, count, 50)
            await until(pilot, on_screen(pilot, f"{count + 50} rows"))
            assert (numbers(rows), rows.cursor, rows.scroll_offset.y) == seen, pressed
            await pilot.press("fG"[turn % 2])
            assert rows.follow
            said(writer, count + 50, 5)
        finish(writer)

    play(scenario, tmp_path / "a.jsonl")


SLOW = '> {"id":7,"method":"slow"}\n' + PINGS.replace('"id":7,', "") + '< {"id":7,"result":{}}'


def test_keys_and_clicks_select_rows_and_focus_the_message_of_a_session_that_is_over(tmp_path):
    async def scenario(pilot):
        rows = await opened(pilot)
        assert (rows.cursor, rows.follow) == (0, False), "it opens at its beginning"
        await pilot.press("p")
        await until(pilot, lambda: "answers #5" in message(pilot))
        assert rows.cursor == 101
        await pilot.press("p")
        assert rows.cursor == 0
        assert rows.mark(101) == "timeline--partner"
        await pilot.press("down", "p")
        assert rows.cursor == 1, "it has none"
        await pilot.press("G")
        assert (rows.cursor, rows.follow) == (102, False)

        await pilot.press("g")
        await pilot.click("TimelineRows", offset=(10, 4))
        await until(pilot, lambda: "#9 ping" in message(pilot))
        assert rows.cursor == 4
        await pilot.click("TimelineRows", offset=(10, 4))
        await until(pilot, lambda: pilot.app.focused is pane(pilot))
        await pilot.press("escape")
        for there, back in (("enter", "escape"), ("tab", "tab"), ("tab", "shift+tab")):
            await pilot.press(there)
            assert pilot.app.focused is pane(pilot)
            await pilot.press(back)
            assert pilot.app.focused is rows
        for key in ("enter", "j", "j"):  # keys right after Enter go to the message
            pilot.app.simulate_key(key)
        await until(pilot, lambda: pane(pilot).cursor == 2)
        assert rows.cursor == 4
        await pilot.press("escape", "escape")
        await until(pilot, on_screen(pilot, "w problems"))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "1 session"))
        assert pilot.app.focused is sessions(pilot)

    play(scenario, capture(tmp_path / "a.jsonl", SLOW))


def test_the_message_is_shown_in_four_forms_copied_saved_and_shown_with_its_partner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}')

    async def scenario(pilot):
        rows = await opened(pilot)
        assert '\n  "id": 1,\n' in message(pilot)
        await pilot.press("r")
        await until(pilot, lambda: message(pilot).endswith('{"id":1,"method":"ping"}'))
        await pilot.press("r")
        await until(pilot, lambda: '"ping"}' in message(pilot) and "00000000  7b 22" in message(pilot))
        await pilot.press("r")
        await until(pilot, lambda: message(pilot).endswith("no params"))
        await pilot.press("y", "j")
        await until(pilot, lambda: pilot.app.clipboard == '{"id":1,"method":"ping"}')
        await pilot.press("down", "s")
        await until(pilot, on_screen(pilot, "save #6, 20 B, as"))
        await pilot.press("enter")
        assert (tmp_path / "frame-6.json").read_bytes() == b'{"id":1,"result":{}}'
        await pilot.press("b")
        first, second = detail(pilot).panes
        await until(pilot, lambda: shown(first)[0].startswith("#5 ping") and shown(second)[0].startswith("#6 ping"))
        assert pilot.app.focused is rows
        await pilot.press("b")
        await until(pilot, lambda: not second.display)

    play(scenario, path)


def test_the_message_stands_below_or_beside_the_timeline(tmp_path):
    path = capture(tmp_path / "a.jsonl", PINGS)

    async def scenario(pilot):
        rows = await opened(pilot)
        for size in ((100, 30), (160, 30), (40, 10), (20, 4), (1, 1), (100, 30)):
            await resize(pilot, *size)
            wide = size[0] >= 130
            await until(
                pilot, lambda size=size, wide=wide: (detail(pilot).region.y < rows.region.y) == wide or size[1] < 10
            )
            for strip in strips(pilot.app):
                assert strip.cell_length == size[0]
        assert shown(rows)[0][1:].startswith("      #5 ")

    play(scenario, path, draws=True)


def test_a_session_that_is_deleted_while_it_is_open_says_so_and_stays(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, PINGS)

    async def scenario(pilot):
        rows = timeline(pilot)
        await until(pilot, lambda: rows.count() == 100)
        os.unlink(tmp_path / "a.jsonl")
        await until(pilot, on_screen(pilot, "the file was deleted"))
        said(writer, 100, 3)
        await until(pilot, lambda: rows.count() == 103)
        await pilot.press("g")
        await until(pilot, lambda: "#5 ping" in message(pilot))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "No captures"))
        finish(writer)

    play(scenario, tmp_path / "a.jsonl", draws=True)


def test_a_session_that_is_cut_short_while_it_is_open_says_so_and_stays(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, PINGS)

    async def scenario(pilot):
        rows = timeline(pilot)
        await until(pilot, lambda: rows.count() == 100)
        os.truncate(tmp_path / "a.jsonl", 500)
        await until(pilot, on_screen(pilot, "the file was truncated or replaced"))
        for pressed in ("g", "G", "r", "pageup", "p"):
            await pilot.press(pressed)
        assert rows.count() == 100
        finish(writer)

    play(scenario, tmp_path / "a.jsonl", draws=True)


def test_a_session_without_a_row_yet_takes_every_key(tmp_path):
    writer = begin(tmp_path / "a.jsonl")

    async def scenario(pilot):
        for pressed in ("up", "down", "G", "g", "p", "r", "f", "f", "enter", "tab", "pagedown"):
            await pilot.press(pressed)
        assert title(pilot.app).startswith("weather · stdio · live · 0 rows")
        finish(writer)
        await until(pilot, on_screen(pilot, "1 row"))
        await pilot.press("escape", "escape")
        await until(pilot, on_screen(pilot, "1 session"))

    play(scenario, tmp_path / "a.jsonl", draws=True)


def test_a_session_that_is_read_says_how_far_it_is_and_is_read_no_longer_when_it_is_left(tmp_path):
    path = capture(tmp_path / "a.jsonl", PINGS * 60)

    async def scenario(pilot):
        session = timeline(pilot).session
        assert not session.complete
        await until(pilot, on_screen(pilot, "· reading "))
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "1 session"))
        await until(pilot, lambda: not descriptors(path))
        await pilot.press("enter")
        await opened(pilot)
        await until(pilot, lambda: "reading" not in title(pilot.app))
        assert "6,001 rows" in title(pilot.app)

    play(scenario, path)


def test_a_row_is_as_wide_as_the_view_whatever_the_width(tmp_path):
    path = capture(
        tmp_path / "a.jsonl", EVERY_OUTCOME + '> {"id":"日本語日本語日本語","method":"日本語","params":{}}\n' * 2
    )

    async def scenario(pilot):
        rows = await opened(pilot)
        for width in (200, 60, 12):
            await resize(pilot, width, 40)
            for y in range(rows.scrollable_content_region.height):
                assert rows.render_line(y).cell_length == rows.scrollable_content_region.width

    play(scenario, path)


def test_a_golden_capture_reads_like_its_timeline():
    path = CAPTURES / "field-stdio.jsonl"

    async def scenario(pilot):
        rows = await opened(pilot)
        for place in range(rows.count()):
            line = rows.session.line(place)
            text = "".join(cell for cell, _ in rows.cells(place, 200))
            assert text.lstrip("✗!· ").split()[0] == f"#{line.n}"
            assert (line.method or "")[:30] in text
            assert (line.name or "")[:30] in text
        assert "4 problems" in lines(pilot.app)[0]

    play(scenario, path)


SOUGHT = """
    > {"id":1,"method":"tools/call","params":{"name":"a"}}
    < {"id":1,"result":{"content":[{"type":"text","text":"a needle\\nb"}],"_meta":{"x":{"y":"Needle"}}}}
    > {"id":2,"method":"tools/call","params":{"name":"b"}}
    < {"id":2,"result":{"content":[{"type":"text","text":"%sneedle"}]}}
    > {"id":3,"method":"ping"}
""" % ("line\\n" * 400)  # fmt: skip


def place_in(pilot, row, text):
    """Return a condition: the row is selected, and a place with the text in its message is visible and highlighted."""
    rows, found = timeline(pilot), detail(pilot).panes[0]

    def there():
        at = found.cursor
        marked = [piece for piece, kind in found.document.pieces(at) if kind == "match"] if found.count() else []
        return rows.selected == row and marked == [text] and 0 <= at - found.scroll_offset.y < found.size.height

    return there


def test_a_search_goes_through_the_places_of_a_message_and_then_to_the_next_row(tmp_path):
    path = capture(tmp_path / "a.jsonl", SOUGHT)

    async def scenario(pilot):
        rows = await opened(pilot)

        def place(row, text):
            return place_in(pilot, row, text)

        await pilot.press("ctrl+f", *"needle", "enter")
        forwards = [(6, "needle"), (6, "Needle"), (8, "needle"), (6, "needle")]
        for where in forwards:
            await until(pilot, place(*where), where)
            await pilot.press("n")
        await until(pilot, place(6, "Needle"))
        for where in ((6, "needle"), (8, "needle"), (6, "Needle")):
            await pilot.press("N")
            await until(pilot, place(*where), where)
        await pilot.press("e")  # other searches highlight nothing
        await until(pilot, lambda: rows.selected != 6)
        await pilot.press("down", "G", "slash", *"Needle", "enter")
        await until(pilot, place(6, "Needle"))
        await pilot.press("ctrl+f", "ctrl+u", *"kind:result", "enter", "n")
        await until(pilot, lambda: rows.selected == 6 and rows.hunt is None)

    play(scenario, path)


def test_a_search_begins_in_the_selected_message(tmp_path):
    path = capture(tmp_path / "a.jsonl", SOUGHT)

    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("g", "down")
        for _ in range(2):  # also again, after another place was found
            await pilot.press("ctrl+f", *"needle", "enter")
            await until(pilot, place_in(pilot, 6, "needle"))
            await pilot.press("n")
            await until(pilot, place_in(pilot, 6, "Needle"))
        await pilot.press("ctrl+f", *"kind:result", "enter")  # without a text there is nothing to show in this row
        await until(pilot, lambda: rows.selected == 8)
        await pilot.press("ctrl+f", *"ping", "enter")
        await until(pilot, place_in(pilot, 9, "ping"))
        await pilot.press("slash", *"needle", "enter", "n")  # the text of a filter is what is searched for then
        await until(pilot, place_in(pilot, 6, "Needle"))
        await pilot.press("escape", "ctrl+f", *"jsonrpc", "enter")
        await until(pilot, on_screen(pilot, "no row matches"))
        await pilot.press("ctrl+f", *"isError or result", "enter")
        await until(pilot, lambda: rows.selected == 8)
        await until(pilot, on_screen(pilot, "the match is not in this form of the message; r shows others"))

    play(scenario, path)


def test_a_search_through_megabytes_ends(tmp_path):
    raw = b'{"id":1,"result":{"content":[{"type":"text","text":"%sneedle"}]}}' % (b"a line of a text\\n" * 100_000)
    writer = begin(tmp_path / "a.jsonl")
    record(writer, '> 1 tools/call {"name":"a"}')
    for at in range(0, len(raw), 65536):
        writer.frame(2, 2_000_000, raw[at : at + 65536], more=at + 65536 < len(raw), cut=False)
    finish(writer)

    async def scenario(pilot):
        rows = await opened(pilot)
        await pilot.press("g", "ctrl+f", *"needle", "enter")
        await until(pilot, place_in(pilot, rows.session.index.rows[1], "needle"))
        await pilot.press("ctrl+f", *"no such text", "enter")
        await until(pilot, on_screen(pilot, "no row matches"))

    play(scenario, tmp_path / "a.jsonl")


def test_escape_stops_a_search_through_a_message(tmp_path, monkeypatch):
    async def scenario(pilot):
        rows = await opened(pilot)
        monkeypatch.setattr("mcpspy.tui.message.document.Document.search", lambda *_: repeat(None))
        await pilot.press("g", "down", "ctrl+f", *"needle", "enter")
        await until(pilot, on_screen(pilot, "looking"))
        await pilot.press("escape")
        await until(pilot, lambda: not on_screen(pilot, "looking")())
        assert rows.selected == 6

    play(scenario, capture(tmp_path / "a.jsonl", SOUGHT))
