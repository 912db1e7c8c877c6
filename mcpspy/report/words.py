"""Marks, arrows and colours of everything that is shown: one table for each, so that all outputs agree.

Commands, the TUI and exports read them here; `scripts/write-rules` writes those of shared pages into
`sharing/page/names.js`. This module imports nothing, so that any output can use it.
"""

ARROWS = {"client": "→", "server": "←", "mcpspy": "·"}
"""By the sender of a frame."""
WAYS = {"client": "client → server", "server": "server → client", "mcpspy": "mcpspy"}
"""The same in words."""
MARKS = {"error": "✗", "warning": "!", "info": "·"}
"""By the severity of a finding."""
DIFFERENT = MARKS["error"]
"""The mark of an exchange that differs from the recorded one."""
CHANGES = {"added": "+", "removed": "-", "changed": "~", "extra": "+", "missing": "-", "error-changed": "~"}
"""By the change of a tool, prompt or resource, or by the outcome of an exchange that was compared."""
SLOWER = "·"
"""The mark of a difference in time."""
ARGUMENTS = {"fits": "✓", "wrong": "✗", "missing": "✗", "undeclared": "?", "absent": "·", "unknown": " "}
"""By how an argument fits the schema of its tool."""
FOLDS = {True: "▸", False: "▾"}
"""By whether an entry is folded."""

KINDS = {"invalid": "invalid", "gap": "gap", "gates": "gap"} | dict.fromkeys(
    ("stderr", "http", "event", "end-of-stream", "signal", "end", "undecoded"), "dim"
)
"""Colours of rows by kind. `error`, for the outcome of their exchange, has precedence."""
PREVIEWS = {"name": "dim", "string": "string"}
"""Colours in a preview: names of members, and strings."""
COLOURS = {"error": "31", "warning": "33", "info": "90", "invalid": "35", "gap": "33", "dim": "90", "string": "32"}
"""Each colour as the parameter of a terminal's escape sequence (ECMA-48, SGR). A severity is a colour.

A terminal gets no other escape sequence from a command (`cli/output.py`). The TUI has a style for each (`app.tcss`).
"""


def coloured(text: str, colour: str | None) -> str:
    """Return a line in a colour, or unchanged without one."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour else text
