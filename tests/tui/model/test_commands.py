"""The command line and its history."""

import pytest

from mcpspy.errors import UsageError
from mcpspy.text import series
from mcpspy.tui.model.commands import ANYWHERE, History, parse, table

VIEWS = ["timeline", "findings", "tools", "sequence", "stderr"]
COMMANDS = table(VIEWS)


UNDERSTOOD = {
    "filter method:ping": ("filter", "method:ping"), "  filter   a  b ": ("filter", "a  b"), "filter": ("filter", ""),
    "q": ("quit", ""), "he": ("help", ""), "17": ("goto", "17"), "#17": ("goto", "17"), "goto 17": ("goto", "17"),
    "": ("", ""),
}  # fmt: skip
REFUSED = {
    "fliter x": "no command 'fliter'; did you mean 'filter'?",
    "xyzzy": f"no command 'xyzzy'; there are {series(list(COMMANDS))}",
    "fi": "'fi' may be filter, find or findings",
    "quit now": "quit takes no argument",
    "17 18": "no command '17'; there are ",
}


def test_a_command_is_understood_as_far_as_it_tells_and_the_nearest_is_named():
    assert {typed: parse(typed, COMMANDS) for typed in UNDERSTOOD} == UNDERSTOOD
    assert [parse(view, COMMANDS) for view in VIEWS] == [(view, "") for view in VIEWS]
    for typed, said in REFUSED.items():
        with pytest.raises(UsageError) as error:
            parse(typed, COMMANDS)
        assert str(error.value).startswith(said)


def test_history_goes_back_and_forth_and_returns_to_what_was_being_typed():
    history = History()
    for text in ("a", "b", "", "c", "b"):
        history.add(text)
    assert [history.older("draft"), history.older("b"), history.older("c"), history.older("a")] == ["b", "c", "a", "a"]
    newer = [history.newer(text) for text in ("a", "c", "b", "draft")]
    assert newer == ["c", "b", "draft", "draft"]
    assert History().older("x") == History().newer("x") == "x", "nothing was typed before"


def test_every_view_has_a_command_and_those_of_every_screen_exist():
    assert [name for name in COMMANDS if name in VIEWS] == VIEWS
    assert set(ANYWHERE) <= set(COMMANDS)
