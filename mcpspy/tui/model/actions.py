"""One table of all keys of the TUI: the action of each key, and its description.

The bindings of the widgets, the line of keys, the help, the command palette and docs/tui.md are made from this table. A
scope is a class of widgets or screens that handles keys: its action `move(-1)` calls its method `action_move`. Only the
keys of the views are elsewhere: `mcpspy.tui.views.table` has the key of each view beside the view.
"""

from typing import NamedTuple


class Action(NamedTuple):
    """The action of some keys."""

    keys: str
    """Their names in textual, separated by commas."""
    name: str
    """The method name without `action_`, and its arguments."""
    text: str
    """A short description."""
    footer: bool = False
    """Whether the line of keys at the bottom shows it."""
    priority: bool = False
    """Whether it takes precedence over the bindings of the focused widget."""


class Scope(NamedTuple):
    """The keys that one class handles."""

    title: str
    """The heading of its keys in the help, which groups scopes with the same title. If empty, the help omits them."""
    actions: tuple[Action, ...]


_MESSAGE = (
    Action("r", "form", "next form", footer=True),
    Action("b", "pair", "show pair", footer=True),
    Action("y", "copy", "copy", footer=True),
    Action("s", "save", "save", footer=True),
    Action("o", "editor", "open in $EDITOR, read-only"),
    Action("O", "pager", "open in $PAGER"),
)

SCOPES = {
    "app": Scope(
        "everywhere",
        (
            Action("ctrl+c", "quit", "quit"),
            Action("ctrl+z", "suspend_process", "suspend; resume with fg"),
            Action("question_mark", "help", "help", footer=True),
            Action("ctrl+p", "command_palette", "find an action by name"),
        ),
    ),
    "sessions": Scope(
        "the sessions",
        (
            Action("q", "app.quit", "quit", footer=True),
            Action("slash,ctrl+f", "prompt('filter')", "filter", footer=True, priority=True),
            Action("colon", "prompt('command')", "command line", priority=True),
            Action("m", "merge", "merge sessions", footer=True),
            Action("v", "view", "open in turn", footer=True),
            Action("d", "compare", "compare two marked", footer=True),
            Action("y", "copy", "copy a command to begin with, while there are no sessions", footer=True),
            Action("escape", "all", "show all sessions; press again to unmark all"),
        ),
    ),
    "session list": Scope(
        "the sessions",
        (
            Action("space", "mark", "mark", footer=True),
            Action("right,l", "unfold(True)", "unfold the run"),
            Action("left,h", "unfold(False)", "fold the run"),
            Action("plus", "unfold_all(True)", "unfold all runs"),
            Action("minus", "unfold_all(False)", "fold all runs"),
        ),
    ),
    "session": Scope(
        "a session",
        (
            Action("escape", "back", "back", footer=True),
            Action("q", "app.quit", "quit", footer=True),
            Action("slash", "prompt('filter')", "filter", footer=True, priority=True),
            Action("ctrl+f", "prompt('find')", "find without filtering", priority=True),
            Action("n", "find_again(1)", "next match"),
            Action("N", "find_again(-1)", "previous match"),
            Action("colon", "prompt('command')", "command line", priority=True),
            Action("enter", "enter", "run the line", footer=True, priority=True),
            Action("c", "clients", "choose clients, and see which tools they refuse"),
        ),
    ),
    # For views that show client limits: there the line of keys shows this key too.
    "client limits": Scope("", (Action("c", "screen.clients", "client limits", footer=True),)),
    "open sessions": Scope(
        "a session",
        (
            Action("left_square_bracket", "turn(-1)", "previous session"),
            Action("right_square_bracket", "turn(1)", "next session", footer=True),
        ),
    ),
    "timeline": Scope(
        "the timeline",
        (
            Action("p", "partner", "request/response", footer=True),
            Action("e", "next_finding(1)", "next failure or finding"),
            Action("E", "next_finding(-1)", "previous failure or finding"),
            Action("L", "next_slow(1)", "next call that took 1 s or more"),
            Action("m", "mark", "mark or unmark"),
            Action("apostrophe", "next_mark", "next marked frame"),
            Action("d", "compare", "compare two marked frames, or the marked with the selected one"),
            Action("t", "times", "switch times: since the start, since the row above, or the time of day"),
        ),
    ),
    # On the row of a held frame, these take precedence over the keys of the timeline.
    "held frame": Scope(
        "a held frame",
        (
            Action("enter", "release('continued')", "continue", footer=True, priority=True),
            Action("E", "edit", "edit", footer=True),
            Action("D", "release('dropped')", "drop", footer=True),
            Action("A", "answer", "answer", footer=True),
        ),
    ),
    "breakpoints": Scope(
        "a running session",
        (
            Action("B", "breakpoint", "hold frames like this one"),
            Action("H", "next_held", "next held frame"),
            Action("R", "resend", "send the request again, edited or not; after the end, in a session of its own"),
        ),
    ),
    # The selected row's message is visible without having the focus, so its keys work from the timeline too.
    "timeline message": Scope("", tuple(it._replace(name=f"message('{it.name}')", footer=False) for it in _MESSAGE)),
    "comparison": Scope(
        "two messages or sessions compared",
        (
            Action("n", "difference(1)", "next difference", footer=True),
            Action("N", "difference(-1)", "previous difference"),
            Action("less_than_sign", "frame(0)", "show left frame", footer=True),
            Action("greater_than_sign", "frame(1)", "show right frame", footer=True),
            Action("escape,q", "dismiss(None)", "back", footer=True),
        ),
    ),
    "compared values": Scope(
        "two messages or sessions compared",
        (
            Action("left,h", "fold(True)", "fold"),
            Action("right,l", "fold(False)", "unfold"),
            Action("enter,space", "turn", "fold/unfold", footer=True),
            Action("z", "everything", "fold/unfold equal parts", footer=True),
        ),
    ),
    "lines": Scope(
        "moving in lists and in the message",
        (
            Action("up,k", "move(-1)", "up"),
            Action("down,j", "move(1)", "down"),
            Action("pageup,ctrl+b", "page(-1)", "page up"),
            Action("pagedown", "page(1)", "page down"),
            Action("home,g", "first", "first"),
            Action("end,G", "last", "last"),
        ),
    ),
    "list": Scope(
        "any list",
        (Action("space", "page(1)", "page down"), Action("enter", "choose", "open", footer=True)),
    ),
    "sorted list": Scope("calls, tools and the sessions", (Action("S", "sort", "sort", footer=True),)),
    "growing list": Scope("any list", (Action("f", "toggle_follow", "follow", footer=True),)),
    "findings": Scope(
        "findings",
        (
            Action("right,l", "fold(True)", "unfold"),
            Action("left,h", "fold(False)", "fold"),
            Action("plus", "fold_all(True)", "unfold all", footer=True),
            Action("minus", "fold_all(False)", "fold all", footer=True),
            Action("o", "operational", "show or hide operational findings: failed, slow and repeated calls"),
        ),
    ),
    "problems": Scope(
        "problems",
        (
            Action("right,l", "fold(True)", "unfold"),
            Action("left,h", "fold(False)", "fold"),
            Action("plus", "fold_all(True)", "unfold all", footer=True),
            Action("minus", "fold_all(False)", "fold all", footer=True),
            Action("e", "screen.next_failure(1)", "next failure or finding", footer=True),
            Action("E", "screen.next_failure(-1)", "previous failure or finding"),
        ),
    ),
    "gates": Scope(
        "gates",
        (
            Action("space", "switch", "on/off", footer=True),
            Action("delete,x", "remove", "remove", footer=True),
        ),
    ),
    "message": Scope("the message, also from the timeline", _MESSAGE),
    "message pane": Scope(
        "in the message",
        (
            Action("left,h", "fold", "fold"),
            Action("right,l", "unfold", "unfold"),
            Action("enter", "open", "fold/unfold/open", footer=True),
            Action("space", "turn", "fold/unfold"),
            Action("minus", "fold_all(True)", "fold all"),
            Action("plus", "fold_all(False)", "unfold all"),
            Action("z", "toggle_all", "fold all/unfold all"),
        ),
    ),
    "prompt": Scope(
        "an input line",
        (
            Action("escape", "cancel", "cancel", footer=True),
            Action("up", "older", "previous input"),
            Action("down", "newer", "next input"),
        ),
    ),
    "copy": Scope("", (Action("escape,q", "dismiss(None)", "cancel", footer=True),)),
    "save": Scope("", (Action("escape", "dismiss(None)", "cancel", footer=True),)),
    "breakpoint": Scope("", (Action("escape", "dismiss(None)", "cancel", footer=True),)),
    "editor": Scope(
        "editing a message",
        (
            Action("ctrl+s", "done", "send", footer=True, priority=True),
            Action("ctrl+o", "outside", "$EDITOR", footer=True, priority=True),
            Action("escape", "dismiss(None)", "close, and keep the text", footer=True, priority=True),
        ),
    ),
    "sending": Scope("", (Action("escape", "dismiss(None)", "do not wait: end the server", footer=True),)),
    "clients": Scope("", (Action("escape,q", "dismiss(None)", "cancel", footer=True),)),
    "help": Scope("", (Action("escape,q,question_mark", "dismiss", "back", footer=True),)),
}
"""All scopes by name, in the order of the help."""


def by_title(scopes: tuple[Scope, ...]) -> dict[str, list[Action]]:
    """Return the actions of some scopes by heading; scopes without a heading are omitted."""
    found: dict[str, list[Action]] = {}
    for scope in scopes:
        if scope.title:
            found.setdefault(scope.title, []).extend(scope.actions)
    return found
