"""Captures for the tests of reports: one with findings of each severity, one with hostile text in every place."""

import json

from tests.transcript import capture

HOSTILE = "\x1b[2J\u202e%0A::error::\r\n\u2028]]><x a='\"&\x00\ud800\ufffe"
FAULTY = """
    > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
    < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
    < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object","required":["text"]}}]}}
    > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"words":"hello"}}}
    < {"jsonrpc":"2.0","id":2,"result":{"content":"hello"}}
    > {"jsonrpc":"2.0","id":3,"method":"tools/find"}
    < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found"},"trace":"x"}
"""  # noqa: E501 (messages have one line each)
"""#10: an error about arguments; #11: an error in a response; #12: a warning; #13: an info."""
FINE = """
    > {"jsonrpc":"2.0","id":0,"method":"ping"}
    < {"jsonrpc":"2.0","id":0,"result":{}}
"""


def faulty(path):
    return capture(path, FAULTY)


def fine(path):
    return capture(path, FINE)


def hostile(path):
    """Write a capture in which every text that a peer can choose would break a report."""
    text = json.dumps(HOSTILE)
    lines = (
        {"jsonrpc": "1", "id": 1, "method": HOSTILE, HOSTILE: 1},
        {"jsonrpc": "2.0", "id": HOSTILE, "result": {}, "error": HOSTILE},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": HOSTILE, "progress": 1}},
    )
    handshake = FAULTY.split("> {", 4)[:4]
    return capture(path, "> {".join(handshake) + "".join(f"\n< {json.dumps(line)}" for line in lines) + f"\n< {text}")
