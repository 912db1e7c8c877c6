"""P-01: each limit of each client has a tool list that breaks it and one that respects it."""

import json

import pytest

from mcpspy.rules import RULES
from mcpspy.rules.compat import subschemas
from mcpspy.spec.client_limits import CLIENTS, LIMITS, Effect
from tests.rules.examples import findings

EMPTY = {"type": "object", "properties": {}}
SEVERITIES = {Effect.REQUEST: "error", Effect.LIST: "error", Effect.TOOL: "warning", Effect.CUT: "info"}
OTHER_EXAMPLES = {
    ("compat/tool-name", "cursor"): {"name": "x" * 59, "inputSchema": EMPTY},
    ("compat/tool-name", "gemini-api"): {"name": "1st", "inputSchema": EMPTY},
    ("compat/schema-dialect", "vscode"): {"name": "a", "inputSchema": EMPTY | {"required": "a"}},
    ("compat/schema-members", "cursor"): {"name": "a", "inputSchema": EMPTY | {"required": None}},
}
"""A tool that the client refuses, where the example of the rule is not one."""


def listing(*tools, number=2):
    return f"> {number} tools/list\n< {number} = {json.dumps({'tools': list(tools)})}\n"


def compat(text, *clients):
    return [finding for finding in findings(text, clients or CLIENTS) if finding.rule.startswith("compat/")]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.rule}-{limit.client}")
def test_a_client_refuses_what_breaks_its_limit_and_nothing_else(limit):
    tool = OTHER_EXAMPLES.get((limit.rule, limit.client))
    text = f"= 2025-11-25\n{listing(tool)}" if tool else RULES[limit.rule].fails
    (finding,) = [finding for finding in compat(text, limit.client) if finding.rule == limit.rule]
    assert finding.severity == SEVERITIES[limit.effect]
    assert (finding.blame, finding.spec) == ("server", limit.source)
    assert f"expected {limit.expected}, else {limit.effect.value} ({limit.client})" in finding.message
    assert compat(RULES[limit.rule].passes, limit.client) == []


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.id.startswith("compat/")], ids=lambda it: it.id
)
def test_nothing_is_refused_where_no_client_is_named(rule):
    assert [finding for finding in findings(rule.fails) if finding.rule.startswith("compat/")] == []


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.id.startswith("compat/")], ids=lambda it: it.id
)
def test_a_rule_is_as_severe_as_the_worst_of_its_rows(rule):
    found = [SEVERITIES[limit.effect] for limit in LIMITS if limit.rule == rule.id]
    assert rule.severity == min(found, key=["error", "warning", "info"].index)


def test_all_clients_that_refuse_a_tool_for_one_reason_make_one_finding():
    (finding,) = compat(f"= 2025-11-25\n{listing({'name': 'a.b', 'inputSchema': EMPTY})}")
    assert finding.message == (
        'tool "a.b"; expected a tool name that matches ^[a-zA-Z0-9_-]{1,128}$, else the whole request is refused '
        "(anthropic-api); expected a tool name that matches ^[a-zA-Z0-9_-]{1,64}$, else the whole request is refused "
        "(bedrock-api, openai-api), all tools of the server are dropped (claude-desktop); rename the tool"
    )
    assert finding.pointer == "/result/tools/0/name"


def test_a_server_may_raise_the_limit_of_a_result():
    raised = {"name": "log", "inputSchema": EMPTY, "_meta": {"anthropic/maxResultSizeChars": 500000}}
    large = RULES["compat/result-size"].fails.partition("= 2025-11-25")[2]
    assert [it.rule for it in compat(f"= 2025-11-25{large}", "claude-code")] == ["compat/result-size"]
    raised_first = f"= 2025-11-25\n{listing(raised, number=1)}{large}"
    assert compat(raised_first, "claude-code") == []


def test_the_worst_effect_decides():
    """Claude Code leaves the tool out; the Anthropic API refuses the request."""
    text = f"= 2025-11-25\n{listing({'name': 'a', 'inputSchema': EMPTY | {'anyOf': [{}]}})}"
    assert [it.severity for it in compat(text, "claude-code")] == ["warning"]
    assert [it.severity for it in compat(text, "claude-code", "anthropic-api")] == ["error"]


def test_a_listing_that_has_not_changed_is_judged_once():
    bad = {"name": "a.b", "inputSchema": EMPTY}
    again = listing(bad) + listing(bad, number=3)
    assert [it.frame for it in compat(f"= 2025-11-25\n{again}", "openai-api")] == [5]
    other = listing(bad) + listing(bad | {"description": "new"}, number=3)
    assert [it.frame for it in compat(f"= 2025-11-25\n{other}", "openai-api")] == [5, 7]


@pytest.mark.parametrize(
    "tools", [[], None, 5, [None, 5, "x"], [{}], [{"name": 5, "inputSchema": []}], [{"name": "a"}]]
)
def test_any_shape_of_a_listing_is_judged(tools):
    text = f"= 2025-11-25\n> 2 tools/list\n< 2 = {json.dumps({'tools': tools})}"
    assert {it.rule for it in compat(text)} <= {"compat/schema-missing"}


def test_the_schemas_in_a_schema():
    schema = {
        "properties": {"a": {"items": {"type": "string"}}, "b": True},
        "$defs": {"c": {}},
        "anyOf": [{"not": {}}],
        "default": {"type": "array"},
    }
    found = ["/".join(map(str, path)) for path, _ in subschemas(schema)]
    assert found == ["", "properties/a", "properties/a/items", "$defs/c", "anyOf/0", "anyOf/0/not"]


def test_a_schema_of_any_depth_is_looked_at():
    schema = {}
    for _ in range(500):
        schema = {"not": schema}
    assert len(list(subschemas(schema))) == 65
    assert list(subschemas(5)) == []
