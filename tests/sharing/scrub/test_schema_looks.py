"""What looks like a JSON Schema."""

import pytest

from mcpspy.sharing.scrub.schema_looks import are_schemas, is_schema


@pytest.mark.parametrize(
    "value",
    [
        {"type": "object", "properties": {"a": {}, "b": True, "c": {"$ref": "#/x"}}, "required": ["a"]},
        {"type": ["string", "null"], "title": "A", "minLength": 1, "x-order": "a"},
        {"anyOf": [{"type": "string"}, {"const": {"a": 1}}], "default": 1, "deprecated": True},
        {"type": "array", "items": {"type": "number", "minimum": "1"}},
    ],
)
def test_keywords_with_values_of_their_types_are_a_schema(value):
    assert is_schema(value)
    assert are_schemas({"a": value})


@pytest.mark.parametrize(
    "value",
    [
        None, [], {}, {"description": "a"}, {"type": "rich_text"}, {"type": "number", "number": 1},
        {"type": "object", "properties": {"a": {"value": "b"}}}, {"type": "string", "title": ["a"]},
        {"type": "array", "items": [{"a": "b"}]}, {"type": "object", "required": "a"}, {"type": {"a": "b"}},
        {"type": "object", "x-keys": {"a": "b"}},
    ],
)  # fmt: skip
def test_other_members_or_types_are_none(value):
    """A-13."""
    assert not is_schema(value)
