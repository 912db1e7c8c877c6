"""Each dialect: the content of a request, and an answer both complete and as a stream."""

import json

import pytest

from tests.peers import model_dialects as dialects
from tests.peers.model_dialects import CHAT, GEMINI, MESSAGES, RESPONSES, Call, Tool, Turn

SCRIPT = [("echo", {"text": "hi"}), ("crash", {})]
CALL = Call(Tool("mcp__s__echo"), {"text": "hi"}, 1)
PARAMETERS = {"type": "object", "properties": {}}
REQUESTS = {
    "messages": {
        "tools": [{"name": "Bash"}, {"name": "mcp__s__echo", "input_schema": PARAMETERS}],
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "mcp__s__echo"}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "got"}]}
                ],
            },
        ],
    },
    "responses": {
        "tools": [
            {"type": "web_search"},
            {"type": "function", "name": "Bash"},
            {"type": "function", "name": "mcp__s__echo", "parameters": PARAMETERS},
        ],
        "input": [{"type": "function_call_output", "call_id": "call_1", "output": "got"}],
    },
    "chat/completions": {
        "tools": [{"type": "function", "function": {"name": name}} for name in ("Bash", "mcp__s__echo")],
        "messages": [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "call_1", "content": "got"}],
    },
    "models/m:generateContent": {
        "tools": [{"functionDeclarations": [{"name": "Bash"}, {"name": "mcp__s__echo"}]}, {"googleSearch": {}}],
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "mcp__s__echo", "response": {"output": "got"}}}]},
        ],
    },
}


@pytest.mark.parametrize("path", REQUESTS)
def test_a_request_is_read(path):
    turn = dialects.dialect(f"/v1/{path}?beta=true").read(REQUESTS[path])
    assert turn == Turn([Tool("Bash"), Tool("mcp__s__echo")], ["got"])


@pytest.mark.parametrize("path", REQUESTS)
def test_a_request_without_tools_is_read(path):
    assert dialects.dialect(f"/v1/{path}").read({}) == Turn([], [])


def test_the_tools_of_a_namespace_are_read_and_called_by_both_names():
    space = {"type": "namespace", "name": "mcp__s", "tools": [{"type": "function", "name": "echo"}]}
    turn = RESPONSES.read({"tools": [space], "input": "go"})
    assert turn.tools == [Tool("echo", "mcp__s")]
    call = RESPONSES.write(dialects.answer(turn, SCRIPT))["output"][0]
    assert (call["name"], call["namespace"]) == ("echo", "mcp__s")


def test_results_in_messages_of_the_user_are_read():
    told = [{"role": "user", "content": [{"type": "text", "text": "Observation:\necho: hi"}]}]
    assert CHAT.read({"messages": told}).results == ["Observation:\necho: hi"]


def test_the_script_is_followed_and_the_last_result_quoted():
    tools = [Tool("Bash"), Tool("mcp__s__echo"), Tool("mcp__s__crash")]
    assert dialects.answer(Turn(tools, []), SCRIPT) == CALL
    assert dialects.answer(Turn(tools, ["a"]), SCRIPT) == Call(tools[2], {}, 2)
    assert dialects.answer(Turn(tools, ["a", "b"]), SCRIPT) == "The tool answered: b"
    assert dialects.answer(Turn([], []), SCRIPT) == "There is nothing to call."


@pytest.mark.parametrize(
    ("path", "body", "streams"),
    [
        ("/v1beta/models/m:streamGenerateContent?alt=sse", {}, True),
        ("/v1beta/models/m:generateContent", {}, False),
        ("/v1/messages", {"stream": True}, True),
        ("/v1/responses", {"stream": False}, False),
        ("/v1/chat/completions", {}, False),
    ],
)
def test_whether_a_request_wants_a_stream(path, body, streams):
    assert dialects.streams(path, body) is streams


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages/count_tokens", "/v1beta/models/m:countTokens", "/"])
def test_other_requests_have_no_dialect(path):
    assert dialects.dialect(path) is None


def test_messages_are_written_whole():
    told = MESSAGES.write(CALL)
    assert told["content"] == [{"type": "tool_use", "id": "call_1", "name": "mcp__s__echo", "input": {"text": "hi"}}]
    assert (told["stop_reason"], MESSAGES.write("x")["stop_reason"]) == ("tool_use", "end_turn")


@pytest.mark.parametrize("answer", [CALL, "done"])
def test_messages_are_streamed(answer):
    """The deltas add up to the complete message."""
    data = [event.data for event in MESSAGES.stream(answer)]
    assert [event.name for event in MESSAGES.stream(answer)] == [it["type"] for it in data]
    assert [it["type"] for it in data] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    block, delta = data[1]["content_block"], data[2]["delta"]
    block |= {"text": delta["text"]} if "text" in delta else {"input": json.loads(delta["partial_json"])}
    whole = MESSAGES.write(answer)
    assert [block] == whole["content"]
    assert data[4]["delta"]["stop_reason"] == whole["stop_reason"]


@pytest.mark.parametrize("answer", [CALL, "done"])
def test_responses_are_streamed(answer):
    events = RESPONSES.stream(answer)
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert {event.name == event.data["type"] for event in events} == {True}
    whole = RESPONSES.write(answer)
    assert events[-1].data["response"] == whole
    done = next(event.data["item"] for event in events if event.name == "response.output_item.done")
    assert whole["output"] == [done]
    deltas = "".join(event.data["delta"] for event in events if event.name.endswith(".delta"))
    assert deltas == (answer if isinstance(answer, str) else done["arguments"])


def test_chat_is_written_whole():
    choice = CHAT.write(CALL)["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("call_1", {"text": "hi"})
    assert choice["finish_reason"] == "tool_calls"
    assert CHAT.write("done")["choices"][0]["message"]["content"] == "done"


@pytest.mark.parametrize(("answer", "reason"), [(CALL, "tool_calls"), ("done", "stop")])
def test_chat_is_streamed(answer, reason):
    first, last, usage, end = [event.data for event in CHAT.stream(answer)]
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert (last["choices"][0]["finish_reason"], usage["choices"], end) == (reason, [], "[DONE]")


def test_gemini_is_written_and_streamed_alike():
    (event,) = GEMINI.stream(CALL)
    assert event.data == GEMINI.write(CALL)
    (part,) = event.data["candidates"][0]["content"]["parts"]
    assert part == {"functionCall": {"name": "mcp__s__echo", "args": {"text": "hi"}}}


def test_events_are_encoded():
    events = [dialects.Event("a", {"x": 1}), dialects.Event(None, "[DONE]")]
    assert dialects.encoded(events) == b'event: a\ndata: {"x": 1}\n\ndata: [DONE]\n\n'
