"""P-01: tool schemas that clients refuse, and the findings about them: `cases/`, in the form of `tests/cases.py`.

The outcome of a listing has severity, rule, pointer, and the clients that refuse it.
"""

from pathlib import Path

import pytest

from mcpspy.spec.client_limits import CLIENTS
from tests.cases import check
from tests.rules.compat.test_limits import EMPTY, compat, listing

BEGIN = "= 2025-11-25\n"


@pytest.mark.parametrize(
    ("schema", "got"),
    [
        ({"anyOf": [EMPTY]}, "an inputSchema without type"),
        ({"type": "array", "items": {}}, 'an inputSchema of type "array"'),
        ({"type": ["object", "null"], "properties": {}}, "an inputSchema of type an array of 2"),
    ],
)
def test_what_is_in_place_of_the_type(schema, got):
    (finding,) = compat(BEGIN + listing({"name": "a", "inputSchema": schema}), "ts-sdk")
    assert finding.rule == "compat/schema-type"
    assert finding.message.startswith(f'tool "a" has {got}; expected an inputSchema with "type": "object", else')


@pytest.mark.parametrize(
    ("members", "got"),
    [
        ({}, "no inputSchema"),
        ({"inputSchema": None}, "the inputSchema null"),
        ({"inputSchema": True}, "the inputSchema true"),
    ],
)
def test_what_is_in_place_of_the_schema(members, got):
    (finding,) = compat(BEGIN + listing({"name": "a"} | members), "codex")
    assert finding.rule == "compat/schema-missing"
    assert finding.message.startswith(f'tool "a" has {got}; expected an object as inputSchema, else all tools of the')


def test_an_invalid_schema_is_told_with_its_reason():
    (finding,) = compat(BEGIN + listing({"name": "a", "inputSchema": EMPTY | {"required": "x"}}), "vscode")
    assert finding.severity == "warning"
    assert finding.message.startswith(
        'tool "a" has an inputSchema that is invalid at "/required": "x" is not of type "array"; expected'
    )


def test_a_message_is_short_whatever_names_there_are():
    long = "x" * 10_000
    schema = {"type": long, "properties": {long: {"type": "array", "enum": [1], "$ref": "#", "items": [5]}, "y": True}}
    found = compat(BEGIN + listing({"name": long, "inputSchema": schema, "outputSchema": {"type": long}}))
    assert len({it.rule for it in found}) > 5
    assert max(len(it.message) for it in found) < 600


def refusals(transcript, _):
    """Return the findings, each with the clients that have it."""
    clients = {}
    for client in CLIENTS:
        for it in compat(transcript, client):
            clients.setdefault(f"#{it.frame} {it.severity} {it.rule} {it.pointer}", []).append(client)
    return [f"{finding} : {' '.join(names)}" for finding, names in sorted(clients.items())]


def test_each_schema_is_refused_by_exactly_these_clients():
    check(Path(__file__).parent / "cases" / "schemas.txt", refusals)
