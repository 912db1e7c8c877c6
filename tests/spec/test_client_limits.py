"""P-01: the table of client limits is complete and consistent, and each row has its source and date."""

import re
from datetime import date

import pytest

from mcpspy.clients import table
from mcpspy.rules import RULES
from mcpspy.spec.client_limits import CLIENTS, EXPECTED, LIMITS, SEEN, limits

EACH = pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.rule}-{limit.client}")


def test_every_client_and_every_rule_has_a_row():
    assert {limit.client for limit in LIMITS} == set(CLIENTS)
    assert {limit.rule for limit in LIMITS} == set(EXPECTED) == {rule for rule in RULES if rule.startswith("compat/")}


def test_no_client_has_two_limits_for_one_rule():
    assert len({(limit.rule, limit.client) for limit in LIMITS}) == len(LIMITS)


def test_a_client_has_one_name_everywhere():
    """`install` and `check --client` use the same names."""
    for client in table.CLIENTS:
        assert CLIENTS.get(client.id, client.name) == client.name


@EACH
def test_a_row_has_its_source_and_date(limit):
    assert limit.source.startswith("https://")
    assert date(2025, 10, 1) <= date.fromisoformat(limit.dated) <= date.fromisoformat(SEEN)


@EACH
def test_a_row_tells_what_is_expected(limit):
    assert "{" not in limit.expected.replace(limit.pattern, "") or limit.rule == "compat/schema-members"
    assert limit.pattern in limit.expected
    assert all(word in limit.expected for word in limit.keywords) or limit.rule == "compat/schema-members"
    assert not limit.most or str(limit.most) in limit.expected
    re.compile(limit.pattern)


def test_limits_are_found_by_rule_and_client():
    (found,) = limits("compat/tool-count", {"openai-api", "cursor"})
    assert (found.client, found.most) == ("openai-api", 128)
    assert limits("compat/tool-count", ()) == []
