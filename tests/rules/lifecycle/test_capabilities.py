"""Declared and used capabilities: cases that the rule examples do not cover."""

import pytest

from mcpspy.rules.lifecycle.capabilities import undeclared


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
