"""Marks, arrows and colours of everything that is printed: one table for each, so that all outputs agree.

It imports nothing, so that any output can use it. Colours are the parameters of a terminal's escape sequence (ECMA-48,
SGR).
"""

ARROWS = {"client": "→", "server": "←", "mcpspy": "·"}
"""By the sender of a frame."""
MARKS = {"error": "✗", "warning": "!", "info": "·"}
"""By the severity of a finding."""
DIFFERENT = "✗"
"""The mark of an exchange that differs from the recorded one."""
CHANGES = {"added": "+", "removed": "-", "changed": "~"}
"""By the change of a tool, prompt or resource."""

GREY = "90"
SEVERITIES = {"error": "31", "warning": "33", "info": GREY}
"""Colours by the severity of a finding."""
STATUSES = {"error": "31", "tool-error": "31"}
"""Colours of rows by the outcome of their exchange. They have precedence over those of kinds."""
KINDS = {"invalid": "35", "gap": "33"} | dict.fromkeys(
    ("stderr", "http", "event", "signal", "gates", "end", "undecoded"), GREY
)
"""Colours of rows by kind."""
PREVIEWS = {"name": GREY, "string": "32"}
"""Colours in a preview: names of members, and strings."""

COLOURS = frozenset((*SEVERITIES.values(), *STATUSES.values(), *KINDS.values(), *PREVIEWS.values()))
"""All colours. A terminal gets no other escape sequence from a command (`cli/terminal.py`)."""


def coloured(text: str, code: str | None) -> str:
    """Return a line in a colour, or unchanged without a `code`."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
