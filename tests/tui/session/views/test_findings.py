"""The view of findings: it folds, jumps to frames, explains rules, and keeps its position."""

from textual.widgets import Static

from mcpspy.tui.views.findings import FindingsView
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import shown
from tests.tui.views import view

WRONG = """
< | not JSON
> {"jsonrpc":"2.0","id":1,"method":"peer/unknown"}
< {"jsonrpc":"2.0","id":1,"result":{}}
< {"jsonrpc":"2.0","id":7,"result":{}}
< | neither
"""


def explanation(app):
    return str(app.query_one("#explanation", Static).content)


def words(rows):
    """Return the lines of the list, with runs of blanks joined."""
    return [" ".join(line.split()) for line in shown(rows) if line]


def test_rules_are_listed_with_their_counts_and_explained_and_unfold_to_frames(tmp_path):
    async def scenario(pilot):
        rows = pilot.app.rows
        assert words(rows)[0].startswith("▸ ✗ 2 server framing/not-json ")
        assert explanation(pilot.app).startswith("framing/not-json · error · server\n")
        assert "\nsee https://" in explanation(pilot.app)
        folded = rows.count()
        await pilot.press("enter")
        assert words(rows)[0].startswith("▾ ✗ 2 server framing/not-json ")
        assert [line.split()[0] for line in words(rows)[1:3]] == ["#5", "#9"]
        await pilot.press("down")
        assert explanation(pilot.app).startswith("#5: ")
        await pilot.press("enter", "down", "enter", "left")
        assert (rows.count(), rows.cursor) == (folded, 0)
        await pilot.press("right", "plus")
        assert rows.count() == folded + sum(pilot.app.session.found.values())
        await pilot.press("minus")
        assert rows.count() == folded

    app = view(FindingsView, capture(tmp_path / "a.jsonl", WRONG), scenario, (140, 40))
    assert app.jumps == [5, 9]


def test_a_finding_about_a_frame_of_mcpspy_itself_is_shown(tmp_path):
    """It once ended the application: the rules know what the peers can do, but not what mcpspy can."""
    writer = begin(tmp_path / "a.jsonl")
    writer.frame(2, 1, b"\xff", more=False, cut=False, rest={"from": "mcpspy"})
    finish(writer)

    async def scenario(pilot):
        assert words(pilot.app.rows)[0].startswith("▸ ✗ 1 mcpspy ")
        await pilot.press("enter", "down")
        assert "meanwhile (peers)" in explanation(pilot.app)

    view(FindingsView, tmp_path / "a.jsonl", scenario)


def test_the_line_that_is_looked_at_stays_where_it_is_while_more_is_found(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, WRONG)

    async def scenario(pilot):
        rows, outline = pilot.app.rows, pilot.app.rows.outline
        await pilot.press("plus", "G", "up")
        looked_at, place = rows.selected, rows.cursor - rows.scroll_offset.y
        before = shown(rows)[place]
        for _ in range(30):
            writer.frame(2, 10**8, b"not JSON", more=False, cut=False)
        pilot.app.grow()
        await pilot.pause()
        assert rows.selected == looked_at
        assert outline.line_of(looked_at) > place
        assert shown(rows)[rows.cursor - rows.scroll_offset.y] == before
        finish(writer)

    view(FindingsView, tmp_path / "a.jsonl", scenario, (100, 18))


def test_nothing_is_said_to_be_found_of_a_session_without_a_fault(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")

    async def scenario(pilot):
        await pilot.press("enter", "right", "plus", "G")
        assert words(pilot.app.rows) == ["no findings so far; o shows operational findings"]
        finish(writer)
        pilot.app.grow()
        await pilot.pause()
        assert words(pilot.app.rows) == ["nothing was found; o shows operational findings"]
        assert explanation(pilot.app) == ""

    view(FindingsView, tmp_path / "a.jsonl", scenario)


def test_a_key_shows_operational_findings_and_hides_them(tmp_path):
    calls = "".join(f'> {n} tools/call {{"name":"echo"}}\n< {n} = {{"content":[]}}\n' for n in (2, 3, 4))

    async def scenario(pilot):
        rows = pilot.app.rows
        assert "ops/loop" not in "".join(words(rows))
        await pilot.press("o")
        assert "ops/loop" in "".join(words(rows))
        assert pilot.app.session.found["warning"] == 1
        await pilot.press("o")
        assert "ops/loop" not in "".join(words(rows))
        assert pilot.app.session.found["warning"] == 0

    view(FindingsView, capture(tmp_path / "a.jsonl", f"= 2025-06-18\n{calls}"), scenario, (140, 40))
