"""Textual bindings made from the table of actions, and the line of keys: those that work at the current focus.

Textual's own footer makes a widget for each key whenever the focus moves. This takes 60 ms, in which keys are not
processed.
"""

from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.keys import format_key
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

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


class KeyHint(NamedTuple):
    """A key in the line."""

    key: str
    """Its name in textual."""
    display: str
    """Its display name."""
    description: str


class Keys(Widget):
    """The line of keys; a click on a key presses it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key"}

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[KeyHint] = []

    def on_mount(self) -> None:
        """Subscribe to changes of the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        found = keys(self.app, screen)
        if found != self._keys:
            self._keys = found
            self.refresh()

    def render_line(self, _: int) -> Strip:
        """Return as many keys as fit, each with its description."""
        base = self.rich_style
        face = base + self.get_component_rich_style("keys--key", partial=True)
        segments = [
            segment
            for _, display, description in fitting(self._keys, self.size.width)
            for segment in (Segment(f" {display} ", face), Segment(f"{description} ", base))
        ]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: Click) -> None:
        """Press the key under the mouse."""
        right = 0
        for shown in fitting(self._keys, self.size.width):
            right += _columns(shown)
            if event.x < right:
                self.app.simulate_key(shown.key)
                return


def keys(app: App[object], screen: Screen[object]) -> list[KeyHint]:
    """Return the keys that work on a screen, one for each action."""
    found: dict[str, KeyHint] = {}
    for _, binding, enabled, _ in screen.active_bindings.values():
        if binding.show and enabled:
            shown = KeyHint(binding.key, app.get_key_display(binding), binding.description)
            found.setdefault(binding.action, shown)
    return list(found.values())


def fitting(shown: list[KeyHint], width: int) -> list[KeyHint]:
    """Return the keys that fit into `width` columns, in their order; help and exit have priority."""
    leave = "escape" if any(key.key == "escape" for key in shown) else "q"
    kept = set()
    for key in sorted(shown, key=lambda it: (it.key != "question_mark", it.key != leave)):
        width -= _columns(key)
        if width < 0:
            break
        kept.add(key)
    return [key for key in shown if key in kept]


def _columns(shown: KeyHint) -> int:
    return Segment(f" {shown.display} {shown.description} ").cell_length
