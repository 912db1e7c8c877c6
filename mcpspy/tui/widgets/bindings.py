"""Textual bindings made from the table of actions."""

from textual.binding import Binding, BindingType
from textual.keys import format_key

from mcpspy.tui.model.actions import SCOPES, Action


def bindings(scope: str) -> list[BindingType]:
    """Return the bindings of a scope of the table."""
    return bound(SCOPES[scope].actions)


def bound(actions: tuple[Action, ...]) -> list[BindingType]:
    """Return a binding for each action."""
    return [Binding(it.keys, it.name, it.text, show=it.footer, priority=it.priority) for it in actions]


def keys_text(action: Action) -> str:
    """Return the display names of an action's keys."""
    return " ".join(format_key(key) for key in action.keys.split(","))
