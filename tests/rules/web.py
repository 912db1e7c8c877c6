"""The examples of the rules about HTTP as records."""

import json
import re

from tests.conversation.http import JSON, SSE, Exchange
from tests.rules.notation import frame, handshake
from tests.transcript import lines

HOST = "127.0.0.1:6278"
SESSION = "s"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ENDS = {"closed": "eof", "broken": "reset", "left": "abort"}
HEADER = re.compile(r"\[([a-z-]+):\s*([^\]]*)\]\s*")


def records(text):
    """Return the records of an example."""
    script = Script()
    said = {"=": script.handshake, ">>": script.ask, "<<": script.answer, "<-": script.event, "<x": script.spoil,
            "<.": script.leave}  # fmt: skip
    for mark, t, rest in lines(text):
        script.http.wait(t)
        said[mark](rest)
    return script.http.records


class Script:
    """Plays the lines of an example; each line answers or continues the latest request or stream."""

    def __init__(self):
        self.http = Exchange()
        self._asked = []  # channels of requests without a response
        self._streams = []  # channels of open streams
        self._own = {}  # headers that every request has

    def handshake(self, rest):
        revision = rest.split()[0]
        (_, asked), (_, agreed), (_, initialized) = handshake(revision)
        self.http.answer(self.http.ask(asked, host=HOST), agreed, mcp_session_id=SESSION)
        self._own = {"mcp-session-id": SESSION}
        if revision not in ("2024-11-05", "2025-03-26"):
            self._own["mcp-protocol-version"] = revision
        self.http.answer(self.http.ask(initialized, host=HOST, **keywords(self._own)), status=202, kind=None)

    def ask(self, rest):
        method = re.match(r"(GET|DELETE|OPTIONS|POST)\b\s*(/[^ ]*)?\s*", rest)
        own, rest = headers(rest[method.end() :] if method else rest)
        fields = {"host": HOST} | self._own
        target = (method and method[2]) or "/mcp"
        if method and method[1] != "POST":
            asked = self.http.ask(method=method[1], target=target, **keywords(fields | own))
        else:
            message, _ = frame(rest)
            asked = self.http.ask(message, target=target, **keywords(fields | repeated(message) | own))
        self._asked.append(asked)

    def answer(self, rest):
        status, _, rest = rest.partition(" ")
        events = rest.startswith("events")
        own, rest = headers(rest.removeprefix("events").strip())
        message = frame(rest)[0] if rest else None
        kind = own.pop("content-type", SSE if events else JSON if rest else None)
        fields = {"status": int(status), "kind": kind, "end": not events} | keywords(own)
        channel = self.http.answer(self._asked.pop(), message, **fields)
        if events:
            self._streams.append(channel)

    def event(self, rest):
        if rest.startswith("~ "):
            self.http.event(self._streams[-1], raw=rest[2:].encode() + b"\n")
            return
        own, rest = headers(rest)
        data = frame(rest)[0] if rest else b""
        start = "".join(f"{name}: {own[name]}\n" for name in ("event", "id") if name in own).encode()
        self.http.event(self._streams[-1], raw=start + b"data: " + data + b"\n")

    def leave(self, rest):
        waits = rest == "left" and self._asked
        self.http.close(self.http.unanswered(self._asked.pop()) if waits else self._streams.pop(), ENDS[rest])

    def spoil(self, rest):
        closed = self.http.records.pop()
        self.http.close(closed.ch, reason=rest)


def headers(rest):
    """Return the headers at the start of a line (None for a header to leave out), and the rest of the line."""
    found = {}
    while match := HEADER.match(rest):
        found[match[1]] = match[2].strip() or None
        rest = rest[match.end() :]
    return found, rest


def repeated(message):
    """Return the headers that repeat members of a request of 2026-07-28."""
    try:
        value = json.loads(message)
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    params = value.get("params", {})
    stated = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
    if stated is None:
        return {}
    name = params.get(NAMED.get(value["method"]))
    return {"mcp-protocol-version": stated, "mcp-method": value["method"]} | ({"mcp-name": name} if name else {})


def keywords(fields):
    return {name.replace("-", "_"): value for name, value in fields.items()}
