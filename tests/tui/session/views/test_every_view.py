"""What holds for each view of a session: hostile text is harmless, and all of a golden capture is there."""

import time

import pytest
from textual.widgets import Static

from mcpspy.tui.views.calls import CallsView
from mcpspy.tui.views.findings import FindingsView
from mcpspy.tui.views.gates import GatesView
from mcpspy.tui.views.peers import PeersView
from mcpspy.tui.views.sequence import SequenceView
from mcpspy.tui.views.stderr import StderrView
from mcpspy.tui.views.tools import ToolsView
from tests.test_overview import called, listed
from tests.test_text import unsafe
from tests.timelines import GOLDEN
from tests.transcript import begin, finish, record
from tests.tui.screen import lines, resize, shown, until
from tests.tui.views import HOSTILE, show, view

ALL = (SequenceView, CallsView, ToolsView, FindingsView, StderrView, PeersView, GatesView)
SIZES = ((200, 60), (80, 24), (40, 10), (1, 1))


@pytest.fixture
def hostile(tmp_path):
    """A live session with hostile text in whatever a view shows."""
    names = [text.replace("\x1b", "\\u001b").replace("\x07", "") for text in (*HOSTILE, "\\ud800")]
    members = ",".join(f'"{name}{n}":{{"{name}":"{name}"}}' for n, name in enumerate(names))
    text = f'> {{"id":9,"method":"initialize","params":{{"clientInfo":{{{members}}},"capabilities":{{{members}}}}}}}\n'
    text += f'< {{"id":9,"result":{{"serverInfo":{{{members}}},"instructions":"{"".join(names)}"}}}}\n'
    text += listed(1, *(f'{{"name":"{name}"}}' for name in names)) + "".join(called(2, name) for name in names)
    call = '> {"id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"%s":"%s"}}}\n'
    answer = '< {"id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}\n'
    text += "".join((call + answer) % (n, name, name, name, n, name) for n, name in enumerate(names, 10))
    text += "\n".join(f'! {text}\n< {text}\n> {{"method":"[/]"}}' for text in HOSTILE)
    writer = begin(tmp_path / "a.jsonl", wall=time.time_ns(), control=True)
    record(writer, text)
    gates = [{"name": text, "when": {"name": text}, "action": {"send": text}} for text in HOSTILE]
    writer.gates(10**9, gates, "viewer")
    yield writer.path
    finish(writer)


def test_hostile_text_is_shown_harmless_in_every_view_at_every_size(hostile):
    async def scenario(pilot):
        for size in SIZES:
            await resize(pilot, *size)
            for kind in ALL:
                rows = await show(pilot, kind)
                await until(pilot, lambda rows=rows: rows.count() >= len(HOSTILE), kind.__name__)
                await pilot.press("plus", *["down"] * 12)
                if size[0] == 200:
                    assert any("[/]" in line for line in shown(rows)), f"{kind.__name__} shows hostile text"
                await pilot.press("G", "g")
                for line in lines(pilot.app):
                    assert line.isprintable(), kind.__name__
                    assert not unsafe(line), kind.__name__

    view(SequenceView, hostile, scenario, SIZES[0])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_all_of_a_golden_capture_is_in_every_view_and_each_row_leads_to_its_frame(path):
    async def scenario(pilot):
        app, session = pilot.app, pilot.app.session

        rows = app.rows  # of the sequence
        await until(pilot, lambda: not any(worker.is_running for worker in app.workers))
        assert rows.count() == len(session)
        for _ in range(rows.count() // 50 + 1):
            for line in shown(rows):
                assert not line or line.count("│") + line.count("┃") >= 2
            await pilot.press("pagedown")

        for kind in (CallsView, ToolsView):
            rows = await show(pilot, kind)
            if kind is ToolsView:
                assert set(session.announced.tools) <= {(line.split() or [""])[0] for line in shown(rows)}
            for _ in range(rows.count()):
                await pilot.press("enter", "down")
            assert set(app.jumps) <= set(session.index.rows)

        written = [line.n for line in map(session.line, range(len(session))) if line.kind == "stderr"]
        rows = await show(pilot, StderrView)
        assert list(session.stderr) == written
        assert rows.count() == len(written)
        for n in written:
            await pilot.press("enter", "down")
            assert app.jumps[-1] == n

        rows = await show(pilot, FindingsView)
        await pilot.press("plus")
        places = [rows.outline.at(line) for line in range(rows.count())]
        assert len([at for at in places if at.finding]) == sum(session.found.values())
        for at in (0, rows.count() // 2, rows.count() - 1):
            rows.move_to(at)
            await pilot.pause()
            if rows.selected:
                assert rows.selected.group.rule in str(app.query_one("#explanation", Static).content)

    view(SequenceView, path, scenario, (120, 60))
