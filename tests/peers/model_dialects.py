"""The answers of a scripted model in the dialects of four APIs, as pure functions.

The script names the calls to request. For each request the model counts the results in the conversation. While there
are fewer results than calls, it requests the next call. After that it answers with a text that quotes the last result.
A request without the tool, such as a request for the title of a conversation, gets a text as well. The model keeps no
state.

    Anthropic Messages             https://docs.anthropic.com/en/api/messages
    OpenAI Responses               https://platform.openai.com/docs/api-reference/responses
    OpenAI Chat Completions        https://platform.openai.com/docs/api-reference/chat
    Gemini generateContent         https://ai.google.dev/api/generate-content
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

MODEL = "scripted"


class Tool(NamedTuple):
    """A tool that a request offers. `space` is its namespace (Responses only)."""

    name: str
    space: str | None = None


class Turn(NamedTuple):
    """The content of a request: the tools that may be called, and the results of calls, as text."""

    tools: list[Tool]
    results: list[str]


class Call(NamedTuple):
    """A call that the model requests."""

    tool: Tool
    arguments: dict[str, Any]
    number: int

    @property
    def id(self) -> str:
        return f"call_{self.number}"


class Event(NamedTuple):
    """One event of a stream: its name, or None if the dialect has no names, and its data."""

    name: str | None
    data: Any


Script = list[tuple[str, dict[str, Any]]]
"""The calls to request: a part of the tool's name, and the arguments."""
Answer = Call | str


def answer(turn: Turn, script: Script) -> Answer:
    """Return the next call of the script, or the closing text."""
    if len(turn.results) < len(script):
        wanted, arguments = script[len(turn.results)]
        for tool in turn.tools:
            if wanted in tool.name:
                return Call(tool, arguments, len(turn.results) + 1)
    return f"The tool answered: {turn.results[-1]}" if turn.results else "There is nothing to call."


def text_of(content: Any) -> str:
    """Return the text of a content, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") if isinstance(part, dict) else str(part) for part in content)
    return content if isinstance(content, str) else json.dumps(content)


# Anthropic Messages


def read_messages(body: dict) -> Turn:
    blocks = [
        block
        for message in body.get("messages", [])
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    results = [text_of(block.get("content", "")) for block in blocks if block.get("type") == "tool_result"]
    return Turn([Tool(tool["name"]) for tool in body.get("tools") or []], results)


def _block(it: Answer) -> tuple[dict, dict, dict]:
    """Return a content block: complete, at its start, and the delta between them."""
    if isinstance(it, str):
        return {"type": "text", "text": it}, {"type": "text", "text": ""}, {"type": "text_delta", "text": it}
    start = {"type": "tool_use", "id": it.id, "name": it.tool.name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(it.arguments)}
    return start | {"input": it.arguments}, start, delta


def write_messages(it: Answer) -> dict:
    stop = "end_turn" if isinstance(it, str) else "tool_use"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [_block(it)[0]]}
    return message | {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}


def stream_messages(it: Answer) -> list[Event]:
    whole = write_messages(it)
    _, start, delta = _block(it)
    ends = {key: whole[key] for key in ("stop_reason", "stop_sequence")}
    data = [
        {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ends, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return [Event(it["type"], it) for it in data]


# OpenAI Responses


def read_responses(body: dict) -> Turn:
    tools = []
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            tools += [Tool(inner["name"], tool["name"]) for inner in tool["tools"]]
        elif tool.get("type") == "function":
            tools.append(Tool(tool["name"]))
    items = body["input"] if isinstance(body.get("input"), list) else []
    results = [text_of(item["output"]) for item in items if item.get("type") == "function_call_output"]
    return Turn(tools, results)


def _item(it: Answer) -> dict:
    if isinstance(it, str):
        part = {"type": "output_text", "text": it, "annotations": []}
        return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
    space = {"namespace": it.tool.space} if it.tool.space else {}
    call = {"type": "function_call", "id": f"fc_{it.number}", "call_id": it.id, "name": it.tool.name}
    return call | space | {"arguments": json.dumps(it.arguments), "status": "completed"}


def write_responses(it: Answer) -> dict:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    fixed = {"parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None, "metadata": {}}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": MODEL}
    return response | fixed | {"output": [_item(it)], "usage": usage | details}


def stream_responses(it: Answer) -> list[Event]:
    whole, item = write_responses(it), _item(it)
    begun = {"response": whole | {"status": "in_progress", "output": [], "usage": None}}
    place = {"output_index": 0, "item_id": item["id"]}
    if isinstance(it, str):
        text, part = place | {"content_index": 0}, item["content"][0]
        start = item | {"status": "in_progress", "content": []}
        middle = [
            ("response.content_part.added", text | {"part": part | {"text": ""}}),
            ("response.output_text.delta", text | {"delta": it, "logprobs": []}),
            ("response.output_text.done", text | {"text": it, "logprobs": []}),
            ("response.content_part.done", text | {"part": part}),
        ]
    else:
        start = item | {"status": "in_progress", "arguments": ""}
        middle = [
            ("response.function_call_arguments.delta", place | {"delta": item["arguments"]}),
            (
                "response.function_call_arguments.done",
                place | {"arguments": item["arguments"], "name": item["name"]},
            ),
        ]
    events = [
        ("response.created", begun),
        ("response.in_progress", begun),
        ("response.output_item.added", {"output_index": 0, "item": start}),
        *middle,
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    return [Event(name, {"type": name, "sequence_number": at} | data) for at, (name, data) in enumerate(events)]


# OpenAI Chat Completions


def read_chat(body: dict) -> Turn:
    tools = [Tool(tool["function"]["name"]) for tool in body.get("tools") or [] if tool.get("type") == "function"]
    texts = [(it.get("role"), text_of(it.get("content"))) for it in body.get("messages", [])]
    # smolagents puts results into user messages.
    told = ("Observation:", "Call id:")
    return Turn(tools, [text for role, text in texts if role == "tool" or (role == "user" and text.startswith(told))])


def _chat(it: Answer, kind: str, member: str) -> dict:
    message: dict[str, Any] = {"role": "assistant", "content": it if isinstance(it, str) else None}
    if not isinstance(it, str):
        function = {"name": it.tool.name, "arguments": json.dumps(it.arguments)}
        place = {"index": 0} if member == "delta" else {}
        message["tool_calls"] = [place | {"id": it.id, "type": "function", "function": function}]
    choice = {"index": 0, member: message, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": MODEL, "choices": [choice]}


_CHAT_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _finish(it: Answer) -> str:
    return "stop" if isinstance(it, str) else "tool_calls"


def write_chat(it: Answer) -> dict:
    whole = _chat(it, "chat.completion", "message")
    whole["choices"][0]["finish_reason"] = _finish(it)
    return whole | {"usage": _CHAT_USAGE}


def stream_chat(it: Answer) -> list[Event]:
    first = _chat(it, "chat.completion.chunk", "delta")
    last = first | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(it)}]}
    usage = first | {"choices": [], "usage": _CHAT_USAGE}
    return [Event(None, data) for data in (first, last, usage, "[DONE]")]


# Gemini generateContent


def read_gemini(body: dict) -> Turn:
    declared = [tool.get("functionDeclarations") or [] for tool in body.get("tools") or []]
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    return Turn([Tool(it["name"]) for some in declared for it in some], [_gemini_text(it) for it in results])


def _gemini_text(response: dict) -> str:
    """Return a function's result as text. Clients put it in `output`, in `error`, or anywhere."""
    return text_of(response.get("output", response.get("error", response)))


def write_gemini(it: Answer) -> dict:
    if isinstance(it, str):
        part: dict[str, Any] = {"text": it}
    else:
        part = {"functionCall": {"name": it.tool.name, "args": it.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "1"}


def stream_gemini(it: Answer) -> list[Event]:
    return [Event(None, write_gemini(it))]


class Dialect(NamedTuple):
    """The formats of an API: requests, answers and streams of answers."""

    read: Callable[[dict], Turn]
    write: Callable[[Answer], dict]
    stream: Callable[[Answer], list[Event]]


MESSAGES = Dialect(read_messages, write_messages, stream_messages)
RESPONSES = Dialect(read_responses, write_responses, stream_responses)
CHAT = Dialect(read_chat, write_chat, stream_chat)
GEMINI = Dialect(read_gemini, write_gemini, stream_gemini)


def dialect(path: str) -> Dialect | None:
    """Return the dialect of a request by the path of its URL, or None if it does not request an answer."""
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return MESSAGES
    if path.endswith("/responses"):
        return RESPONSES
    if path.endswith("/chat/completions"):
        return CHAT
    return GEMINI if path.endswith((":generateContent", ":streamGenerateContent")) else None


def streams(path: str, body: dict) -> bool:
    """Return whether the request wants a stream of events."""
    return ":streamGenerateContent" in path or body.get("stream") is True


def encoded(events: list[Event]) -> bytes:
    """Return events as a body of `text/event-stream`."""
    lines = []
    for event in events:
        data = event.data if isinstance(event.data, str) else json.dumps(event.data)
        lines.append((f"event: {event.name}\n" if event.name else "") + f"data: {data}\n\n")
    return "".join(lines).encode()
