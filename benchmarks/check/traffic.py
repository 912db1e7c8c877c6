"""A capture of many small frames: a handshake, a listing, then calls of a tool and their results, 200 B each."""

import json
from collections.abc import Iterator
from typing import Any

INFO = {"name": "x", "version": "1"}
TOOL = {
    "name": "forecast",
    "description": "The weather of the next days.",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["city"],
    },
}
TEXT = "Sunny with a light wind from the north; four degrees in the morning, eleven by noon, no rain expected."
STEP = 20_000  # nanoseconds from one frame to the next


def write(path: str, frames: int) -> None:
    """Write the capture."""
    with open(path, "w", encoding="utf-8") as file:
        header = {"mcpspy": 1, "id": "0" * 32, "started": "2026-01-01T00:00:00.000000Z", "tool": "benchmark"}
        file.write(_line(header | {"transport": "stdio", "name": "weather", "argv": ["weather"], "env": []}))
        file.writelines(
            _line({"kind": "open", "ch": ch, "t": 0, "from": sender, "role": role, "framing": "lines"})
            for ch, sender, role in ((1, "client", "stdin"), (2, "server", "stdout"), (3, "server", "stderr"))
        )
        file.writelines(
            _line({"kind": "frame", "ch": ch, "t": n * STEP, "raw": _text(message)})
            for n, (ch, message) in zip(range(frames), _messages(), strict=False)
        )
        file.write(_line({"kind": "end", "t": frames * STEP, "exit": {"code": 0}}))


def _messages() -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the channel and the message of each frame, endlessly."""
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO}
    agreed = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO}
    yield 1, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}
    yield 2, {"jsonrpc": "2.0", "id": 0, "result": agreed}
    yield 1, {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield 1, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    yield 2, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}
    number = 1
    while True:
        number += 1
        arguments = {"city": "Oslo", "days": 3, "note": TEXT[:90]}
        params = {"name": "forecast", "arguments": arguments}
        yield 1, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        result = {"content": [{"type": "text", "text": TEXT}], "isError": False}
        yield 2, {"jsonrpc": "2.0", "id": number, "result": result}


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _line(value: dict[str, Any]) -> str:
    return _text(value) + "\n"
