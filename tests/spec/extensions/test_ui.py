"""The shapes of MCP Apps (X-01), tested with values written for this test."""

import pytest

from mcpspy.spec.dialect import Dialect
from mcpspy.spec.extensions.ui import UI
from mcpspy.spec.revisions import R2025_11_25, R2026_07_28
from mcpspy.spec.schema import explain, verdict
from mcpspy.wire.jsonrpc import Result

CSP = {"connectDomains": ["https://example.com"], "resourceDomains": []}


def tool(**ui):
    return {"tools": [{"name": "map", "_meta": {"ui": ui}}]}


def contents(**ui):
    return {"contents": [{"uri": "ui://map", "text": "", "_meta": {"ui": ui}}]}


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("ui.Tools", tool(resourceUri="ui://map", visibility=["app", "model"])),
        ("ui.Tools", {"tools": [{"name": "plain"}, {"_meta": {"com.example/x": 1}}]}),
        ("ui.Contents", contents(csp=CSP, permissions={"camera": {}}, prefersBorder=True, domain="a.example.com")),
        ("ui.Resources", {"resources": []}),
    ],
)
def test_x_01_what_tools_and_resources_say_of_interfaces_has_its_shape(definition, value):
    assert verdict(R2025_11_25, definition, value)
    assert verdict(R2026_07_28, definition, value)


@pytest.mark.parametrize(
    ("definition", "value", "pointer"),
    [
        ("ui.Tools", tool(resourceUri=7), "/tools/0/_meta/ui/resourceUri"),
        ("ui.Tools", tool(visibility=["user"]), "/tools/0/_meta/ui/visibility/0"),
        ("ui.Tools", tool(visibility="app"), "/tools/0/_meta/ui/visibility"),
        ("ui.Contents", contents(csp={"connectDomains": "*"}), "/contents/0/_meta/ui/csp/connectDomains"),
        ("ui.Contents", contents(permissions={"camera": True}), "/contents/0/_meta/ui/permissions/camera"),
    ],
)
def test_x_01_what_is_wrong_in_it_is_found(definition, value, pointer):
    assert explain(R2026_07_28, definition, value).pointer == pointer


def test_x_01_only_results_get_what_it_adds():
    dialect = Dialect(R2025_11_25, frozenset({UI.id}))
    assert dialect.additions("tools/list", Result) == ["ui.Tools"]
    assert dialect.additions("tools/call", Result) == []


def test_every_name_begins_with_the_prefix():
    assert all(name.startswith(UI.prefix) for name in UI.definitions)
