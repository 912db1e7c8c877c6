"""P-01: tool schemas that clients refuse, and the findings about them."""

import pytest

from tests.rules.compat.test_limits import EMPTY, compat, listing

BEGIN = "= 2025-11-25\n"


def told(schema, client, **members):
    tool = {"name": "a", "inputSchema": schema} | members
    return [(it.rule, it.pointer) for it in compat(BEGIN + listing(tool), client)]


INPUT = "/result/tools/0/inputSchema"


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


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_output_schemas_and_members_count_up_to_2025_11_25(revision):
    """In 2026-07-28 an outputSchema may be any schema, and SDKs accept any member of both schemas."""
    tool = {"name": "a", "inputSchema": EMPTY | {"properties": {"x": True}}, "outputSchema": {"type": "array"}}
    if revision == "2025-11-25":
        text = BEGIN + listing(tool)
        expected = {"compat/output-schema-type", "compat/schema-members"}
    else:
        text = listing(tool).replace("tools/list", "tools/list {META}")
        expected = set()
    assert {it.rule for it in compat(text, "ts-sdk")} == expected


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"properties": {"x": {}, "y": True}}, "/properties/y"),
        ({"properties": None}, "/properties"),
        ({"required": None}, "/required"),
        ({"required": ["x", 5]}, "/required"),
    ],
)
def test_members_that_sdks_refuse(schema, pointer):
    expected = [("compat/schema-members", INPUT + pointer)]
    assert told(EMPTY | schema, "ts-sdk") == expected
    output = [("compat/schema-members", f"/result/tools/0/outputSchema{pointer}")]
    assert told(EMPTY, "ts-sdk", outputSchema=EMPTY | schema) == output
    assert told(EMPTY, "cursor", outputSchema=EMPTY | schema) == []


def test_combinations_are_fine_inside_a_property():
    assert told(EMPTY | {"properties": {"x": {"oneOf": [{}], "allOf": [{}]}}}, "anthropic-api") == []
    found = [("compat/schema-combination", f"{INPUT}/allOf")]
    assert told(EMPTY | {"allOf": [{}], "anyOf": [{}]}, "anthropic-api") == found


def test_if_and_then_at_the_top_level_are_no_combination():
    assert told(EMPTY | {"if": {}, "then": {}}, "anthropic-api") == []


@pytest.mark.parametrize(
    ("schema", "clients"),
    [
        ({"properties": {"x": {"items": [{}]}}}, {"anthropic-api"}),
        ({"properties": {"x": {"minimum": 1, "exclusiveMinimum": True}}}, {"anthropic-api", "vscode"}),
        ({"required": "x"}, {"anthropic-api", "vscode"}),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, set()),
        ({"properties": {"x": {"$ref": "#/nowhere"}}}, set()),
    ],
)
def test_a_schema_is_judged_in_the_dialect_of_the_client(schema, clients):
    for client in ("anthropic-api", "vscode"):
        expected = [("compat/schema-dialect", INPUT)] * (client in clients)
        found = [(rule, where[: len(INPUT)]) for rule, where in told(EMPTY | schema, client)]
        assert found == expected, client


def test_an_invalid_schema_is_told_with_its_reason():
    (finding,) = compat(BEGIN + listing({"name": "a", "inputSchema": EMPTY | {"required": "x"}}), "vscode")
    assert finding.severity == "warning"
    assert finding.message.startswith(
        'tool "a" has an inputSchema that is invalid at "/required": "x" is not of type "array"; expected'
    )


@pytest.mark.parametrize(
    ("property_", "found"),
    [
        ({"type": "array"}, "/properties/x"),
        ({"type": "array", "items": {"type": "array"}}, "/properties/x/items"),
        ({"anyOf": [{"type": "null"}, {"type": "array"}]}, "/properties/x/anyOf/1"),
        ({"type": "array", "items": {}}, None),
        ({"type": "array", "items": True}, None),
        ({"type": ["array", "null"]}, None),
        ({"default": {"type": "array"}}, None),
    ],
)
def test_arrays_without_items(property_, found):
    expected = [("compat/array-items", INPUT + found)] if found else []
    assert told(EMPTY | {"properties": {"x": property_}}, "openai-api") == expected


def test_arrays_in_definitions_are_not_judged():
    assert told(EMPTY | {"$defs": {"x": {"type": "array"}}}, "openai-api") == []


def test_references_in_definitions_are_judged():
    mixed = {"$ref": "#/$defs/y", "title": "Y"}
    schema = EMPTY | {"$defs": {"x": {"properties": {"z": mixed}}, "y": {"type": "string"}}}
    assert told(schema, "gemini-api") == [("compat/reference-siblings", f"{INPUT}/$defs/x/properties/z")]
    assert told(EMPTY | {"$defs": {"x": {"$ref": "#/$defs/x", "description": "d", "default": 1}}}, "gemini-api") == []


@pytest.mark.parametrize(
    ("values", "refused"),
    [([1], True), (["a", True], True), ([0.5], True), (["a"], False), (["a", None], False), ([], False), (5, False)],
)
def test_the_values_of_an_enum(values, refused):
    found = told(EMPTY | {"properties": {"x": {"enum": values}}}, "gemini-api")
    assert found == [("compat/enum-values", f"{INPUT}/properties/x")] * refused


def test_a_message_is_short_whatever_names_there_are():
    long = "x" * 10_000
    schema = {"type": long, "properties": {long: {"type": "array", "enum": [1], "$ref": "#", "items": [5]}, "y": True}}
    found = compat(BEGIN + listing({"name": long, "inputSchema": schema, "outputSchema": {"type": long}}))
    assert len({it.rule for it in found}) > 5
    assert max(len(it.message) for it in found) < 600


def test_a_type_that_no_dialect_knows_is_one_finding():
    """R-07: any other fault of the schema is a finding of its own."""
    found = compat("= 2025-11-25\n" + listing({"name": "a", "inputSchema": {"type": "x", "properties": {}}}))
    assert [it.rule for it in found] == ["compat/schema-type"]
    schema = {"properties": {"b": {"type": "array", "items": [{"type": "string"}]}}}
    found = compat("= 2025-11-25\n" + listing({"name": "a", "inputSchema": schema}))
    assert {"compat/schema-type", "compat/schema-dialect"} <= {it.rule for it in found}
