"""Names and values of the attributes, by the conventions for MCP (T-01)."""

import os
from dataclasses import replace

import pytest

from mcpspy.telemetry.attributes import content_attributes, server_attributes
from tests.telemetry.folded import STDIO, spans, spans_of
from tests.timelines import CAPTURES


def attributes(text):
    (span,) = spans(text)
    return span.attributes


def test_of_a_tool_call():
    found = attributes(
        '> {"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":{}}}\n< 1 = {}'
    )
    assert found == {
        "mcp.method.name": "tools/call",
        "jsonrpc.request.id": "x",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "a",
        "network.transport": "pipe",
        "error.type": "unanswered",
        "mcpspy.frame": 1,
    }


def test_of_a_prompt_and_of_a_resource():
    prompt = attributes('> {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}\n< 1 = {}')
    assert prompt["gen_ai.prompt.name"] == "p"
    (span,) = spans('> {"id":1,"method":"prompts/get","params":{"name":"p"}}\n< 1 = {}')
    assert span.name == "prompts/get p"
    assert "gen_ai.operation.name" not in prompt
    (resource,) = spans('> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a"}}\n< 1 = {}')
    assert resource.attributes["mcp.resource.uri"] == "file:///a"
    assert resource.name == "resources/read"


def test_of_an_error():
    (span,) = spans('> 1 ping\n< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}')
    assert span.attributes["error.type"] == span.attributes["rpc.response.status_code"] == "-32601"
    assert span.error == "no such method"


def test_of_an_error_of_a_tool():
    (span,) = spans('> {"id":1,"method":"tools/call","params":{"name":"a"}}\n< {"id":1,"result":{"isError":true}}')
    assert span.attributes["error.type"] == "tool_error"
    assert "rpc.response.status_code" not in span.attributes


def test_of_another_version_of_json_rpc_and_of_a_null_id():
    found = attributes('> {"jsonrpc":"1.0","id":null,"method":"ping"}')
    assert found["jsonrpc.protocol.version"] == "1.0"
    assert "jsonrpc.request.id" not in found


@pytest.mark.parametrize(
    ("name", "session"), [("http-python1-2025-11-25.jsonl", True), ("http-python2-2026-07-28.jsonl", False)]
)
def test_sessions_have_ids_until_2026_07_28(name, session):
    found = [span.attributes for span in spans_of(os.path.join(CAPTURES, name))]
    revision = name[-16:-6]
    assert {it.get("mcp.protocol.version") for it in found} == {revision}
    assert any("mcp.session.id" in it for it in found) == session
    assert {(it["network.transport"], it["network.protocol.name"], it["network.protocol.version"]) for it in found} == {
        ("tcp", "http", "1.1")
    }
    assert all(it["server.address"] == "127.0.0.1" and it["server.port"] for it in found)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://mcp.example.com/mcp", {"server.address": "mcp.example.com", "server.port": 443}),
        ("http://[::1]:8000/", {"server.address": "::1", "server.port": 8000}),
        ("http://h:99999/", {}),
        ("not a url", {}),
        (None, {}),
    ],
)
def test_the_server_is_the_one_behind_the_proxy(url, found):
    assert server_attributes(replace(STDIO, url=url), str) == found


def test_content_comes_only_where_it_was_asked_for():
    text = """
        > {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"city":"Oslo"}}}
        < {"id":1,"result":{"content":[]}}
    """
    assert "gen_ai.tool.call.arguments" not in attributes(text)
    (span,) = spans(text, content=content_attributes)
    assert span.attributes["gen_ai.tool.call.arguments"] == {"city": "Oslo"}
    assert span.attributes["gen_ai.tool.call.result"] == {"content": []}
    (prompt,) = spans(
        '> {"id":1,"method":"prompts/get","params":{"name":"p","arguments":{"a":"b"}}}\n< 1 = {}',
        content=content_attributes,
    )
    assert prompt.attributes["gen_ai.prompt.variable.a"] == "b"


def test_the_arguments_of_a_prompt_have_a_limit():
    many = ",".join(f'"{"n" * 200}{n}":1' for n in range(1000))
    (span,) = spans(
        f'> {{"id":1,"method":"prompts/get","params":{{"name":"p","arguments":{{{many}}}}}}}\n< 1 = {{}}',
        content=content_attributes,
    )
    assert len(span.attributes) < 80
    assert max(map(len, span.attributes)) < 200
