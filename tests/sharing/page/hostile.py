"""A capture with hostile texts: markup, invisible characters, and very large or deep values."""

import base64
import json

MARKUP = (
    '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1"><svg onload=window.hacked=1>'
    "'`${window.hacked=1}"
    "<b>\u202eevil\u200b\x00\x1b[31m\ufeff"
)
LONG = 7_900_000  # characters in a text
DEEP = 10_000  # levels of nesting
PIECE = 65_536


def capture():
    """Return the bytes of the capture."""
    lines = []

    def record(**fields):
        lines.append(json.dumps(fields))

    def frame(channel, message, **more):
        raw = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0"} | message)
        record(kind="frame", ch=channel, t=len(lines) * 1_000_000, raw=raw, **more)

    names = {"tool": MARKUP, "name": MARKUP, "argv": [MARKUP], "cwd": MARKUP, "env": [], "pid": 1, "ppid": 1}
    record(mcpspy=1, id="0" * 32, started="2026-11-20T19:15:00.123456Z", transport="stdio", **names)
    for channel, sender, role in ((1, "client", "stdin"), (2, "server", "stdout"), (3, "server", "stderr")):
        record(kind="open", ch=channel, t=0, **{"from": sender}, role=role, framing="lines")
    named = {"name": MARKUP, "version": MARKUP}
    told = {"protocolVersion": "2025-11-25", "capabilities": {MARKUP: {}}}
    frame(1, {"id": MARKUP, "method": "initialize", "params": told | {"clientInfo": named}})
    frame(2, {"id": MARKUP, "result": told | {"serverInfo": named, "instructions": MARKUP}})
    frame(1, {"id": 1, "method": "tools/list"})
    tool = {"name": MARKUP, "description": MARKUP, "inputSchema": {"type": MARKUP}}
    frame(2, {"id": 1, "result": {"tools": [tool]}})
    inner = json.dumps({"inner": [MARKUP]})
    frame(1, {"id": 2, "method": "tools/call", "params": {"name": MARKUP, "arguments": {MARKUP: inner}}})
    frame(2, {"id": 2, "result": {"content": [{"type": "text", "text": MARKUP * 50}], "isError": True}})
    frame(1, {"id": {"__proto__": 1}, "method": MARKUP, "params": {"__proto__": {"a": 1}}})
    frame(2, {"id": 9, "error": {"code": MARKUP, "message": MARKUP, "data": "javascript:window.hacked=1"}})
    frame(3, MARKUP)
    frame(2, MARKUP)
    frame(2, "[" * DEEP + "]" * DEEP)
    frame(2, '{"jsonrpc":"2.0","method":"notifications/deep","params":' + '{"a":' * DEEP + "1" + "}" * DEEP + "}")
    given = {"name": "big", "arguments": {"n": 12345678901234567890, "e": 1.0}}
    frame(1, {"id": 3, "method": "tools/call", "params": given})
    large = json.dumps({"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "x" * LONG}]}})
    for at in range(0, len(large), PIECE):
        frame(2, large[at : at + PIECE], **({"more": True} if at + PIECE < len(large) else {}))
    record(kind="frame", ch=2, t=len(lines) * 1_000_000, b64=base64.b64encode(b"\xff\xfe{bad\x00").decode())
    lines.append('{"kind":"frame","ch":2,"t":')
    frame(1, {"method": MARKUP, "params": {"many": list(range(1000))}})
    record(kind="end", t=len(lines) * 1_000_000, exit={"code": 0})
    return "\n".join(lines).encode() + b"\n"
