"""A server without an SDK that lists its tools in pages; its argument selects how it misbehaves."""

import json
import sys
import time

how = sys.argv[1] if len(sys.argv) > 1 else ""
pages = [[{"name": "a", "inputSchema": {"type": "object"}}], [{"name": "b", "inputSchema": {"type": "object"}}]]


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method, params):
    if method == "server/discover":
        return {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        if how == "refuses":
            return {"error": {"code": -32602, "message": "no \x1b[2J client"}}
        info = {"name": "asked", "version": "1"}
        shown = {"tools": {}, "resources": {}} if how == "templates" else {"tools": {}}
        told = {} if how == "silent" else {"capabilities": shown}
        return {"result": {"protocolVersion": "2025-06-18", "serverInfo": info} | told}
    if method == "resources/list":
        return {"result": {"resources": []}}
    if method == "tools/list" and how != "unserved":
        at = int(params.get("cursor", "0"))
        if how in ("object", "large"):
            return {"result": {"tools": {} if how == "object" else [{"name": "a", "description": "x" * (9 << 20)}]}}
        if how == "flood":
            sys.stdout.write("x" * (40 << 20))
        more = {"nextCursor": "0" if how == "circle" else str(at + 1)} if at == 0 or how == "circle" else {}
        return {"result": {"tools": pages[at] if at < len(pages) else []} | more}
    return {"error": {"code": -32601, "message": "Method not found"}}


print("warming up", file=sys.stderr, flush=True)
if how == "dies":
    sys.exit("no key")
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        if how == "asks" and request.get("id") == 90:
            say({"id": 1 if request.get("result") == {} else 99, "result": {}})
        continue
    if how == "hangs" or (how == "late" and request["method"] == "tools/list"):
        time.sleep(60)
    if how == "insists" and request["method"] == "server/discover":
        sys.exit(1)
    if how == "noise":
        print("Segmentation fault (no, really)", flush=True)
        say({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
    if how == "asks" and request["method"] == "tools/list":
        say({"id": 90, "method": "ping"})
        say({"id": 91, "method": "roots/list"})
    say({"id": request["id"], **answer(request["method"], request.get("params", {}))})
