"""The limits of clients in the views of tools."""

from mcpspy.rules import Finding
from mcpspy.spec.client_limits import CLIENTS
from mcpspy.tui.views.tools import limit_mark, limits_text


def found(*severities):
    return [Finding("compat/tool-name", it, "server", 1, 0, (), "", "", None, "") for it in severities]


def test_a_tool_has_the_mark_of_the_worst_that_is_refused():
    assert limit_mark(found()) == ("  ", "")
    assert limit_mark(found("info")) == ("· ", "view--info")
    assert limit_mark(found("info", "error", "warning")) == ("✗ ", "view--error")
    assert limit_mark(found("info", "warning")) == ("! ", "view--warning")


def test_tools_that_break_a_limit_are_counted():
    refused = [found("info", "error"), [], found("info")]
    assert limits_text(frozenset(["cursor", "claude"]), refused) == "claude, cursor: 2 of 3 tools break one"
    assert limits_text(frozenset(CLIENTS), []) == "all clients: 0 of 0 tools break one"
