import json
from http.client import HTTPConnection

from tests import limits
from tests.peers.model_dialects import Tool, Turn
from tests.peers.model_endpoint import MODELS, serving_model

TOOLS = [{"name": "mcp__s__echo"}]


def fetched(model, method, path, body=None):
    connection = HTTPConnection(model.url.removeprefix("http://"), timeout=limits.LIMIT)
    connection.request(method, path, json.dumps(body))
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.headers["Content-Type"], content


def test_a_conversation_whole_and_streamed():
    with serving_model([("echo", {"text": "hi"})]) as model:
        kind, content = fetched(model, "POST", "/v1/messages", {"tools": TOOLS, "messages": []})
        assert (kind, json.loads(content)["stop_reason"]) == ("application/json", "tool_use")
        told = [{"role": "user", "content": [{"type": "tool_result", "content": "echo: hi"}]}]
        kind, content = fetched(
            model, "POST", "/v1/messages?beta=true", {"tools": TOOLS, "messages": told, "stream": True}
        )
        assert kind == "text/event-stream"
        assert b"The tool answered: echo: hi" in content
        assert [turn for _, turn in model.turns] == [
            Turn([Tool("mcp__s__echo")], []),
            Turn([Tool("mcp__s__echo")], ["echo: hi"]),
        ]
        assert model.turns[0][0] <= model.turns[1][0]


def test_what_clients_ask_for_before():
    with serving_model([]) as model:
        assert json.loads(fetched(model, "GET", "/v1/models")[1]) == MODELS
        assert json.loads(fetched(model, "POST", "/v1/messages/count_tokens", {})[1])["input_tokens"] == 1
        assert json.loads(fetched(model, "POST", "/v1beta/models/m:countTokens", [])[1])["totalTokens"] == 1
        assert model.others == ["/v1/models", "/v1/messages/count_tokens", "/v1beta/models/m:countTokens"]
        assert model.turns == []
