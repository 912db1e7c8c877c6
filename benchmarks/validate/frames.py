"""The messages to validate: those of the captures, a tool's result of a given size, a long list of tools."""

import json
from pathlib import Path
from typing import Any

from mcpspy.capture.reader import Capture
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Notification, Request

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.jsonl"))


def of_sessions() -> list[tuple[Revision, str, Any]]:
    """Return the requests, notifications and results of the captures, with the shape that each is validated against."""
    frames = []
    for path in CAPTURES:
        conversation = Conversation()
        for record in Capture(str(path)).records():
            for event in conversation.feed(record):
                if isinstance(event, Message) and event.revision:
                    frames += _frame(event)
    return frames


def _frame(message: Message) -> list[tuple[Revision, str, Any]]:
    there = methods(message.revision)
    if isinstance(message.body, Request | Notification):
        method = there.get(message.body.method)
        return [(message.revision, method.definition, message.body.value)] if method else []
    method = there.get(message.exchange.method) if message.exchange else None
    result = message.body.value.get("result")
    return [(message.revision, method.result, result)] if method and result is not None else []


def tool_result(size: int) -> dict:
    """Return a tool's result of about `size` bytes."""
    row = {"city": "Oslo", "temperature": 4.5, "wind": {"speed": 3, "from": "NW"}, "rain": False}
    rows = [row] * 4
    text = json.dumps(rows)
    message = {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {
            "content": [{"type": "text", "text": text, "annotations": {"audience": ["user"], "priority": 0.5}}],
            "structuredContent": {"rows": rows},
            "isError": False,
        },
    }
    message["result"]["content"][0]["text"] += "x" * max(0, size - len(json.dumps(message, separators=(",", ":"))))
    return message


def big_list(tools: int) -> dict:
    """Return a `tools/list` result with `tools` tools of ordinary size."""
    properties = {
        f"argument_{n}": {"type": "string", "description": "What it is for, in a sentence."} for n in range(6)
    }
    return {
        "tools": [
            {
                "name": f"tool_{n}",
                "title": f"Tool {n}",
                "description": "What the tool does, in two sentences or three, as servers write it for a model." * 3,
                "inputSchema": {"type": "object", "properties": properties, "required": ["argument_0"]},
                "outputSchema": {"type": "object", "properties": properties},
                "annotations": {"readOnlyHint": True, "title": f"Tool {n}"},
                "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}],
                "execution": {"taskSupport": "optional"},
            }
            for n in range(tools)
        ]
    }
