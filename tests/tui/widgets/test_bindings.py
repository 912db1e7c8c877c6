"""Widgets and screens bind the keys in the table of keys."""

import importlib
import pkgutil

import pytest
from textual.dom import DOMNode

from mcpspy import tui
from mcpspy.tui.app import KEYS
from mcpspy.tui.model.actions import SCOPES, Action
from mcpspy.tui.widgets.keys import bindings, bound, keys_text


def binding():
    """Yield the classes of the TUI that bind keys themselves."""
    for info in pkgutil.walk_packages(tui.__path__, "mcpspy.tui."):
        if info.name.startswith(("mcpspy.tui.web", "mcpspy.tui.terminal")):
            continue
        module = importlib.import_module(info.name)
        for kind in vars(module).values():
            own = isinstance(kind, type) and kind.__module__ == module.__name__
            if own and issubclass(kind, DOMNode) and kind.__dict__.get("BINDINGS"):
                yield kind


CLASSES = list(binding())


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_binds_keys_of_the_table_only_and_has_their_actions(kind):
    known = [it for scope in KEYS for it in bound(scope.actions)]
    for it in kind.BINDINGS:
        assert it in known
        name = it.action.partition("(")[0]
        assert name.startswith(("app.", "screen.")) or callable(getattr(kind, f"action_{name}", None)), it.action


def test_every_key_of_the_table_is_bound_by_some_class():
    found = [it for kind in CLASSES for it in kind.BINDINGS]
    assert not [it for scope in KEYS for it in bound(scope.actions) if it not in found]


def test_a_binding_says_what_the_table_says():
    (first, *_), actions = bindings("list"), SCOPES["list"].actions
    assert (first.key, first.action, first.description, first.show) == ("space", "page(1)", actions[0].text, False)
    (both,) = bound((Action("a,b", "do", "does", footer=True, priority=True),))
    assert (both.key, both.show, both.priority) == ("a,b", True, True)


def test_keys_are_named_as_people_call_them():
    assert keys_text(Action("question_mark,ctrl+p,left", "x", "x")) == "? ctrl+p ←"
