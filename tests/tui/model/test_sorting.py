"""The columns by which lists are sorted, and the arrow in their headings."""

import pytest

from mcpspy.tui.model.actions import SCOPES
from mcpspy.tui.model.sorting import SORTS, SortColumn
from tests.each import each


@each(
    "column, heading, marked",
    [
        (SortColumn("latency"), "call   latency   size", "call   latency↓  size"),
        (SortColumn("size"), "call   latency  size 0.0 s", "call   latency ↓size 0.0 s"),
        (SortColumn("size"), "call  size", "call ↓size"),
        (SortColumn("size"), "call     size ", "call     size↓"),
        (SortColumn("name", falling=False, title="call"), "call    result", "call↑   result"),
        (SortColumn("calls"), "call    recalls", "call    recalls"),
        (SortColumn("status"), "call                 latency", "call, by status↓     latency"),
        (SORTS["tools"][0], "tool                 calls", "tool                 calls"),
    ],
)
def test_an_arrow_marks_the_column_and_the_others_stay_where_they_are(column, heading, marked):
    assert column.marked(heading, "call") == marked


@pytest.mark.parametrize("scope", ["session", "list", "lines", "growing list", "sessions", "session list"])
def test_the_key_is_free(scope):
    keys = [key for action in SCOPES[scope].actions for key in action.keys.split(",")]
    assert "S" not in keys
