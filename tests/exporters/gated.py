"""A capture with acts of a gate and of a viewer, a gap, a signal and a damaged line."""

import json

_CALL = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}'
_RESULT = '{"jsonrpc":"2.0","id":%d,"result":{}}'
_MS = 1_000_000
_LINES = (
    {"mcpspy": 1, "id": "0" * 32, "started": "2026-11-20T19:15:00.000000Z", "tool": "mcpspy 0.1.0",
     "transport": "stdio", "name": "weather", "argv": ["weather"]},
    {"kind": "open", "ch": 1, "t": 0, "from": "client", "role": "stdin", "framing": "lines"},
    {"kind": "open", "ch": 2, "t": 0, "from": "server", "role": "stdout", "framing": "lines"},
    {"kind": "frame", "ch": 1, "t": _MS, "raw": _CALL % 1, "sent": None, "by": "gate slow"},
    {"kind": "frame", "ch": 2, "t": 2 * _MS, "raw": _RESULT % 1, "from": "mcpspy", "by": "gate slow"},
    {"kind": "frame", "ch": 1, "t": 3 * _MS, "raw": _CALL % 9, "from": "mcpspy", "by": "viewer"},
    {"kind": "frame", "ch": 2, "t": 4 * _MS, "raw": _RESULT % 9},
    {"kind": "frame", "ch": 2, "t": 5 * _MS, "raw": '{"jsonrpc":"2.0","method":"x"}', "from": "mcpspy",
     "by": "gate slow"},
    {"kind": "frame", "ch": 1, "t": 6 * _MS, "raw": _CALL % 2, "held": 1, "by": "gate slow"},
    {"kind": "release", "t": 9 * _MS, "held": 1, "how": "continued", "by": "viewer"},
    {"kind": "frame", "ch": 2, "t": 12 * _MS, "raw": f'[{_RESULT % 2},{{"jsonrpc":"2.0","method":"y"}}]'},
    {"kind": "gap", "t": 13 * _MS, "lost": 3, "why": "disk; #59;"},
    {"kind": "signal", "t": 14 * _MS, "signal": 15, "to": "group", "forwarded": False},
    {"kind": "gates", "t": 15 * _MS, "gates": [{"name": "a", "when": {}, "action": {}}], "by": "file"},
)  # fmt: skip


def gated(path):
    """Write the capture and return its path."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in _LINES) + "damaged\n")
    return str(path)
