"""The commands of the command line `:`, the row that a typed frame number means, and the history of typed text.

The module has no screen. A row shows the number of its frame in the frame's own session. So in a merge, a typed number
refers to the session of the selected row.
"""

from bisect import bisect_left
from typing import NamedTuple

from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.exporters import FORMATS
from mcpspy.text import printable, series, suggestion
from mcpspy.tui.model.merged import Merged


class PromptCommand(NamedTuple):
    """One command and its description."""

    name: str
    argument: str
    """Its argument for the help; empty if it has none."""
    says: str


def table(views: list[str]) -> dict[str, PromptCommand]:
    """Return the commands by name; each view of a session has one."""
    commands = (
        PromptCommand("filter", "FILTER", "show the rows that match a filter; all without one"),
        PromptCommand("find", "FILTER", "go to the next match, from the selected message on"),
        PromptCommand("goto", "NUMBER", "go to that frame of the selected session, as :17 does"),
        PromptCommand("save", "", "save the selected frame, byte for byte"),
        PromptCommand("export", "FORMAT [FILE]", f"write the rows of the timeline to a file: {', '.join(FORMATS)}"),
        PromptCommand("share", "[FILE]", "write the rows of the timeline to an HTML page without secrets"),
        PromptCommand("theme", "NAME", "change the colours"),
        *(PromptCommand(view, "", f"show the view {view}") for view in views),
        PromptCommand("help", "", "show all keys and commands"),
        PromptCommand("quit", "", "leave mcpspy"),
    )
    return {command.name: command for command in commands}


ANYWHERE = ("theme", "help", "quit")
"""The commands that also work in the sessions list."""


def parse(text: str, commands: dict[str, PromptCommand]) -> tuple[str, str]:
    """Return the typed command and its argument; the name may be abbreviated. Raises UsageError."""
    word, _, argument = text.strip().partition(" ")
    argument = argument.strip()
    if not word:
        return "", ""
    if word.removeprefix("#").isdecimal() and not argument:
        return "goto", word.removeprefix("#")
    fits = [word] if word in commands else [name for name in commands if name.startswith(word)]
    if not fits:
        raise UsageError(f"no command {word!r}; {nearest(word, list(commands))}")
    if len(fits) > 1:
        raise UsageError(f"{word!r} may be {series(fits, 'or')}")
    if argument and not commands[fits[0]].argument:
        raise UsageError(f"{fits[0]} takes no argument")
    return fits[0], argument


def nearest(word: str, names: list[str]) -> str:
    """Return the end of an error message about an unknown name: the nearest name, or all names."""
    return suggestion(word, names, f"there are {series(names)}")


class History:
    """The history of typed text, the oldest first; `older` and `newer` move through it, starting from the draft."""

    def __init__(self) -> None:
        self._typed: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Add typed text; if the history contains it already, it moves to the end."""
        if text:
            self._typed = [*(typed for typed in self._typed if typed != text), text]
        self._at = len(self._typed)

    def older(self, text: str) -> str:
        """Return the previous text, or the oldest again; `text` is the current content of the input line."""
        if self._at == len(self._typed):
            self._draft = text
        self._at = max(self._at - 1, 0)
        return self._typed[self._at] if self._typed else text

    def newer(self, text: str) -> str:
        """Return the next text; after the newest, return the draft."""
        if self._at >= len(self._typed) - 1:
            at_end = self._at == len(self._typed)
            self._at = len(self._typed)
            return text if at_end else self._draft
        self._at += 1
        return self._typed[self._at]


_DIGITS = 9  # maximum digits of a frame number


class Destination(NamedTuple):
    """The row to go to."""

    n: int
    """Its line number in the session or merge that is shown."""
    says: str
    """A message for the user; empty if there is none."""


def destination(session: OpenCapture | Merged, selected: int, number: str) -> Destination:
    """Return the row of the frame with that number, or the next row; `selected` is the line of the selected row.

    Raises UsageError if `number` is not a number, or if there is no such row yet.
    """
    digits = number.removeprefix("#")
    if not digits.isdecimal() or len(digits) > _DIGITS:
        raise UsageError("goto needs the number of a frame, such as 17")
    if not session.index.rows:
        raise UsageError("there are no rows yet")
    own, _ = session.of(session.index.row_of(selected) or 0)
    n, rows = int(digits), own.index.rows
    there = own.index.row_of(n) if n <= own.index.lines else None
    line = rows[min(bisect_left(rows, n), len(rows) - 1)] if there is None else n
    shown = session.number(own, line) if isinstance(session, Merged) else line
    if not shown:
        raise UsageError(f"#{line} is not in the timeline yet")
    says = f"#{n} is not a row of {printable(own.header.name, 40)}; #{line} is next to it" if there is None else ""
    return Destination(shown, says)
