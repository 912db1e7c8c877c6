"""All keys and commands on one screen, made from the bindings themselves."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.keys import format_key
from textual.screen import ModalScreen
from textual.widgets import Static

from mcpspy.tui.model.commands import ANYWHERE, COMMANDS
from mcpspy.tui.widgets.rows import Cell, Rows
from mcpspy.tui.widgets.view import MARKS

Group = tuple[str, tuple[type[DOMNode], ...]]
"""A heading, and the classes whose keys stand below it."""

_KEYS = 18  # columns
_SIGNS = (
    ("→ ←", "said by the client, by the server; · is a word of mcpspy itself"),
    (" ".join(MARKS[severity] for severity in ("error", "warning", "info")), "an error, a warning, a remark was found"),
    ("┌ │ └", "from the selected frame to the one that it answers, or that answers it"),
    ("▄▄▄", "how long a call took: two more for each power of ten, from 100 µs on"),
    ("*", "a frame that you have marked, a session that is to be opened with others"),
)


def keys_of(kind: type[DOMNode]) -> list[tuple[str, str]]:
    """The keys that a class itself binds, and what they do; not those that it passes on."""
    found = []
    for binding in kind.__dict__.get("BINDINGS", ()):
        assert isinstance(binding, Binding)
        if binding.system:
            continue
        found.append((" ".join(format_key(key) for key in binding.key.split(",")), binding.description))
    return found


def lines_of(groups: tuple[Group, ...]) -> list[list[Cell]]:
    """The lines of the help: the keys of each group, the commands, then what signs mean."""
    found: list[list[Cell]] = []
    for title, kinds in groups:
        found += [[(f" {title}", "help--title")], *(_line(*entry) for kind in kinds for entry in keys_of(kind)), []]
    found.append([(f" the command line, after : (among the sessions {', '.join(ANYWHERE)})", "help--title")])
    found += [_line(f"{name} {command.argument}", command.says) for name, command in COMMANDS.items()]
    found += [[], [(" signs", "help--title")], *(_line(*sign) for sign in _SIGNS)]
    return found


def _line(key: str, says: str) -> list[Cell]:
    return [(f"   {key:<{_KEYS}} ", "help--key"), (says, "")]


class HelpRows(Rows):
    """The lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"help--title", "help--key"}

    def __init__(self, lines: list[list[Cell]]) -> None:
        super().__init__()
        self._lines = lines

    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (they are as wide as they are)
        """One of them."""
        return self._lines[place]


class HelpScreen(ModalScreen[None]):
    """The help, over what it was asked in."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "back")]

    def __init__(self, groups: tuple[Group, ...]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        """A title and the lines."""
        yield Static("keys, commands and signs · Esc goes back", id="title", markup=False)
        yield HelpRows(lines_of(self._groups))
