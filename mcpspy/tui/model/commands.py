"""The commands of the command line `:`, and the history of typed text; without a screen or a session."""

from typing import NamedTuple

from mcpspy.errors import UsageError
from mcpspy.exporters import FORMATS
from mcpspy.text import series, suggestion


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
        PromptCommand("find", "FILTER", "go to the next row that matches a filter"),
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
