"""The part of the transcript notation that describes one message; `docs/rules.md` explains the whole notation."""

import json
import re

CAPABILITIES = {
    "client": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "server": {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "logging": {},
        "completions": {},
    },
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def handshake(revision):
    info = {"name": "x", "version": "1"}
    asked = {"protocolVersion": revision, "capabilities": CAPABILITIES["client"], "clientInfo": info}
    agreed = {"protocolVersion": revision, "capabilities": CAPABILITIES["server"], "serverInfo": info}
    yield ">", message(id=0, method="initialize", params=asked)
    yield "<", message(id=0, result=agreed)
    yield ">", message(method="notifications/initialized")


def frame(rest):
    """Return the bytes of a line, and whether the line is cut."""
    rest = rest.strip()
    if rest.startswith("|"):
        return verbatim(rest[1:])
    if not rest[:1].isalnum():  # verbatim JSON; methods and ids begin with a letter or digit
        return rest.encode(), False
    head, _, body = rest.partition(" ")
    if head.isdigit():
        word, _, body = body.partition(" ")
        if word in "=!":
            return message(id=int(head), **{"result" if word == "=" else "error": json.loads(body)}), False
        return message(id=int(head), method=word, **params(body)), False
    return message(method=head, **params(body)), False


def verbatim(rest):
    cut = rest.startswith("…")
    kind, _, text = rest.lstrip("…").partition(" ")
    if kind.startswith("nest"):
        depth = int(kind[4:])
        return b"[" * depth + b"]" * depth, False
    if kind == "deep-schema":
        schema = {"type": "object"}
        for _ in range(70):
            schema = {"type": "object", "properties": {"a": schema}}
        return message(id=int(text), result={"tools": [{"name": "deep", "inputSchema": schema}]}), False
    if made := re.fullmatch("(tools|description)([0-9]+)", kind):
        many, size = (int(made[2]), 4) if made[1] == "tools" else (1, int(made[2]))
        schema = {"type": "object", "properties": {}}
        tools = [{"name": f"tool_{n}", "description": "x" * size, "inputSchema": schema} for n in range(many)]
        return message(id=int(text), result={"tools": tools}), False
    if made := re.fullmatch("result([0-9]+)", kind):
        return message(id=int(text), result={"content": [{"type": "text", "text": "x" * int(made[1])}]}), False
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text.encode())
    raw = re.sub(rb"\\r$", b"\r", raw)
    return raw.ljust(int(kind[1:] or 0) if kind.startswith("x") else 0), cut


def params(text):
    text = text.strip()
    if not text:
        return {}
    match = re.match(r"\{META(?: logLevel (\w+))?(?: can (\w+))?(?: with ([^\s}]+))?\s*(.*)", text, re.DOTALL)
    if not match:
        return {"params": json.loads(text)}
    meta = META | ({"io.modelcontextprotocol/logLevel": match[1]} if match[1] else {})
    meta |= {"io.modelcontextprotocol/clientCapabilities": {match[2]: {}}} if match[2] else {}
    if match[3]:
        meta |= {"io.modelcontextprotocol/clientCapabilities": {"extensions": {match[3]: {}}}}
    return {"params": {"_meta": meta} | json.loads("{" + match[4])}


def message(**members):
    return json.dumps({"jsonrpc": "2.0"} | members, separators=(",", ":")).encode()
