"""What was declared, and what is used: what the examples of the rules leave open."""

import pytest

from mcpspy.rules.lifecycle.capabilities import undeclared
from tests.rules.examples import findings, told

ASK = '> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
AGREE = '< 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'


def test_a_capability_is_told_once_and_for_the_side_that_has_not_declared_it():
    text = f"""
        {ASK}
        {AGREE}
        > notifications/initialized
        > 2 tools/list
        > 3 tools/list
        < 7 sampling/createMessage {{"messages":[],"maxTokens":1}}
    """
    found = [it for it in findings(text) if it.rule == "lifecycle/capability-missing"]
    assert [(it.frame, it.message) for it in found] == [
        (4, "the server did not declare the capability tools, which tools/list needs"),
        (6, "the client did not declare the capability sampling, which sampling/createMessage needs"),
    ]


def test_a_sub_capability_is_asked_for_by_its_path():
    text = f"""
        {ASK}
        {AGREE.replace('"capabilities":{}', '"capabilities":{"resources":{"subscribe":false}}')}
        > notifications/initialized
        > 2 resources/subscribe {{"uri":"a:b"}}
    """
    (finding,) = [it for it in findings(text) if it.rule == "lifecycle/capability-missing"]
    assert "resources.subscribe" in finding.message


@pytest.mark.parametrize(
    ("method", "params", "declared", "lacking"),
    [
        ("roots/list", None, {"roots": {}}, None),
        ("roots/list", None, {"roots": True}, None),
        ("roots/list", None, {"roots": False}, "roots"),
        ("roots/list", None, {}, "roots"),
        ("roots/list", None, 5, "roots"),
        ("sampling/createMessage", {}, {"sampling": {}}, None),
        ("sampling/createMessage", {"tools": []}, {"sampling": {}}, "sampling.tools"),
        ("sampling/createMessage", {"tools": []}, {"sampling": {"tools": {}}}, None),
        ("elicitation/create", {}, {"elicitation": {}}, None),
        ("elicitation/create", {"mode": "form"}, {"elicitation": {}}, None),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {}}, "elicitation.url"),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {"form": {}}}, "elicitation.url"),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {"url": {}}}, None),
        ("elicitation/create", {}, {"elicitation": {"url": {}}}, "elicitation.form"),
        ("elicitation/create", {"mode": []}, {"elicitation": {}}, None),
    ],
)
def test_what_is_asked_of_a_client_needs_a_capability_and_its_part(method, params, declared, lacking):
    """2025-11-25, client/elicitation and client/sampling, capabilities."""
    assert undeclared(method, params, declared) == lacking


def test_a_server_that_asks_by_url_asks_a_client_that_has_said_so():
    text = '= 2025-11-25\n< 7 elicitation/create {"mode":"url","message":"x","url":"https://a/","elicitationId":"1"}'
    assert told(text, "lifecycle/") == ["#4 lifecycle/capability-missing"]
