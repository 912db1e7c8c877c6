"""The view of the problems: what failed and why, and the rows that prove it."""

import pytest

from mcpspy.tui.views.problems import ProblemsRows
from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import lines, message, on_screen, opened, play, resize, sessions, shown, timeline, until

FAILING = """
= 2025-11-25
> 2 tools/call {"name":"read","arguments":{"path":"a"}}
! no such file: a
< 2 = {"content":[{"type":"text","text":"cannot read \\u001b[2J"}],"isError":true}
> 3 tools/call {"name":"read","arguments":{"path":"b"}}
< 3 = {"content":[{"type":"text","text":"cannot read \\u001b[2J"}],"isError":true}
> 4 tools/call {"name":"wait"}
< | warming up
> notifications/cancelled {"requestId":4,"reason":"timed out"}
"""
HEADLINE = "tools/call read failed 2 times: cannot read \\e[2J"


def problems(pilot):
    return pilot.app.screen.query_one(ProblemsRows)


def test_an_ended_session_opens_with_what_failed_and_why_and_enter_leads_to_the_rows(tmp_path):
    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 1)
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "w problems"))
        found = shown(problems(pilot))
        assert found[0] == f"▸ ✗ {HEADLINE}"
        assert found[1] == "      server, known: the tool itself reported this error (#10)"
        assert found[2] == "      likely: the server wrote to stderr meanwhile: no such file: a (#9)"
        assert sum(line.startswith("▸ ✗ ") for line in found) == 3
        assert "do: Look at the code of the tool" in "\n".join(lines(pilot.app))

        await pilot.press("enter", "down")
        assert [line.split()[0] for line in shown(problems(pilot))[3:7]] == ["#8", "#9", "#10", "#11"]
        await pilot.press(*["down"] * 4, "enter")
        assert (timeline(pilot).selected, timeline(pilot).has_focus) == (10, True)
        await pilot.press("escape")
        assert problems(pilot).has_focus, "back goes to the first view"
        await pilot.press("left")
        assert (problems(pilot).cursor, shown(problems(pilot))[0]) == (0, f"▸ ✗ {HEADLINE}")
        await pilot.press("e")
        await until(pilot, lambda: timeline(pilot).selected == 12, "the next after the selected row")
        await pilot.press("escape", "+", "-", "down", "down", "enter")
        assert timeline(pilot).selected == 9, "a cause leads to the row that shows it"
        await pilot.press("escape", "escape")
        await until(pilot, on_screen(pilot, "1 session"))

    play(scenario, tmp_path, capture(tmp_path / "a.jsonl", FAILING))


@pytest.mark.parametrize("text", ["= 2025-11-25", ""])
def test_a_session_without_problems_opens_in_the_timeline(tmp_path, text):
    async def scenario(pilot):
        await until(pilot, lambda: timeline(pilot).session.complete)
        await pilot.pause()
        assert timeline(pilot).has_focus
        await pilot.press("w")
        assert shown(problems(pilot))[0].startswith(" no request failed")

    play(scenario, capture(tmp_path / "a.jsonl", text))


def test_problems_of_a_live_session_come_while_one_looks_and_the_selected_line_stays(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, FAILING)

    async def scenario(pilot):
        assert timeline(pilot).has_focus
        await pilot.press("w")
        await until(pilot, on_screen(pilot, HEADLINE))
        await pilot.press("down")
        writer.frame(1, 10**9, b'{"jsonrpc":"2.0","id":"p","method":"tools/list"}', more=False, cut=False)
        error = b'{"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"no tools"}}'
        writer.frame(2, 2 * 10**9, error, more=False, cut=False)
        await until(pilot, on_screen(pilot, "The tools could not be listed"))
        assert problems(pilot).selected.cause.text == "the tool itself reported this error"
        finish(writer)
        await until(pilot, on_screen(pilot, "ended"))
        await pilot.pause()
        assert problems(pilot).has_focus

    play(scenario, tmp_path / "a.jsonl")


def test_a_merge_has_the_problems_of_all_sessions_and_leads_to_the_row_of_each(tmp_path):
    for name in "ab":
        capture(tmp_path / f"{name}.jsonl", FAILING, name=f"server-{name}")

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "m")
        rows = await opened(pilot)
        await pilot.press("w")
        await until(pilot, on_screen(pilot, f"✗ server-b: {HEADLINE}"))
        text = shown(problems(pilot))
        assert any(f"✗ server-a: {HEADLINE}" in line for line in text)
        problems(pilot).move_to(next(n for n, line in enumerate(text) if "server-b: tools/call wait" in line))
        await pilot.press("enter")
        session, place = rows.session.of(rows.place())
        assert (session.header.name, session.line(place).n) == ("server-b", 13), "the row that failed"

    play(scenario, tmp_path)


@pytest.mark.parametrize("width", [160, 40, 12])
def test_rows_fit_every_width(width):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "w"))
        await pilot.press("w", "+")
        await resize(pilot, width, 12)
        rows = problems(pilot)
        assert {rows.render_line(y).cell_length for y in range(rows.size.height)} == {
            rows.scrollable_content_region.width
        }

    play(scenario, CAPTURES / "field-stdio.jsonl")


def test_failures_and_findings_are_visited_by_keys_and_an_answer_shows_what_belongs_to_its_call(tmp_path):
    async def scenario(pilot):
        rows = await opened(pilot)
        visited = []
        for _ in range(4):
            await pilot.press("e")
            await until(pilot, lambda: rows.hunt is None)
            visited.append(rows.selected)
        assert visited == [10, 12, 13, 14]
        await pilot.press("E", "E", "E")
        await until(pilot, lambda: "#10 tools/call" in message(pilot))
        assert "stderr during the call\n  #9 no such file: a" in message(pilot)
        assert "tool-error · answers #8" in message(pilot)

    play(scenario, capture(tmp_path / "a.jsonl", FAILING))
