import pytest

from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    ANY,
    INTEGER,
    OBJECT,
    STRING,
    array,
    both,
    build,
    changed,
    const,
    deprecated,
    either,
    enum,
    mapping,
    named_since,
    only,
    open_record,
    optional,
    record,
    since,
    until,
)

FIVE = (R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28)  # without later revisions
INT = {"type": "integer"}
TEXT = {"type": "string"}


def built(definitions, revision=R2025_06_18):
    return build(definitions, revision)


def lifetime(type_):
    return [revision for revision in FIVE if "X" in build({"X": type_}, revision)]


def test_a_record_has_required_and_optional_members():
    assert built({"X": record({"a": STRING, "b?": INTEGER})}) == {
        "X": {"type": "object", "properties": {"a": TEXT, "b": INT}, "required": ["a"]}
    }
    assert built({"X": record({})}) == {"X": {"type": "object"}}


def test_a_record_whose_other_members_are_not_for_mcp_to_say_tells_so():
    assert built({"X": open_record({"a?": STRING})})["X"] == {
        "type": "object",
        "properties": {"a": TEXT},
        "additionalProperties": {},
    }


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        (array(INTEGER), {"type": "array", "items": INT}),
        (array(INTEGER, at_most=3), {"type": "array", "items": INT, "maxItems": 3}),
        (mapping(INTEGER), {"type": "object", "additionalProperties": INT}),
        (either(STRING, INTEGER), {"anyOf": [TEXT, INT]}),
        (both(OBJECT, ANY), {"allOf": [{"type": "object"}, {}]}),
        (const("a"), {"type": "string", "const": "a"}),
        (const(-32600), {"type": "integer", "const": -32600}),
        (enum("a", "b"), {"type": "string", "enum": ["a", "b"]}),
    ],
)
def test_each_type_is_a_piece_of_json_schema(type_, schema):
    assert built({"X": type_}) == {"X": schema}


@pytest.mark.parametrize(
    ("type_", "revisions"),
    [
        (STRING, list(FIVE)),
        (since(R2024_11_05, STRING), list(FIVE)),
        (since(R2025_11_25, STRING), [R2025_11_25, R2026_07_28]),
        (until(R2025_03_26, STRING), [R2024_11_05, R2025_03_26]),
        (until(R2026_07_28, STRING), list(FIVE)),
        (only(R2025_06_18, STRING), [R2025_06_18]),
        (since(R2025_03_26, until(R2025_11_25, STRING)), [R2025_03_26, R2025_06_18, R2025_11_25]),
        (since(R2025_06_18, changed(STRING, {R2025_11_25: INTEGER})), [R2025_06_18, R2025_11_25, R2026_07_28]),
        (named_since(R2025_11_25, STRING), [R2025_11_25, R2026_07_28]),
        (until(R2025_11_25, named_since(R2025_11_25, STRING)), [R2025_11_25]),
    ],
)
def test_a_definition_is_there_in_its_revisions(type_, revisions):
    assert lifetime(type_) == revisions


def test_a_type_may_change_more_than_once():
    type_ = changed(STRING, {R2025_03_26: INTEGER, R2025_11_25: OBJECT})
    types = [build({"X": type_}, revision)["X"]["type"] for revision in FIVE]
    assert types == ["string", "integer", "integer", "object", "object"]


def test_a_member_is_there_in_its_revisions():
    shape = record({"a?": since(R2025_06_18, STRING), "b": only(R2025_03_26, STRING)})
    found = {revision: set(build({"X": shape}, revision)["X"].get("properties", ())) for revision in FIVE}
    assert found == {
        R2024_11_05: set(),
        R2025_03_26: {"b"},
        R2025_06_18: {"a"},
        R2025_11_25: {"a"},
        R2026_07_28: {"a"},
    }


def test_a_member_may_be_required_in_some_revisions_only():
    shape = record({"a": changed(optional(STRING), {R2025_11_25: STRING, R2026_07_28: optional(STRING)})})
    required = [build({"X": shape}, revision)["X"].get("required") for revision in FIVE]
    assert required == [None, None, None, ["a"], None]


def test_a_name_refers_to_a_definition():
    assert built({"X": record({"a": "Y"}), "Y": STRING})["X"]["properties"] == {"a": {"$ref": "#/$defs/Y"}}


def test_a_definition_without_a_name_yet_stands_where_it_is_used():
    definitions = {"X": record({"a": "Y"}), "Y": named_since(R2025_11_25, record({"b": STRING}))}
    assert build(definitions, R2025_06_18) == {
        "X": {
            "type": "object",
            "properties": {"a": {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}},
            "required": ["a"],
        }
    }
    assert build(definitions, R2025_11_25)["X"]["properties"] == {"a": {"$ref": "#/$defs/Y"}}


def test_a_record_has_the_members_of_its_bases_and_its_own_win():
    definitions = {
        "X": record({"c": INTEGER}, "Y", since(R2025_11_25, "Z")),
        "Y": record({"a": STRING, "c?": STRING}, record({"d?": STRING})),
        "Z": named_since(R2026_07_28, deprecated(R2026_07_28, record({"b?": STRING}))),
    }
    before = build(definitions, R2025_06_18)["X"]
    assert before == {
        "type": "object",
        "properties": {"d": TEXT, "a": TEXT, "c": INT},
        "required": ["a", "c"],
    }
    assert set(build(definitions, R2025_11_25)["X"]["properties"]) == {"a", "b", "c", "d"}


def test_bases_and_alternatives_that_a_revision_lacks_fall_away():
    definitions = {
        "Union": either("Old", "New", since(R2025_11_25, array("New"))),
        "Record": record({"a": STRING}, "New"),
        "Old": STRING,
        "New": since(R2025_11_25, record({"b": STRING})),
    }
    before, after = build(definitions, R2025_06_18), build(definitions, R2025_11_25)
    assert before["Union"] == {"$ref": "#/$defs/Old"}
    assert [*before["Record"]["properties"]] == ["a"]
    assert len(after["Union"]["anyOf"]) == 3
    assert [*after["Record"]["properties"]] == ["b", "a"]


def test_what_is_deprecated_is_marked_from_then_on():
    definitions = {"X": deprecated(R2025_11_25, STRING), "Y": record({"a": deprecated(R2025_11_25, "X")})}
    assert build(definitions, R2025_06_18)["X"] == TEXT
    found = build(definitions, R2026_07_28)
    assert found["X"] == TEXT | {"deprecated": True}
    assert found["Y"]["properties"]["a"] == {"$ref": "#/$defs/X", "deprecated": True}


@pytest.mark.parametrize(
    ("definitions", "error", "text"),
    [
        ({"X": record({"a": "Nowhere"})}, ValueError, "no revision has Nowhere"),
        ({"X": either("Nowhere", STRING)}, ValueError, "no revision has Nowhere"),
        ({"X": record({"a": "Y"}), "Y": since(R2025_11_25, STRING)}, ValueError, "2025-06-18 has no Y"),
        ({"X": array("Y"), "Y": only(R2025_11_25, STRING)}, ValueError, "2025-06-18 has no Y"),
        ({"X": array(since(R2025_11_25, STRING))}, TypeError, "cannot stand here in 2025-06-18"),
        ({"X": array(optional(STRING))}, TypeError, "cannot stand here"),
        ({"X": record({}, "Y"), "Y": STRING}, TypeError, "no members to take over"),
    ],
)
def test_a_mistake_in_a_definition_is_told(definitions, error, text):
    with pytest.raises(error, match=text):
        built(definitions)
