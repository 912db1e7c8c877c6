"""The server with the client of the Python SDK in this process, and with the clients of three SDKs over stdio."""

import ast
import json
import os
import sys

import anyio
import pytest
from mcp import Client, MCPError

import mcpspy
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.catalogue import TOOLS
from mcpspy.agent.server import AgentServer
from mcpspy.report.checked import check
from mcpspy.spec.client_limits import CLIENTS
from tests import limits
from tests.optional import require_peers
from tests.peers import prepare, warm

ROOT = os.path.dirname(mcpspy.__file__)


def talk(folder, conversation, **options):
    """Run a conversation with the server in this process, and return its value."""

    async def run():
        with anyio.fail_after(limits.LIMIT):
            async with Client(AgentServer(captures).server, **options) as client:
                return await conversation(client)

    captures = AgentCaptures(str(folder.path), 5)
    try:
        return anyio.run(run)
    finally:
        captures.close()


def text_of(result):
    return "".join(part.text for part in result.content)


def test_the_tools_are_listed_as_read_only(folder):
    async def conversation(client):
        return (await client.list_tools()).tools, client.server_info

    tools, server = talk(folder, conversation)
    assert [tool.name for tool in tools] == [tool.name for tool in TOOLS]
    assert server.version == mcpspy.__version__
    for tool in tools:
        hints = tool.annotations
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (True, False, False)
        assert tool.title
        assert tool.output_schema["type"] == "object"


def test_the_text_of_an_answer_is_its_structured_content(folder):
    name = folder.add()

    async def conversation(client):
        return await client.call_tool("read_message", {"address": f"{name}#10"})

    result = talk(folder, conversation)
    assert not result.is_error
    assert json.loads(text_of(result)) == result.structured_content
    assert ": " not in text_of(result).replace("code: ", "").split('"messages"')[0]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("find_problems", {"session": "wether"}, "there is no session 'wether'; did you mean 'weather'"),
        ("read_timeline", {"filter": "stats:error"}, "column 1"),
        ("read_timeline", {"cursor": "x"}, "cursor"),
        ("read_message", {}, "needs the argument address"),
        ("wait_for", {"session": "weather"}, "has ended"),
        ("wait_for", {"seconds": 0}, None),
    ],
)
def test_wrong_input_is_an_error_of_the_tool(folder, tool, arguments, sentence):
    folder.add()

    async def conversation(client):
        return await client.call_tool(tool, arguments)

    result = talk(folder, conversation)
    assert bool(result.is_error) == (sentence is not None)
    assert (sentence or "nothing matched") in text_of(result)


def test_what_does_not_exist_is_an_error_of_the_protocol(folder):
    async def conversation(client):
        calls = (
            lambda: client.call_tool("find_problem", {}),
            lambda: client.read_resource("mcpspy://rule/x"),
            lambda: client.get_prompt("x", {}),
            lambda: client.list_resources(cursor="x"),
        )
        found = []
        for call in calls:
            with pytest.raises(MCPError) as error:
                await call()
            found.append(str(error.value))
        return found

    told = talk(folder, conversation)
    assert "did you mean 'find_problems'?" in told[0]
    assert "there is no rule 'x'" in told[1]


def test_resources_and_prompts(folder):
    name = folder.add()

    async def conversation(client):
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(f"mcpspy://capture/{name}")
        prompt = await client.get_prompt("why_did_my_last_call_fail", {"session": name})
        return resources[0].uri, len(templates), read.contents[0].text, prompt.messages[0].content.text

    uri, templates, read, prompt = talk(folder, conversation)
    assert (str(uri), templates) == (f"mcpspy://capture/{name}", 2)
    assert json.loads(read)["session"] == name
    assert f"(session {name})" in prompt


def test_a_bug_of_ours_is_an_answer(folder, monkeypatch):
    folder.add()
    monkeypatch.setattr("mcpspy.agent.server.answer", lambda *_: 1 / 0)

    async def conversation(client):
        return await client.call_tool("find_problems", {})

    result = talk(folder, conversation)
    assert result.is_error
    assert "ZeroDivisionError" in text_of(result)


def test_waiting_reports_progress(folder, monkeypatch):
    monkeypatch.setattr("mcpspy.agent.server.REPORTS", 0)
    reports = []

    async def progress(done, total, message):
        reports.append((total, message))

    async def conversation(client):
        return await client.call_tool("wait_for", {"seconds": 0.3}, progress_callback=progress)

    assert talk(folder, conversation).structured_content["found"] is False
    assert (0.3, "0 new rows") in reports


def test_only_one_module_knows_the_sdk():
    for name in os.listdir(os.path.join(ROOT, "agent")):
        if name.endswith(".py") and name != "server.py":
            with open(os.path.join(ROOT, "agent", name), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            froms = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            plain = {
                it.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for it in node.names
            }
            assert not (froms | plain) & {"mcp", "mcp_types", "anyio"}, name


@pytest.mark.parametrize("sdk", ["python2", *(pytest.param(it, marks=pytest.mark.field) for it in ("python1", "node"))])
def test_a_client_of_each_sdk_calls_every_tool(folder, sdk, tmp_path_factory):
    """Behind `wrap`: no finding blames the server, under the limits of every client, and it does not list itself."""
    require_peers(sdk)
    name = folder.add()
    given = {"address": f"{name}#10", "rule": "tools/arguments", "a": name, "b": name}
    calls = [(tool.name, {it: given[it] for it in tool.required}) for tool in TOOLS]
    calls = [(tool, arguments | ({"seconds": 0} if tool == "wait_for" else {})) for tool, arguments in calls]
    path = str(folder.path / "own.jsonl")
    wrapped = [sys.executable, "-m", "mcpspy", "wrap", "-o", path, "--", sys.executable, "-m", "mcpspy", "mcp"]
    command = [*prepare.answers(sdk, json.dumps(calls)), *wrapped, str(folder.path)]
    run = limits.run(command, capture_output=True, text=True, cwd=tmp_path_factory.mktemp("work"))
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert [tool["name"] for tool in told["tools"]] == [tool.name for tool in TOOLS]
    assert [failed for failed, _, _ in told["taken"]] == [False] * len(TOOLS)
    assert all(json.loads(text) == structured for _, text, structured in told["taken"])
    assert [it["session"] for it in told["taken"][0][2]["sessions"]] == [name]
    assert told["resources"] == 50
    assert not check(path, clients=frozenset(CLIENTS)).findings


def test_a_client_that_leaves_during_an_answer_is_no_bug(folder):
    with warm.start("mcp", folder.path) as server:
        server.stdout.close()
        server.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.close()
        assert server.stderr.read() == ""
        assert server.wait() == 141
