"""The table of views: no other module has to know a view."""

import ast
from pathlib import Path

import pytest

from mcpspy import tui
from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.views.table import COMMANDS, VIEW_SCOPE, VIEWS, create
from mcpspy.tui.widgets.rows import RowsOrNotice, View
from tests.transcript import capture

ROOT = Path(tui.__file__).parent
TABLE = ROOT / "views" / "table.py"
TIMELINE = ("session.py", "views/table.py")
"""The modules that know the timeline, where filters and searches work."""


def importers(module):
    """Yield the files of the TUI that import a module."""
    for path in sorted(ROOT.rglob("*.py")):
        found = [node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        if module in found:
            yield str(path.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_only_the_table_knows_a_view(view):
    """A new view touches two files: its module and the table."""
    expected = TIMELINE if view.title == "timeline" else TIMELINE[1:]
    assert tuple(importers(view.of_session.__module__)) == expected


def test_every_view_has_a_key_and_a_command():
    assert [action.keys for action in VIEW_SCOPE.actions] == [view.key for view in VIEWS.values()]
    assert len({view.key for view in VIEWS.values()}) == len(VIEWS)
    assert set(VIEWS) <= set(COMMANDS)


@pytest.mark.parametrize("title", VIEWS)
def test_a_merge_has_the_views_that_show_several_sessions(tmp_path, title):
    paths = [capture(tmp_path / name, "> {}") for name in ("a.jsonl", "b.jsonl")]
    merged = Merged([OpenCapture(str(path)) for path in paths])
    try:
        assert isinstance(create(title, merged.sessions[0]), View | RowsOrNotice)
        assert (create(title, merged) is not None) == (
            title in ("timeline", "problems", "tools", "gates", "calls", "peers")
        )
    finally:
        merged.close()
