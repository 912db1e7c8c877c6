"""Tools: what was announced last counts, whatever the peer's schemas are."""

import json

import pytest

from tests.rules.examples import findings, told

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def listed(*tools, number=2, cursor=None, more=None):
    asked = f' {{"cursor":"{cursor}"}}' if cursor else ""
    result = {"tools": list(tools)} | ({"nextCursor": more} if more else {})
    return f"> {number} tools/list{asked}\n< {number} = {json.dumps(result)}\n"


def tool(name="echo", schema=SCHEMA, **members):
    return {"name": name, "inputSchema": schema} | members


def call(number, name="echo", **arguments):
    return f"> {number} tools/call {json.dumps({'name': name, 'arguments': arguments})}\n"


BEGIN = "= 2025-11-25\n"
CHANGED = "< notifications/tools/list_changed\n"


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


def test_a_definition_that_changes_is_told_with_what_changed_and_whether_it_was_announced():
    other = tool(description="Other")
    for between, words in ((CHANGED, "than before"), ("", "and nothing has announced it")):
        (finding,) = [
            it
            for it in findings(BEGIN + listed(tool()) + between + listed(other, number=3))
            if it.rule == "tools/definition-changed"
        ]
        assert finding.message.startswith("echo has another description than before")
        assert finding.message.endswith(words)


def test_a_schema_that_is_wrong_is_told_when_it_is_listed_first():
    wrong = tool(schema={"type": "object", "required": "text"})
    text = BEGIN + listed(wrong) + listed(wrong, number=3)
    assert told(text, "tools/schema-invalid") == ["#5 tools/schema-invalid"]


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


def test_a_pattern_that_only_our_engine_refuses_is_no_fault():
    schema = {"type": "object", "properties": {"p": {"type": "string", "pattern": "^(?!x).*$"}}}
    assert told(BEGIN + listed(tool(schema=schema)), "tools/") == []


def test_a_schema_without_a_dialect_may_be_of_any_before_there_was_a_default():
    schema = {"type": "object", "properties": {"p": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}}
    assert told("= 2025-06-18\n" + listed(tool(schema=schema)), "tools/") == []
    assert told(BEGIN + listed(tool(schema=schema)), "tools/") == ["#5 tools/schema-invalid"]
    assert told("= 2025-06-18\n" + listed(tool(schema={"type": "objet"})), "tools/schema-inv") != []
