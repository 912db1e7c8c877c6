"""The help has every key and command, because it is generated from their tables."""

from mcpspy.tui.app import KEYS, lines_of
from mcpspy.tui.model.actions import by_title
from mcpspy.tui.views.table import COMMANDS, VIEWS
from mcpspy.tui.widgets.keys import keys_text


def test_the_lines_are_the_keys_and_the_commands():
    found = ["".join(text for text, _ in cells) for cells in lines_of(KEYS, COMMANDS)]
    for title, actions in by_title(KEYS).items():
        assert f" {title}" in found
        for action in actions:
            assert f"   {keys_text(action):<18} {action.text}" in found
    for name in COMMANDS:
        assert any(line.split()[0] == name for line in found if line)


def test_the_keys_of_the_views_stand_with_those_of_a_session():
    assert [action.text for action in by_title(KEYS)["a session"]][-len(VIEWS) :] == list(VIEWS)
