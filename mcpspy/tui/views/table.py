"""The views of a session in one table: their keys, tabs and commands are made from it.

To add a view, write its module beside this one and give it an entry here.
"""

from collections.abc import Callable
from typing import NamedTuple

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.gates import GatedTimeline
from mcpspy.tui.model import commands
from mcpspy.tui.model.actions import Action, Scope
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.views.calls import CallsView
from mcpspy.tui.views.findings import FindingsView
from mcpspy.tui.views.gates import GatesView
from mcpspy.tui.views.peers import PeersView
from mcpspy.tui.views.problems import ProblemsView
from mcpspy.tui.views.sequence import SequenceView
from mcpspy.tui.views.stderr import StderrView
from mcpspy.tui.views.tools import MergedToolsView, ToolsView
from mcpspy.tui.widgets.rows import RowsOrNotice, View


class ViewEntry(NamedTuple):
    """One view."""

    key: str
    title: str
    """The title, which is also the name of the command that shows the view."""
    of_session: Callable[[OpenCapture], View | RowsOrNotice]
    of_merged: Callable[[Merged], View | RowsOrNotice] | None = None
    """The view of a merge; if None, the view of the selected row's session is shown instead."""


VIEWS = {
    view.title: view
    for view in (
        ViewEntry("1", "timeline", GatedTimeline, GatedTimeline),
        ViewEntry("w", "problems", ProblemsView, ProblemsView),
        ViewEntry("2", "findings", FindingsView),
        ViewEntry("3", "tools", ToolsView, MergedToolsView),
        ViewEntry("4", "sequence", SequenceView),
        ViewEntry("5", "stderr", StderrView),
        ViewEntry("6", "gates", GatesView, GatesView),
        ViewEntry("7", "calls", CallsView, CallsView),
        ViewEntry("8", "peers", PeersView, PeersView),
    )
}
"""The views by title, in the order of the tabs; a session is first shown in the timeline or in its problems."""

VIEW_SCOPE = Scope("a session", tuple(Action(view.key, f"view('{view.title}')", view.title) for view in VIEWS.values()))
"""The keys of the views."""
COMMANDS = commands.table(list(VIEWS))
"""The commands of the command line, including those of the views."""


def create(title: str, shown: OpenCapture | Merged) -> View | RowsOrNotice | None:
    """Return a new view with that title; None if `shown` is a merge and the view cannot show merges."""
    view = VIEWS[title]
    if isinstance(shown, Merged):
        return view.of_merged(shown) if view.of_merged else None
    return view.of_session(shown)
