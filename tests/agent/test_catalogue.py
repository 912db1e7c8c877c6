"""The tools, resources and prompts for an agent, and the rules in its words."""

import inspect
import json
import os
import re

import orjson
import pytest
from jsonschema import Draft202012Validator

import mcpspy
from mcpspy.agent.answers import Scrubber, size_of
from mcpspy.agent.catalogue import (
    BY_NAME,
    CAPTURE,
    PROMPTS,
    RULE,
    TEMPLATES,
    TOOLS,
    answer,
    checked,
    listed,
    prompt_text,
    read,
    tool_named,
)
from mcpspy.agent.problems import explain_rule, find_problems, told_findings
from mcpspy.errors import UsageError
from mcpspy.rules import FORMER, RULES, Finding
from tests.each import each

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


@each(
    "tool, given, sentence",
    [
        ("find_problems", {"sesion": "x"}, "has no argument 'sesion'; did you mean 'session'"),
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
    with pytest.raises(UsageError, match="did you mean 'find_problems'"):
        tool_named("find_problem")


def test_the_page_lists_the_tools():
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().partition("## Tools")[2].partition("## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE)
    expected = [(tool.name, ", ".join(f"`{name}`" for name in tool.takes)) for tool in TOOLS]
    assert rows == expected


@each("rule", RULES)
def test_every_rule_is_explained(rule):
    answer = explain_rule(rule=rule)
    assert answer["rule"] == rule
    assert answer["spec"].startswith("https://")
    assert answer["fix"]


def test_a_former_id_is_taken_and_an_unknown_one_has_a_nearest():
    for former, rule in FORMER.items():
        assert explain_rule(rule=former)["rule"] == rule
    with pytest.raises(UsageError, match="did you mean 'tools/arguments'"):
        explain_rule(rule="tools/argument")


def test_a_fix_is_told_once(folder):
    name = folder.add()
    capture = folder.captures.open(folder.captures.find(name))
    finding = Finding("tools/arguments", "error", "client", 7, 0, (5,), "/params", "wrong", None, "https://spec")
    told = told_findings(Scrubber(), capture, "abc123", [finding, finding], 4000)
    assert ["fix" in it for it in told] == [True, False]
    assert (told[0]["at"], told[0]["related"]) == ("abc123#7", ["abc123#5"])


def test_a_finding_may_quote_a_secret(folder):
    """The call succeeds and is not shown otherwise, but its frame is still read, to know its secrets."""
    listed = '< 2 = {"tools":[{"name":"login","inputSchema":{"properties":{"password":{"type":"integer"}}}}]}'
    call = '> 3 tools/call {"name":"login","arguments":{"password":"hunter2xyz"}}\n< 3 = {"content":[]}'
    folder.add(f"= 2025-11-25\n> 2 tools/list\n{listed}\n{call}")
    answer = find_problems(folder.captures)
    assert "is not of type" in str(answer["findings"])
    assert "hunter2xyz" not in str(answer)


def test_a_finding_about_text_shows_the_text(folder):
    folder.add("= 2025-11-25\n> | Listening on port 3000")
    assert find_problems(folder.captures)["findings"][0]["text"] == "Listening on port 3000"


def test_captures_come_first_and_then_the_rules_in_pages(folder):
    name = folder.add()
    found, cursor = [], None
    while True:
        page, cursor = listed(folder.captures, cursor)
        found += [it.uri for it in page]
        if cursor is None:
            break
    assert found[0] == f"{CAPTURE}{name}"
    assert len(found) == 1 + len(RULES) == len(set(found))
    with pytest.raises(UsageError, match="does not belong"):
        listed(folder.captures, "x")


def test_resources_are_read(folder):
    name = folder.add()
    text, mime = read(folder.captures, f"{CAPTURE}{name}")
    assert json.loads(text)["session"] == name
    assert mime == "application/json"
    text, mime = read(folder.captures, f"{RULE}tools/arguments")
    assert text.startswith("tools/arguments: error")
    assert mime == "text/plain"
    assert [it.uri for it in TEMPLATES] == ["mcpspy://capture/{id}", "mcpspy://rule/{+id}"]


@each("uri", ["", "file:///etc/passwd", CAPTURE, f"{CAPTURE}zzzzzz", f"{RULE}x", "mcpspy://rules"])
def test_another_resource_is_refused(folder, uri):
    folder.add()
    with pytest.raises(UsageError):
        read(folder.captures, uri)


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_prompts_take_a_session_or_none(prompt):
    assert "(session weather)" in prompt_text(prompt.name, {"session": "weather"})[1]
    assert "{" not in prompt_text(prompt.name, {})[1]


def test_another_prompt_or_argument_is_refused():
    with pytest.raises(UsageError, match="there is no prompt 'x'; there are why_did_my_last_call_fail"):
        prompt_text("x", {})
    with pytest.raises(UsageError, match="has no argument 'x'; it takes session"):
        prompt_text("review_session", {"x": "1"})
