"""Transcripts of listings and calls of tools."""

import json

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def listed(*tools, number=2, cursor=None, more=None):
    asked = f' {{"cursor":"{cursor}"}}' if cursor else ""
    result = {"tools": list(tools)} | ({"nextCursor": more} if more else {})
    return f"> {number} tools/list{asked}\n< {number} = {json.dumps(result)}\n"


def tool(name="echo", schema=SCHEMA, **members):
    return {"name": name, "inputSchema": schema} | members


def call(number, name="echo", **arguments):
    return f"> {number} tools/call {json.dumps({'name': name, 'arguments': arguments})}\n"


BEGIN = "= 2025-11-25\n"
CHANGED = "< notifications/tools/list_changed\n"
