"""All keys and commands on one screen, made from the tables of actions and commands."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from mcpspy.report.words import ARROWS, MARKS
from mcpspy.tui.model.actions import Scope, by_title
from mcpspy.tui.model.commands import ANYWHERE, PromptCommand
from mcpspy.tui.widgets.keys import bindings, keys_text
from mcpspy.tui.widgets.rows import Cell, Rows

_KEYS = 18  # columns
_SIGNS = (
    (" ".join(ARROWS.values()), "sent by the client, by the server, by mcpspy itself"),
    (" ".join(MARKS.values()), f"a finding: {', '.join(MARKS)}"),
    ("┌ │ └", "connects the selected request or response with its partner"),
    ("▄▄▄", "latency of a call: two blocks more for each power of ten, from 100 µs"),
    ("*", "a marked frame or session"),
)


def lines_of(scopes: tuple[Scope, ...], commands: dict[str, PromptCommand]) -> list[list[Cell]]:
    """Return the lines of the help: the keys by heading, the commands, and the meanings of signs."""
    found: list[list[Cell]] = []
    for title, actions in by_title(scopes).items():
        found += [[(f" {title}", "help--title")], *(_line(keys_text(action), action.text) for action in actions), []]
    found.append([(f" the command line, after : (in the list of sessions: {', '.join(ANYWHERE)})", "help--title")])
    found += [_line(f"{name} {command.argument}", command.says) for name, command in commands.items()]
    found += [[], [(" signs", "help--title")], *(_line(*sign) for sign in _SIGNS)]
    return found


def _line(key: str, says: str) -> list[Cell]:
    return [(f"   {key:<{_KEYS}} ", "help--key"), (says, "")]


class HelpRows(Rows):
    """The list of lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"help--title", "help--key"}

    def __init__(self, lines: list[list[Cell]]) -> None:
        super().__init__()
        self._lines = lines

    def count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (the lines are not adapted to the width)
        """Return one line."""
        return self._lines[place]


class HelpScreen(ModalScreen[None]):
    """The help, on top of the current screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("help")

    def __init__(self, scopes: tuple[Scope, ...], commands: dict[str, PromptCommand]) -> None:
        super().__init__()
        self._lines = lines_of(scopes, commands)

    def compose(self) -> ComposeResult:
        """Yield the title and the lines."""
        yield Static("keys, commands and signs · Esc goes back", id="title", markup=False)
        yield HelpRows(self._lines)
