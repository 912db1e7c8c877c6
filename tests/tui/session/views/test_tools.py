"""The view of tools: their cost and their results. Each row jumps to its frame."""

from textual.widgets import Static

from mcpspy import overview
from mcpspy.tui.views.tools import ToolsRows, ToolsView
from tests.browse.test_refusals import BEGIN
from tests.browse.test_refusals import listed as listing
from tests.test_overview import HANDSHAKE, called, listed
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import opened, play, resize, shown, until
from tests.tui.views import view

SAID = HANDSHAKE + listed(1, '{"name":"forecast"}', '{"name":"idle"}') + called(2, "forecast", seconds=0.25)
SAID += called(3, "forecast", '{"isError":true}', 0.5) + called(4, "missing", seconds=0.001)


def words(app):
    """Return the rows, with runs of blanks joined."""
    return [" ".join(line.split()) for line in shown(app.rows) if line]


def test_the_cost_of_all_and_each_tool_have_a_row_that_leads_to_its_frame(tmp_path):
    async def scenario(pilot):
        assert words(pilot.app)[:3] == [
            "tools 2 tools, 34 B, ~8 tokens of a model's context; 1 never called",
            "tool definition context calls errors found result p50 p95 max largest",
            "forecast 19 B 4 2 1 6 3 250.0 ms 500.0 ms 500.0 ms 4",
        ]
        assert [line.split()[:5] for line in words(pilot.app)[-2:]] == [
            ["idle", "15", "B", "3", "never"],
            ["missing", "not", "listed", "1", "2"],
        ]
        for _ in range(pilot.app.rows.count()):
            await pilot.press("enter", "down")

    app = view(ToolsView, capture(tmp_path / "a.jsonl", SAID), scenario)
    assert app.jumps == [8, 8, 8, 13], "the listing where there is one, else the first call"


def test_tools_beyond_the_bound_are_in_the_cost_and_share_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(overview, "TOOLS", 1)

    async def scenario(pilot):
        rows = words(pilot.app)
        assert rows[0] == "tools 3 tools, 50 B, ~12 tokens of a model's context; 1 of the first 1 never called"
        assert [row.split()[:4] for row in rows if row.startswith("other")] == [["other", "tools", "31", "B"]]

    said = HANDSHAKE + listed(1, '{"name":"forecast"}', '{"name":"idle"}', '{"name":"third"}') + called(2, "idle")
    view(ToolsView, capture(tmp_path / "a.jsonl", said), scenario)


LAST = {
    120: "largest", 92: "max", 82: "p95", 72: "p50", 61: "result", 53: "found", 32: "context", 30: "definition",
    20: "tool",
}  # fmt: skip
"""The last column that fits into a width."""


def test_columns_that_do_not_fit_are_left_out_from_the_end(tmp_path):
    async def scenario(pilot):
        for width, last in LAST.items():
            await resize(pilot, width, 24)
            heading = next(line for line in words(pilot.app) if line.split()[0] == "tool")
            assert heading.split()[-1] == last, width

    view(ToolsView, capture(tmp_path / "a.jsonl", SAID), scenario)


def test_the_row_that_is_looked_at_stays_where_it_is_while_more_is_announced(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, called(1, "first") + "".join(called(2, f"t{n}") for n in range(40)))

    async def scenario(pilot):
        rows = pilot.app.rows
        await pilot.press("G", "up", "up")
        before = shown(rows)[rows.cursor - rows.scroll_offset.y].split()[0]
        place = rows.cursor - rows.scroll_offset.y
        for line in (line.strip() for line in listed(3, '{"name":"new"}').split("\n") if line.strip()):
            channel = 1 if line.startswith(">") else 2
            writer.frame(channel, 9 * 10**9, line[2:].encode(), more=False, cut=False)
        pilot.app.grow()
        await pilot.pause()
        assert "tools 1 tool, 14 B, ~3 tokens" in " ".join(rows_text(rows, 0))
        assert shown(rows)[place].split()[0] == before == "t37"
        assert rows.cursor - rows.scroll_offset.y == place
        await pilot.press("g")
        assert shown(rows)[0].startswith("tools")
        finish(writer)

    view(ToolsView, tmp_path / "a.jsonl", scenario, (80, 20))


def rows_text(rows, place):
    return "".join(text for text, _ in rows.cells(place, 80)).split()


def test_before_anything_is_listed_there_is_only_the_heading(tmp_path):
    writer = begin(tmp_path / "a.jsonl")

    async def scenario(pilot):
        await pilot.press("enter", "G", "enter")
        assert [line.split()[0] for line in words(pilot.app)] == ["tool"]
        finish(writer)

    assert view(ToolsView, tmp_path / "a.jsonl", scenario).jumps == []


def explained(app):
    return app.query_one("#explanation", Static)


def test_p_01_what_chosen_clients_refuse_is_marked_and_explained(tmp_path):
    """P-01: if no client is chosen, none of it is shown."""
    names = ("a.b", "fine", *(f"t{n}" for n in range(127)))
    path = capture(tmp_path / "a.jsonl", BEGIN + listing(1, *names) + listing(2, *names))

    async def scenario(pilot):
        app = pilot.app
        assert not explained(app).display
        assert not [line for line in words(app) if line.startswith(("limits of", "✗"))]
        app.session.choose(["openai-api"])
        app.grow()
        await pilot.pause()
        assert "limits of openai-api: 1 of 129 tools break one, and the list as a whole" in words(app)
        marks = [line[:6] for line in shown(app.rows) if line.startswith(("✗ ", "  "))]
        assert marks[:3] == ["✗ a.b ", "  fine", "  t0  "]
        rows = app.rows
        place = next(n for n in range(rows.count()) if "a.b" in rows_text(rows, n))
        rows.move_to(place)
        await pilot.pause()
        assert explained(app).display
        text = str(explained(app).content)
        assert text.startswith('✗ tool "a.b"; expected a tool name that matches ^[a-zA-Z0-9_-]{1,64}$, else the whole')
        assert "\n  fix (server): Rename the tool" in text
        assert "\n  meanwhile (client): Replace other characters" in text
        await pilot.press("enter", "down")
        assert "no tool exceeds a limit of the chosen clients" in str(explained(app).content)
        rows.move_to(next(n for n in range(rows.count()) if "limits" in rows_text(rows, n)))
        await pilot.press("enter")
        assert "the server lists 129 tools" in str(explained(app).content)
        assert app.jumps == [9, 9]
        app.session.choose(())
        app.grow()
        await pilot.pause()
        assert not explained(app).display
        assert not [line for line in words(app) if line.startswith(("limits of", "✗"))]

    view(ToolsView, path, scenario)


def test_tools_are_sorted_by_each_column_and_the_selected_row_stays_selected(tmp_path):
    orders = {
        "tool↑": ["forecast", "idle", "missing"],
        "↓calls": ["forecast", "missing", "idle"],
        "errors↓": ["forecast", "idle", "missing"],
        "max↓": ["forecast", "missing", "idle"],
        "context↓": ["forecast", "idle", "missing"],
    }

    async def scenario(pilot):
        await opened(pilot)
        await pilot.press("3")
        rows = pilot.app.screen.query_one(ToolsRows)
        for heading, order in orders.items():
            await pilot.press("S")
            await until(pilot, lambda heading=heading: any(heading in line for line in shown(rows)), heading)
            names = [line.split()[0] for line in shown(rows) if line]
            assert names[-3:] == order, heading
            assert rows.cursor == 0
        await pilot.press("S", "end")
        await until(pilot, lambda: not any("context↓" in line for line in shown(rows)))

    play(scenario, capture(tmp_path / "a.jsonl", SAID))


def test_a_long_name_of_a_tool_is_shortened_in_the_middle(tmp_path):
    names = ("mcp__weather_server__get_daily_forecast", "mcp__weather_server__get_daily_history")
    said = HANDSHAKE + listed(1, *(f'{{"name":"{name}"}}' for name in names))

    async def scenario(pilot):
        await resize(pilot, 60, 20)
        assert [line.split()[0] for line in words(pilot.app)[-2:]] == ["mcp__weat…_forecast", "mcp__weat…y_history"]

    view(ToolsView, capture(tmp_path / "a.jsonl", said), scenario)
