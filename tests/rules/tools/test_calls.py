"""Tool calls are checked against the last listing."""

import json

import pytest

from tests.rules.examples import findings, told
from tests.rules.tools.listings import BEGIN, CHANGED, call, listed, tool


def test_a_tool_of_any_page_is_known():
    pages = listed(tool("a"), more="2") + listed(tool("b"), number=3, cursor="2")
    assert told(BEGIN + pages + call(4, "a", text="x") + call(5, "b", text="x"), "tools/") == []
    assert told(BEGIN + pages + call(4, "c"), "tools/") == ["#8 tools/unknown-tool"]


def test_nothing_is_called_unknown_before_the_last_page_or_after_a_change():
    assert told(BEGIN + listed(tool("a"), more="2") + call(4, "c"), "tools/") == []
    assert told(BEGIN + listed(tool("a")) + CHANGED + call(4, "c"), "tools/") == []


def test_arguments_are_judged_by_the_schema_that_was_listed_last():
    strict = tool(schema={"type": "object", "required": ["words"]})
    text = BEGIN + listed(tool()) + CHANGED + listed(strict, number=3) + call(4, text="x")
    (finding,) = [it for it in findings(text) if it.rule == "tools/arguments"]
    assert finding.related == (8,)
    assert "words" in finding.message


def test_a_schema_in_an_older_dialect_is_read_in_it():
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
           "properties": {"n": {"type": "number", "minimum": 5, "exclusiveMinimum": True}}}  # fmt: skip
    assert told(BEGIN + listed(tool(schema=old)) + call(3, n=6), "tools/") == []
    assert told(BEGIN + listed(tool(schema=old)) + call(3, n=5), "tools/") == ["#6 tools/arguments"]


@pytest.mark.parametrize("schema", [None, 5, [], "x", {"type": "objet"}, {"$ref": "#/nowhere"}, {"$ref": "http://x/y"}])
def test_a_call_of_a_tool_whose_schema_is_none_is_not_judged_by_it(schema):
    assert told(BEGIN + listed(tool(schema=schema)) + call(3, text=5), "tools/arguments") == []


@pytest.mark.parametrize(
    ("reference", "severity", "what"),
    [
        (
            "https://example.com/a.json",
            "warning",
            "it refers to https://example.com/a.json, which clients must not fetch",
        ),
        ("#/$defs/a", "error", "Pointer '/$defs/a' does not exist"),
    ],
)
def test_a_reference_to_a_url_is_permitted_and_cannot_be_used(reference, severity, what):
    """2026-07-28, `$ref` Resolution."""
    (found,) = findings(BEGIN + listed(tool(schema={"type": "object", "properties": {"a": {"$ref": reference}}})))
    assert (found.rule, found.severity) == ("tools/schema-invalid", severity)
    assert found.message == f"inputSchema of echo is not a valid schema: {what}"


@pytest.mark.parametrize(
    ("result", "rules"),
    [
        ({"content": [], "structuredContent": {"length": 1}}, []),
        ({"content": [], "structuredContent": {"length": "1"}}, ["tools/structured-content"]),
        ({"content": []}, ["tools/structured-missing"]),
        ({"content": [], "isError": True}, []),
        ({"content": [], "isError": False}, ["tools/structured-missing"]),
    ],
)
def test_a_result_keeps_what_the_output_schema_promises(result, rules):
    promise = tool(
        outputSchema={"type": "object", "properties": {"length": {"type": "integer"}}, "required": ["length"]}
    )
    text = BEGIN + listed(promise) + call(3, text="x") + f"< 3 = {json.dumps(result)}"
    assert [finding.rule for finding in findings(text) if finding.rule.startswith("tools/")] == rules


def test_a_result_is_judged_by_the_tool_as_it_was_when_it_was_called():
    promised = tool(outputSchema={"type": "object", "required": ["x"]})
    again = tool(outputSchema={"type": "object", "required": ["y"]})
    relisted = CHANGED + listed(again, number=4)
    answer = '< 3 = {"content":[],"structuredContent":{"x":1}}\n'
    text = BEGIN + listed(promised) + call(3, text="a") + relisted
    assert told(text + answer, "tools/structured") == []
    assert told(text + answer.replace('"x"', '"y"'), "tools/structured") == ["#10 tools/structured-content"]
    assert told(BEGIN + listed(tool()) + call(3, text="a") + relisted + '< 3 = {"content":[]}', "tools/str") == []


def test_a_listing_that_came_after_a_call_does_not_count_although_it_is_recorded_before():
    strict = tool(schema={"type": "object", "required": ["words"]})
    answer = f"> 2 tools/list\n@0.5 < 2 = {json.dumps({'tools': [strict]})}\n"
    for name in ("echo", "other"):
        late = call(3, name, text="a").replace("> 3", "@0.4 > 3")
        assert told(BEGIN + answer + late, "tools/") == []
        assert told(BEGIN + answer + late.replace("@0.4", "@0.6"), "tools/") != []


def test_a_change_lasts_until_the_last_page():
    strict = tool("b", schema={"type": "object", "required": ["words"]})
    text = BEGIN + listed(tool("a"), strict) + CHANGED + listed(tool("a"), number=3, more="2")
    assert told(text + call(4, "b"), "tools/") == []
    assert told(text + listed(strict, number=5, cursor="2") + call(4, "b"), "tools/") == ["#11 tools/arguments"]
    changed = text + CHANGED + listed(strict, number=5, cursor="2")
    assert told(changed + call(4, "b") + call(6, "c"), "tools/") == []
