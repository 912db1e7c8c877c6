"""Sessions and locks for the tests of this folder."""

import json

from mcpspy.contract.changes import LockCheck
from mcpspy.contract.lock import Offered, locked
from tests.rules.examples import messages

CITY = {"type": "object", "properties": {"city": {"type": "string", "description": "A city"}}}
GET = {"name": "get", "description": "The weather of a city", "inputSchema": CITY}
SEND = {"name": "send", "description": "Send a report", "inputSchema": {"type": "object"}}


def hello(name="weather", version="1.0", **members):
    """Return a handshake as a transcript."""
    told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": name}} | members
    told["serverInfo"] = told["serverInfo"] | {"version": version}
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    return f"> 1 initialize {json.dumps(asked)}\n< 1 = {json.dumps(told)}\n> notifications/initialized\n"


def listed(*entries, number=2, kind="tools", cursor=None, more=None):
    """Return a page of a listing as a transcript."""
    method = {"resourceTemplates": "resources/templates"}.get(kind, kind)
    asked = f" {json.dumps({'cursor': cursor})}" if cursor else ""
    result = {kind: list(entries)} | ({"nextCursor": more} if more else {})
    return f"> {number} {method}/list{asked}\n< {number} = {json.dumps(result)}\n"


def offered(text):
    """Return what the server offers in a transcript."""
    found = Offered()
    for message in messages(text):
        found.add(message)
    return found


def lock(text, name="weather"):
    return {name: locked(offered(text))}


def found(locks, text, name="capture"):
    """Compare a transcript with locks; return its findings as `severity rule pointer`, and their sentences."""
    check = LockCheck(locks, name)
    told = [finding for message in messages(text) for finding, _ in check.add(message)]
    told += [finding for finding, _ in check.end()]
    return [f"{it.severity} {it.rule} {it.pointer}" for it in told], [it.message for it in told]
