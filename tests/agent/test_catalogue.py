"""Agents and docs/agents.md both show the table of tools."""

import inspect
import os
import re

import orjson
import pytest
from jsonschema import Draft202012Validator

import mcpspy
from mcpspy.agent.catalogue import BY_NAME, TOOLS, answer, checked, tool_named
from mcpspy.agent.clean import size_of
from mcpspy.errors import UsageError

PAGE = os.path.join(os.path.dirname(os.path.dirname(mcpspy.__file__)), "docs", "agents.md")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_schemas_are_schemas_and_fit_the_functions(tool):
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
    assert set(tool.required) <= set(tool.takes)
    assert set(tool.certain) <= set(tool.gives)
    if tool.answer and tool.name != "explain_rule":
        names = set(inspect.signature(tool.answer).parameters) - {"captures"}
        assert names == set(tool.takes)


@pytest.mark.parametrize("tool", [it for it in TOOLS if it.answer], ids=lambda tool: tool.name)
def test_answers_are_as_their_schema_says(folder, tool):
    name = folder.add(ppid=42)
    folder.add(ppid=42)
    given = {"rule": "tools/arguments", "address": f"{name}#10", "a": name, "b": "weather"}
    for arguments in ({}, {"session": f"run:{name}"} if tool.name == "find_problems" else {}):
        found = answer(tool, folder.captures, {it: given[it] for it in tool.required} | arguments)
        Draft202012Validator(tool.output_schema | {"additionalProperties": False}).validate(found)
        assert orjson.loads(orjson.dumps(found)) == found


def test_all_definitions_together_cost_little():
    assert sum(size_of([it.name, it.title, it.description, it.input_schema, it.output_schema]) for it in TOOLS) < 10_000


@pytest.mark.parametrize(
    ("tool", "given", "sentence"),
    [
        ("find_problems", {"sesion": "x"}, "has no argument 'sesion'; did you mean session"),
        ("find_problems", {"xyz": 1}, "it takes session"),
        ("read_message", {}, "needs the argument address: such as 3d345f#17"),
        ("read_timeline", {"limit": "5"}, "limit of read_timeline must be a whole number, not '5'"),
        ("read_timeline", {"limit": True}, "must be a whole number"),
        ("read_timeline", {"limit": 0}, "at least 1 and at most 200"),
        ("read_message", {"address": "a#1", "offset": -1}, "at least 0$"),
        ("read_timeline", {"newest_first": 1}, "must be true or false"),
        ("wait_for", {"seconds": 1e9}, "at most 300"),
        ("find_problems", {"session": ["a"]}, "must be a string"),
    ],
)
def test_wrong_arguments_are_one_sentence(tool, given, sentence):
    with pytest.raises(UsageError, match=sentence):
        checked(BY_NAME[tool], given)


def test_null_is_as_if_it_was_not_there():
    assert checked(BY_NAME["find_problems"], {"session": None}) == {}
    assert checked(BY_NAME["find_problems"], None) == {}


def test_an_unknown_tool_has_a_nearest():
    with pytest.raises(UsageError, match="did you mean find_problems"):
        tool_named("find_problem")


def test_the_page_lists_the_tools():
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().partition("## Tools")[2].partition("## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE)
    expected = [(tool.name, ", ".join(f"`{name}`" for name in tool.takes)) for tool in TOOLS]
    assert rows == expected
