"""A stdio server without an SDK. It answers each `tools/list` with the next listing of its argument, a JSON array."""

import json
import sys

listings = iter(json.loads(sys.argv[1]))
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if request["method"] == "initialize":
        info = {"name": "lists", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
    elif request["method"] == "tools/list":
        answer = {"result": {"tools": next(listings)}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
