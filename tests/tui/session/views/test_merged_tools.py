"""The view of the tools of several sessions."""

import pytest
from rich.cells import cell_len

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.views.tools import MergedToolsView
from tests.test_overview import called, listed
from tests.test_text import unsafe
from tests.tui.model import test_merged
from tests.tui.screen import on_screen, opened, play, sessions, shown, timeline, until
from tests.tui.views import HOSTILE

SAME = '{"name":"a","description":"Does it.","inputSchema":{}}'
ONE = listed(1, SAME, '{"name":"b"}', '{"name":"d"}') + called(2, "a") + called(3, "c", '{"isError":true}')
TWO = listed(1, SAME, SAME.replace('"a"', '"e"'), '{"name":"b"}')


def words(rows):
    return [" ".join(line.split()) for line in shown(rows) if line]


def test_all_tools_have_a_row_that_says_which_are_there_twice(tmp_path):
    paths = [test_merged.capture(tmp_path / f"{name}.jsonl", 0, text) for name, text in (("one", ONE), ("two", TWO))]

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "m")
        await opened(pilot)
        await until(pilot, lambda: timeline(pilot).count() == 10)
        await pilot.press("3")
        await until(pilot, on_screen(pilot, "6 tools of 2 servers"))
        rows = pilot.app.screen.query_one(MergedToolsView)
        lines = words(rows)
        assert (
            lines[0]
            == "6 tools of 2 servers, ~49 tokens of a model's context; 5 never called; 5 also on another server"
        )
        order = [line.split()[0] for line in lines[2:]]
        assert sorted(order) == ["one"] * 4 + ["two"] * 3
        assert {line for line in lines[2:] if line.startswith("one")} == {
            "one a 13 1 3 the same in two",
            "one b 3 never same name in two",
            "one d 3 never",
            "one c - 1 1 4",
        }
        place = next(n for n, line in enumerate(lines) if line.startswith("one c")) + 1
        await pilot.press("enter", *["down"] * place, "enter")
        await until(pilot, lambda: timeline(pilot).has_focus)
        assert timeline(pilot).session.line(timeline(pilot).place()).name == "c"

    play(scenario, *paths)


@pytest.mark.parametrize("width", [0, 1, 20, 50, 80, 120, 200])
def test_hostile_names_are_shown_harmless_at_every_width(tmp_path, width):
    names = [text.replace("\x1b", "\\u001b").replace("\x07", "") for text in (*HOSTILE, "\\ud800")]
    text = listed(1, *(f'{{"name":"{name}"}}' for name in names))
    paths = [test_merged.capture(tmp_path / f"{n}.jsonl", 0, text) for n in range(2)]
    merged = test_merged.grown(Merged([OpenCapture(str(path)) for path in paths]))
    try:
        rows = MergedToolsView(merged)
        assert rows.count() == 3 + 2 * len(names)
        for place in range(rows.count()):
            row = "".join(text for text, _ in rows.cells(place, width))
            assert cell_len(row) <= max(width, 50)
            assert not unsafe(row)
    finally:
        merged.close()
