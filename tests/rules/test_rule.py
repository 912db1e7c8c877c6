"""Every rule finds something in the example that fails, and nothing in the one that passes."""

import pytest

from mcpspy.rules import RULES, SEVERITIES
from mcpspy.spec.revisions import Revision
from tests.rules.examples import findings

EACH = pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)


@EACH
def test_a_rule_finds_what_is_wrong_in_its_example(rule):
    found = [finding for finding in findings(rule.fails) if finding.rule == rule.id]
    assert found
    for finding in found:
        assert finding.message
        assert not finding.message.endswith(".")
        assert finding.blame in ("client", "server")
        assert finding.spec.startswith("https://")


@EACH
def test_a_rule_is_content_with_what_is_right(rule):
    assert [finding for finding in findings(rule.passes) if finding.rule == rule.id] == []


@EACH
def test_an_example_that_passes_has_no_error_but_by_design(rule):
    """What is shown as right is right in every respect but those that the notation brings along."""
    allowed = {"pairing/unanswered", "pairing/orphan-response", "jsonrpc/not-an-object"}
    wrong = [finding for finding in findings(rule.passes) if finding.severity == "error"]
    assert {finding.rule for finding in wrong} <= allowed


@EACH
def test_a_rule_explains_itself(rule):
    group, _, name = rule.id.partition("/")
    assert group
    assert name
    assert rule.severity in SEVERITIES
    assert rule.explanation.endswith(".")
    assert not rule.explanation[0].islower()
    for revision in Revision:
        assert rule.url(revision).startswith("https://")


@pytest.mark.parametrize(
    ("rule", "revision", "page"),
    [
        ("framing/not-json", Revision.R2026_07_28, "specification/2026-07-28/basic/transports/stdio"),
        ("jsonrpc/id-null", Revision.R2024_11_05, "specification/2024-11-05/basic/messages#requests"),
        ("jsonrpc/id-null", Revision.R2025_03_26, "specification/2025-03-26/basic#requests"),
        ("schema/invalid", Revision.R2025_03_26, "blob/main/schema/2025-03-26/schema.ts"),
        ("tools/schema-invalid", Revision.R2025_06_18, "specification/2025-06-18/server/tools#tool"),
        ("tools/schema-invalid", Revision.R2025_11_25, "specification/2025-11-25/basic#json-schema-usage"),
    ],
)
def test_a_link_leads_to_where_its_revision_says_so(rule, revision, page):
    assert RULES[rule].url(revision).endswith(page)
