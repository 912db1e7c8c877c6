"""Declared and used capabilities: cases that the rule examples do not cover."""

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


ASKS = '> 1 initialize {"protocolVersion":"2025-06-18","capabilities":%s,"clientInfo":{"name":"c","version":"1"}}'
AGREES = '< 1 = {"protocolVersion":"2025-06-18","capabilities":%s,"serverInfo":{"name":"s","version":"1"}}'
ROOTS, EMPTY = '{"roots":{}}', "{}"
MISSING = '{"code":-32601,"message":"Method not found"}'


def begun(client, server):
    return f"{ASKS % client}\n{AGREES % server}\n> notifications/initialized\n"


@pytest.mark.parametrize(
    ("declared", "asked", "severity"),
    [
        ('{"resources":{}}', "resources/list", "warning"),
        ('{"resources":{}}', "resources/templates/list", "info"),
        ('{"resources":{"subscribe":true}}', 'resources/subscribe {"uri":"a:b"}', "warning"),
        ('{"logging":{}}', 'logging/setLevel {"level":"info"}', "warning"),
        ('{"resources":{}}', 'resources/subscribe {"uri":"a:b"}', None),
        ('{"resources":{"subscribe":false}}', 'resources/subscribe {"uri":"a:b"}', None),
        ('{"resources":{}}', 'resources/read {"uri":"a:b"}', None),
        ("{}", "prompts/list", None),
    ],
)
def test_a_declared_capability_that_is_answered_by_method_not_found_is_the_servers_fault(declared, asked, severity):
    """R-08: nx-mcp and other servers declare resources but do not implement the method."""
    found = findings(f"{begun('{}', declared)}> 2 {asked}\n< 2 ! {MISSING}\n> 3 {asked}\n< 3 ! {MISSING}")
    told_of = [it for it in found if it.rule == "lifecycle/capability-not-served"]
    assert [(it.severity, it.blame, it.frame) for it in told_of] == ([(severity, "server", 5)] if severity else [])


def test_a_client_that_declares_roots_and_has_none_is_told_the_same():
    """R-08."""
    text = f"{begun(ROOTS, EMPTY)}< 2 roots/list\n> 2 ! {MISSING}"
    (finding,) = [it for it in findings(text) if it.rule == "lifecycle/capability-not-served"]
    assert (finding.blame, finding.frame) == ("client", 5)


def test_over_http_a_capability_that_is_not_served_is_the_same_finding():
    """R-08."""
    text = f"= 2025-06-18 http\n>> 2 resources/list\n<< 200 2 ! {MISSING}"
    assert told(text, "lifecycle/") == ["#17 lifecycle/capability-not-served"]
