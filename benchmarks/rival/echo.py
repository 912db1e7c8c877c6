"""A server with one tool, which returns the text in its arguments: for proxies that are servers themselves."""

import json
import sys
from typing import Any


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result for a request."""
    if method == "initialize":
        about = {"name": "bench", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            found = result(message["method"], message.get("params", {}))
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": found}
            print(json.dumps(answer, separators=(",", ":")), flush=True)
