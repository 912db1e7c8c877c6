"""A record of each kind with all of its members, and captures that contain them."""

import json

HEADER = {
    "mcpspy": 1,
    "id": "0" * 32,
    "started": "2026-11-20T19:15:00.123456Z",
    "tool": "mcpspy 0.1.0",
    "transport": "http",
    "name": "weather",
    "argv": ["node", "server.js"],
    "url": "http://127.0.0.1:8000/mcp",
    "cwd": "/home/me",
    "env": ["PATH"],
    "pid": 12,
    "ppid": 11,
    "client_start": 10,
    "control": True,
    "scrubbed": True,
    "continues": {"id": "1" * 32, "file": "a.jsonl", "lines": 1},
    "imported": {"from": "a HAR", "approximate": ["bytes"], "missing": ["heads"]},
}
JSON_TYPE = ["Content-Type", "application/json"]
REQUEST = {"method": "POST", "target": "/mcp", "version": "HTTP/1.1", "headers": [JSON_TYPE, ["Host", "h"]]}
RESPONSE = {"status": 200, "reason": "OK", "version": "HTTP/1.1", "headers": [JSON_TYPE, ["Mcp-Session-Id", "s"]]}
CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}'
RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}'
GATE = {"name": "slow", "when": {"method": "tools/call", "name": "search"}, "action": {"delay": 2000000000}}

RECORDS = {
    "request": {
        "kind": "open", "ch": 4, "t": 1, "from": "client", "role": "request", "framing": "body", "peer": "1.2.3.4:5",
        "head": REQUEST, "sent": {"target": "/x"}, "by": "endpoint",
    },
    "call": {
        "kind": "frame", "ch": 4, "t": 2, "raw": CALL, "cut": True, "op": "binary", "from": "client", "sent": RESULT,
        "by": "gate slow", "held": 1, "undecided": True, "more": False,
    },
    "release": {
        "kind": "release", "t": 3, "held": 1, "how": "edited", "sent": CALL, "by": "gate slow",
    },
    "response": {
        "kind": "open", "ch": 5, "t": 4, "from": "server", "role": "response", "framing": "body", "answers": 4,
        "peer": "1.2.3.4:5", "head": RESPONSE, "sent": {"headers": [JSON_TYPE]}, "by": "oauth",
    },
    "result": {"kind": "frame", "ch": 5, "t": 5, "b64": "e30=", "sent": {"b64": "e30="}, "by": "oauth"},
    "close": {"kind": "close", "ch": 5, "t": 6, "how": "eof", "code": 1000, "reason": "bye"},
    "gap": {"kind": "gap", "t": 7, "lost": 3, "why": "no space left on device"},
    "signal": {"kind": "signal", "t": 8, "signal": 15, "to": "group", "forwarded": True},
    "gates": {"kind": "gates", "t": 9, "gates": [GATE], "by": "file"},
    "continued": {"kind": "continued", "t": 10, "file": "b.jsonl"},
    "exit": {"kind": "end", "t": 11, "exit": {"code": 1}},
    "killed": {"kind": "end", "t": 11, "exit": {"signal": 9}, "why": "no such command"},
}  # fmt: skip
"""By a name for tests, in the order of a session."""


def lines(**changed):
    """Return a capture with all of these records, some of them replaced."""
    return b"".join(json.dumps(it).encode() + b"\n" for it in [HEADER, *(RECORDS | changed).values()])
