"""Texts for what the chosen clients refuse: a mark before a tool, and the number of marked tools (P-01)."""

from collections.abc import Sequence

from mcpspy.report.words import MARKS
from mcpspy.rules import Finding, worst
from mcpspy.text import plural
from mcpspy.tui.session.client_menu import named
from mcpspy.tui.widgets.rows import Cell


def limit_mark(refused: Sequence[Finding]) -> Cell:
    """Return the mark before a tool: the worst severity for the chosen clients."""
    severity = worst(refused)
    return f"{MARKS[severity] if severity else ' '} ", f"view--{severity}" if severity else ""


def limits_text(clients: frozenset[str], refused: Sequence[Sequence[Finding]]) -> str:
    """Return the chosen clients, and how many listed tools break a limit; `refused` has an element for each tool."""
    return f"{named(clients)}: {sum(map(bool, refused)):,} of {plural(len(refused), 'tool')} break one"
