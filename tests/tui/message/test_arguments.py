"""The arguments of a call beside the tool's declarations, even if these are malformed."""

import json
from pathlib import Path

import pytest
from hypothesis import given

from mcpspy.tui.message.facts import arguments, limits_text, type_text
from tests.cases import pairs
from tests.each import each
from tests.limits import proportionate
from tests.test_timeline import JSON

CASES = Path(__file__).parent / "cases"
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "where"},
        "days": {"type": "integer", "minimum": 1},
        "units": {"enum": ["metric", "imperial"]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "a/b": {"type": "string"},
    },
    "required": ["city", "units"],
    "$defs": {"tag": {"type": "string"}},
}


def marks(given, schema=SCHEMA):
    return {it.name: it.mark for it in arguments(given, schema)}


def test_each_argument_says_whether_it_fits():
    assert marks({"city": 5, "days": 0, "tags": ["x", 1], "a/b": None, "lang": "en"}) == {
        "city": "wrong", "days": "wrong", "units": "missing", "tags": "wrong", "a/b": "wrong", "lang": "undeclared",
    }  # fmt: skip
    assert marks({"city": "Berlin", "units": "metric"}) == {
        "city": "fits", "days": "absent", "units": "fits", "tags": "absent", "a/b": "absent",
    }  # fmt: skip
    found = marks({"city": "Berlin", "days": "x"})
    assert (found["city"], found["days"]) == ("fits", "wrong"), "what fits is not blamed"
    assert marks({}, {"required": ["x", 5]}) == {"x": "missing"}, "what is required and not declared"


def test_an_argument_has_its_type_value_fault_and_description():
    city, days, units, tags, _ = arguments({"days": "three"}, SCHEMA)
    assert (city.type, city.required, city.value, city.description) == ("string", True, None, "where")
    assert (days.type, days.required, days.value) == ("integer", False, '"three"')
    assert days.fault == '"three" is not of type "integer"'
    assert (units.type, tags.type) == ('"metric" | "imperial"', "tag[]")


def told(name):
    """Return the schemas of a file, each with the words below it."""
    return [(json.loads(schema), words.strip('"')) for schema, words in pairs(CASES / name)]


@each("schema, text", told("limits.txt"))
def test_the_limits_of_an_argument_are_told_in_a_few_words(schema, text):
    assert limits_text(schema) == text
    (argument,) = arguments({}, {"properties": {"x": schema}})
    assert argument.limits == text


@each("schema, text", told("types.txt"))
def test_a_type_is_told_in_a_few_words(schema, text):
    assert type_text(schema) == text


def test_what_the_schema_closes_out_is_wrong():
    closed = SCHEMA | {"additionalProperties": False}
    found = {it.name: it for it in arguments({"city": "x", "units": "metric", "lang": "en"}, closed)}
    assert found["lang"].mark == "wrong"
    assert "lang" in found["lang"].fault
    assert found["city"].mark == "fits"


@pytest.mark.parametrize(
    "schema", [None, True, [], "x", {"properties": 5}, {"required": "x"}, {"properties": {"x": 1}}]
)
def test_a_schema_that_is_none_blames_nobody(schema):
    assert [it.mark for it in arguments({"x": 1}, schema)] in (["undeclared"], ["unknown"])


@given(JSON, JSON)
def test_anything_may_be_given_and_declared(given_, schema):
    for declared in (
        schema,
        {"properties": schema},
        {"type": "object", "properties": {"x": schema}, "required": schema},
    ):
        for argument in arguments({"x": given_}, declared):
            assert isinstance(argument.type, str)
            assert argument.value is None or len(argument.value) < 2000
        arguments(given_, declared)


def test_a_heavy_schema_is_not_judged_and_nobody_waits():
    heavy = {"$defs": {"d0": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/d28"}}}
    for level in range(1, 29):
        heavy["$defs"][f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    with proportionate(2):
        assert marks({"x": 1}, heavy) == {"x": "unknown"}


def test_arguments_of_any_number_are_cut_off():
    assert len(arguments({str(n): n for n in range(5000)}, {})) == 200
