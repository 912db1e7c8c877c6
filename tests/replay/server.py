"""A weather server that answers as in the golden capture, except for the change named by its argument."""

import json
import sys

CHANGE = sys.argv[1] if len(sys.argv) > 1 else "none"
FORECASTS = {"Oslo": "12 °C, light rain", "Bergen": "9 °C, rain"}


def tools():
    place = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    about = "The weather of tomorrow" if CHANGE == "description" else "The weather of a city"
    yield {"name": "get_forecast", "description": about, "inputSchema": place, "annotations": {"readOnlyHint": True}}
    if CHANGE != "removed":
        yield {"name": "report", "description": "Take an observation", "inputSchema": {"type": "object"}}


def answer(method, params):
    if method == "initialize":
        info = {"name": "weather", "version": "1.0.0"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": list(tools())}}
    if params["name"] == "report":
        return {"result": {"content": [{"type": "text", "text": "thank you"}]}}
    city = params["arguments"]["city"]
    if CHANGE == "error" and city == "Oslo":
        return {"error": {"code": -32603, "message": "no such station"}}
    text = "13 °C, sun" if CHANGE == "result" and city == "Oslo" else FORECASTS[city]
    return {"result": {"content": [{"type": "text", "text": text}]}}


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False), flush=True)


sys.stdout.reconfigure(encoding="utf-8")
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    params = request.get("params", {})
    oslo = params.get("arguments") == {"city": "Oslo"}
    if CHANGE == "hang" and oslo:
        continue
    if CHANGE == "crash" and oslo:
        sys.exit(3)
    if CHANGE == "garbage" and oslo:
        print("Segmentation fault (no, really)", flush=True)
        continue
    say({"id": request["id"], **answer(request["method"], params)})
    if CHANGE == "extra" and oslo:
        say({"method": "notifications/tools/list_changed"})
