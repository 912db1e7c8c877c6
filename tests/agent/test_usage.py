from mcpspy.agent.answers import LARGEST
from mcpspy.agent.clean import size_of
from mcpspy.agent.usage import tool_usage


def test_each_tool_has_its_cost_and_use(folder):
    name = folder.add()
    answer = tool_usage(folder.captures)
    tool = answer["tools"][0]
    assert (tool["name"], tool["calls"], tool["errors"], tool["findings"]) == ("echo", 3, 2, 2)
    assert tool["ms"] == {"p50": 1.0, "p95": 1.0, "max": 1.0}
    assert (tool["definition"], tool["first_call"]) == (f"{name}#9", f"{name}#10")
    assert answer["totals"] == {
        "tools": 1,
        "definition_tokens": tool["definition_tokens"],
        "calls": 3,
        "errors": 2,
        "never_called": 0,
    }


def test_many_tools_come_in_pages_the_most_expensive_first(folder):
    tools = ",".join(
        f'{{"name":"t{n}","description":"{"x" * n}","inputSchema":{{"type":"object"}}}}' for n in range(200)
    )
    folder.add(f'= 2025-11-25\n> 2 tools/list\n< 2 = {{"tools":[{tools}]}}')
    read, cursor = [], ""
    while cursor is not None:
        answer = tool_usage(folder.captures, cursor=cursor)
        assert size_of(answer) <= LARGEST
        read += [it["name"] for it in answer["tools"]]
        cursor = answer.get("next")
    assert sorted(read) == sorted(f"t{n}" for n in range(200))
    assert read[0] == "t199"
    assert answer["totals"]["never_called"] == 200


def test_a_tool_that_was_never_listed(folder):
    folder.add('= 2025-11-25\n> 2 tools/call {"name":"ghost"}\n< 2 = {"content":[]}')
    assert tool_usage(folder.captures)["tools"][0]["listed"] is False
