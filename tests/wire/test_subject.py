"""The subject of a request or notification."""

import pytest

from mcpspy.wire.subject import subject


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("tools/call", {"name": "query"}, "query"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "file:///x"}, "file:///x"),
        ("resources/subscribe", {"uri": "file:///x"}, "file:///x"),
        ("notifications/resources/updated", {"uri": "file:///x"}, "file:///x"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}, "p"),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "u"}}, "u"),
        ("completion/complete", {"ref": "p"}, None),
        ("tools/call", {"name": 5}, None),
        ("tools/call", ["query"], None),
        ("tools/call", None, None),
        ("tools/list", {"name": "x"}, None),
        ("resources/list", None, None),
    ],
)
def test_an_exchange_is_about_a_tool_a_prompt_or_a_resource(method, params, expected):
    assert subject(method, params) == expected
