"""Tool listings: the last listing counts, whatever the schemas of the peer are."""

from tests.rules.examples import findings, told
from tests.rules.tools.listings import BEGIN, CHANGED, listed, tool


def test_a_definition_that_changes_is_told_with_what_changed_and_whether_it_was_announced():
    other = tool(outputSchema={"type": "object"})
    for between, words in ((CHANGED, "changed"), ("", "without a list_changed notification")):
        (finding,) = [
            it
            for it in findings(BEGIN + listed(tool()) + between + listed(other, number=3))
            if it.rule == "tools/definition-changed"
        ]
        assert finding.message.startswith("outputSchema of echo changed")
        assert finding.message.endswith(words)


def test_a_schema_that_is_wrong_is_told_when_it_is_listed_first():
    wrong = tool(schema={"type": "object", "required": "text"})
    text = BEGIN + listed(wrong) + listed(wrong, number=3)
    assert told(text, "tools/schema-invalid") == ["#5 tools/schema-invalid"]


def test_a_pattern_that_only_our_engine_refuses_is_no_fault():
    schema = {"type": "object", "properties": {"p": {"type": "string", "pattern": "^(?!x).*$"}}}
    assert told(BEGIN + listed(tool(schema=schema)), "tools/") == []


def test_a_schema_without_a_dialect_may_be_of_any_before_there_was_a_default():
    schema = {"type": "object", "properties": {"p": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}}
    assert told("= 2025-06-18\n" + listed(tool(schema=schema)), "tools/") == []
    assert told(BEGIN + listed(tool(schema=schema)), "tools/") == ["#5 tools/schema-invalid"]
    assert told("= 2025-06-18\n" + listed(tool(schema={"type": "objet"})), "tools/schema-inv") != []
