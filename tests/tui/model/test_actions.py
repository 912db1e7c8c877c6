"""The table of keys, which docs/tui.md and README follow. `test_bindings` tests that widgets bind it."""

import os
import re
from pathlib import Path

from mcpspy.tui.app import KEYS
from mcpspy.tui.model.actions import SCOPES, Action, Scope, by_title
from mcpspy.tui.model.commands import ANYWHERE
from mcpspy.tui.views.row_text import SLOW
from mcpspy.tui.views.table import COMMANDS
from mcpspy.tui.widgets.keys import keys_text

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "tui.md"
BEGIN = "<!-- written from mcpspy/tui/model/actions.py and commands.py by tests/tui/model/test_actions.py -->\n"


def code(names):
    return " ".join(f"`{name}`" for name in names)


def reference():
    """Return the second part of docs/tui.md as the tables define it."""
    found = []
    for title, actions in by_title(KEYS).items():
        found += ["", f"### {title.capitalize()}", "", "| key | |", "|---|---|"]
        found += [f"| {code(keys_text(action).split())} | {action.text} |" for action in actions]
    found += ["", "## Commands", "", f"After `:`. In the list of sessions only {code(ANYWHERE)}."]
    found += ["", "| command | |", "|---|---|"]
    found += [f"| {code([f'{name} {it.argument}'.strip()])} | {it.says} |" for name, it in COMMANDS.items()]
    return "\n".join([*found[1:], ""])


def test_the_document_lists_the_keys_and_commands_of_the_tables():
    """To write it again: MCPSPY_RENEW=1 pytest tests/tui/model/test_actions.py."""
    written, mark, listed = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    assert mark
    if os.environ.get("MCPSPY_RENEW"):
        DOCUMENT.write_text(f"{written}{BEGIN}{reference()}", encoding="utf-8")
    else:
        assert listed == reference()


def test_the_keys_that_the_readme_names_exist():
    section = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("## In the terminal\n")[2].partition("\n## ")[0]
    )
    named = {name for name in re.findall(r"`([^`]+)`", section) if len(name) == 1 or name.startswith("ctrl+")}
    known = {key for scope in KEYS for action in scope.actions for key in (*action.keys.split(","), *keys_text(action))}
    assert named
    assert named <= known


def test_every_action_has_a_text_and_a_scope_has_no_key_twice():
    for scope in KEYS:
        keys = [key for action in scope.actions for key in action.keys.split(",")]
        assert all(keys)
        assert len(set(keys)) == len(keys), scope
        assert all(action.text and action.name for action in scope.actions)


def test_scopes_with_one_title_stand_together_and_those_without_are_left_out():
    first, second, third, hidden = (Action(key, "do", f"does {key}") for key in "abcd")
    scopes = (Scope("x", (first,)), Scope("y", (second,)), Scope("", (hidden,)), Scope("x", (third,)))
    assert by_title(scopes) == {"x": [first, third], "y": [second]}


def test_what_is_slow_is_what_the_key_says():
    (slow,) = (action for scope in KEYS for action in scope.actions if action.name == "next_slow(1)")
    assert f" {SLOW / 1e9:.0f} s " in slow.text


def test_keys_of_the_message_work_in_the_timeline_too():
    texts = {it.text for it in SCOPES["message"].actions}
    passed_on = {it.text for scope in KEYS for it in scope.actions if it.name.startswith("message(")}
    assert passed_on == texts
