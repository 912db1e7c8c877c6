"""The help has every key of every view, because it is made from their bindings."""

import importlib
import os

import pytest
from textual.dom import DOMNode

from mcpspy import tui
from mcpspy.tui.app import KEYS
from mcpspy.tui.message.detail import Detail
from mcpspy.tui.model.commands import COMMANDS
from mcpspy.tui.session.views.timeline import TimelineView
from mcpspy.tui.widgets.help import HelpScreen, keys_of, lines_of

QUESTIONS = {HelpScreen, "CopyMenu", "SavePrompt"}
"""What tells its keys itself, while it is asked."""


def bound():
    """The classes of the TUI that bind keys."""
    for file in sorted(os.listdir(os.path.dirname(tui.__file__))):
        if file.endswith(".py"):
            module = importlib.import_module(f"mcpspy.tui.{file.removesuffix('.py')}")
            for kind in vars(module).values():
                own = isinstance(kind, type) and kind.__module__ == module.__name__
                if own and issubclass(kind, DOMNode) and kind.__dict__.get("BINDINGS"):
                    yield kind


@pytest.mark.parametrize("kind", list(bound()), ids=lambda kind: kind.__name__)
def test_every_class_that_binds_keys_stands_in_the_help(kind):
    listed = {kind for _, kinds in KEYS for kind in kinds}
    assert kind in listed or kind in QUESTIONS or kind.__name__ in QUESTIONS


def test_every_key_says_what_it_does():
    for _, kinds in KEYS:
        for kind in kinds:
            for key, says in keys_of(kind):
                assert key, kind
                assert says, (kind, key)


def test_the_lines_are_the_groups_and_the_commands():
    found = ["".join(text for text, _ in cells) for cells in lines_of(KEYS)]
    for title, _ in KEYS:
        assert f" {title}" in found
    assert any(line.split() == ["/", "filter"] for line in found)
    assert any(line.split() == ["up", "k", "up"] or line.split()[:2] == ["↑", "k"] for line in found if line)
    for name in COMMANDS:
        assert any(line.split()[0] == name for line in found if line)


def test_keys_of_the_message_that_work_in_the_timeline_too_stand_there_once():
    assert not {key for key, _ in keys_of(Detail)} & {key for key, _ in keys_of(TimelineView)}
    passed_on = {binding.key for binding in TimelineView.BINDINGS if binding.system}
    assert passed_on == {key for key, _ in keys_of(Detail)} == set("rbys")
