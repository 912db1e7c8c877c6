"""P-01: the SDKs treat the same tool lists as the table of limits says."""

import json
import subprocess

import pytest

from mcpspy.rules import RULES
from tests.limits import LIMIT
from tests.optional import require_peers
from tests.peers import prepare
from tests.rules.compat.test_limits import EMPTY, compat, listing
from tests.rules.examples import messages

REFERENCE = {"properties": {"x": {"$ref": "#/$defs/none"}}}
TOOLS = [
    {"inputSchema": EMPTY},
    {"inputSchema": None},
    {"inputSchema": {"type": "array"}},
    {"inputSchema": EMPTY | {"required": None}},
    {"inputSchema": EMPTY | {"properties": None}},
    {"inputSchema": EMPTY | REFERENCE},
    {"inputSchema": EMPTY, "outputSchema": {}},
    {"inputSchema": EMPTY, "outputSchema": EMPTY | {"properties": {"x": True}}},
    {"inputSchema": EMPTY, "outputSchema": EMPTY | REFERENCE},
    {"inputSchema": EMPTY, "name": "x" * 200},
]
LISTINGS = [[{"name": "good", "inputSchema": EMPTY}, {"name": "tool"} | tool] for tool in TOOLS] + [
    message.body.value["result"]["tools"]
    for rule in RULES.values()
    if rule.id.startswith("compat/")
    for example in (rule.fails, rule.passes)
    for message in messages(example)
    if "tools" in message.body.value.get("result", {})
]


def taken(sdk):
    """Return for each of the listings whether the SDK accepts it."""
    require_peers(sdk)
    command = [*prepare.lister(sdk, len(LISTINGS)), *prepare.lists(json.dumps(LISTINGS))]
    done = subprocess.run(command, capture_output=True, check=True, timeout=LIMIT)
    numbers = json.loads(done.stdout)
    assert all(number in (None, len(tools)) for number, tools in zip(numbers, LISTINGS, strict=True))
    return [number is not None for number in numbers]


@pytest.mark.parametrize(("sdk", "client"), [("python2", "py-sdk"), ("node", "ts-sdk")])
def test_an_sdk_refuses_the_lists_that_the_table_says(sdk, client):
    ours = [not compat(f"= 2025-11-25\n{listing(*tools)}", client) for tools in LISTINGS]
    theirs = taken(sdk)
    assert [tools[-1] for tools, our, their in zip(LISTINGS, ours, theirs, strict=True) if our != their] == []
    assert not all(theirs)


def test_the_python_sdk_1_refuses_a_missing_schema_only():
    found = [compat(f"= 2025-11-25\n{listing(*tools)}", "py-sdk") for tools in LISTINGS]
    assert taken("python1") == ["compat/schema-missing" not in {it.rule for it in each} for each in found]
