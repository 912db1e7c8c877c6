"""A capture of many consecutive HTTP sessions: a handshake, a listing, one call of a tool, a DELETE.

It is compared with one session of the same length and shape: `write(path, 1, sessions)` has as many rounds as the other
capture has sessions. Each round has a ping in place of `initialize`, and a refused GET in place of the DELETE.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from benchmarks.check.traffic import INFO, TEXT, TOOL

JSON, SSE = "application/json", "text/event-stream"
KINDS = ("deleted", "left", "peers", "stateless", "legacy")
"""Streamable HTTP with a DELETE; without one; each session from another address; 2026-07-28; HTTP+SSE."""
STEP = 100_000  # nanoseconds from one record to the next
_REVISION = "2025-06-18"
_STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class _Capture:
    """Makes the records of a capture in order, as lines."""

    def __init__(self) -> None:
        self.t = self.frames = 0
        self._channels = count(1)

    def ask(self, method: str, target: str, message: Any = None, *, peer: str, **headers: str) -> Iterator[str | int]:
        """Yield the records of a request, then its channel."""
        ch = next(self._channels)
        fields = {"accept": f"{JSON}, {SSE}" if message or method != "GET" else SSE}
        fields |= {"content-type": JSON} if message else {}
        head = {"method": method, "target": target, "version": "1.1", "headers": _lines(fields | headers)}
        yield self._record("open", ch, **{"from": "client"}, role="request", framing="body", peer=peer, head=head)
        if message:
            yield self._record("frame", ch, raw=_text(message))
        yield self._record("close", ch, how="eof")
        yield ch

    def answer(self, asked: int, message: Any = None, *, status: int = 200, **headers: str) -> Iterator[str]:
        """Yield the records of a response with one body, or without a body."""
        ch = next(self._channels)
        yield self.begin(ch, asked, status, JSON if message else None, **headers)
        if message:
            yield self._record("frame", ch, raw=_text(message))
        yield self.end(ch)

    def stream(self, asked: int) -> tuple[int, str]:
        """Return the channel and the head of an event stream."""
        ch = next(self._channels)
        return ch, self.begin(ch, asked, 200, SSE)

    def begin(self, ch: int, asked: int, status: int, kind: str | None, **headers: str) -> str:
        """Return the record of a response head."""
        head = {"status": status, "reason": "", "headers": _lines(({"content-type": kind} if kind else {}) | headers)}
        framing = "sse" if kind == SSE else "body"
        fields = {"from": "server", "role": "response", "framing": framing, "answers": asked, "head": head}
        return self._record("open", ch, **fields)

    def event(self, ch: int, data: str, name: str = "message") -> str:
        """Return the record of an event in a stream."""
        return self._record("frame", ch, raw=f"event: {name}\ndata: {data}\n")

    def end(self, ch: int) -> str:
        """Return the record of the end of a channel."""
        return self._record("close", ch, how="eof")

    def _record(self, kind: str, ch: int, **fields: Any) -> str:
        self.t += STEP
        self.frames += kind == "frame"
        return _text({"kind": kind, "ch": ch, "t": self.t} | fields) + "\n"


def write(path: str, sessions: int, rounds: int = 1, kind: str = "deleted") -> int:
    """Write the capture with `rounds` rounds in each session. Return the number of frames."""
    capture = _Capture()
    with open(path, "w", encoding="utf-8") as file:
        header = {"mcpspy": 1, "id": "0" * 32, "started": "2026-01-01T00:00:00.000000Z", "tool": "benchmark"}
        file.write(_text(header | {"transport": "http", "name": "weather", "url": "http://127.0.0.1:3000/mcp"}) + "\n")
        for number in range(sessions):
            host = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" if kind == "peers" else "127.0.0.1"
            file.writelines(_session(capture, kind, f"session-{number}", rounds, f"{host}:{5000 + number % 50000}"))
        file.write(_text({"kind": "end", "t": capture.t}) + "\n")
    return capture.frames


def _session(capture: _Capture, kind: str, name: str, rounds: int, peer: str) -> Iterator[str]:
    if kind == "stateless":
        yield from _stateless(capture, name, rounds, peer)
    elif kind == "legacy":
        yield from _legacy(capture, name, rounds, peer)
    else:
        yield from _streamable(capture, name, rounds, peer)
        if kind != "left":
            headers = {"mcp-session-id": name, "mcp-protocol-version": _REVISION}
            asked = yield from _asked(capture.ask("DELETE", "/mcp", peer=peer, **headers))
            yield from capture.answer(asked)


def _streamable(capture: _Capture, name: str, rounds: int, peer: str) -> Iterator[str]:
    """Yield a session with an id, without its end."""
    given = {"mcp-session-id": name}
    named = given | {"mcp-protocol-version": _REVISION}
    for which in range(rounds):
        own = named if which else {}
        for number, (method, params, result) in enumerate(_round(which)):
            message = _request(5 * which + number, method, params) if result is not None else _note(method)
            asked = yield from _asked(capture.ask("POST", "/mcp", message, peer=peer, **own))
            if result is None:
                yield from capture.answer(asked, status=202)
            else:
                yield from capture.answer(asked, _result(5 * which + number, result), **({} if own else given))
            own = named
        if which < rounds - 1:
            asked = yield from _asked(capture.ask("GET", "/mcp", peer=peer, **named))
            yield from capture.answer(asked, status=405)


def _stateless(capture: _Capture, name: str, rounds: int, peer: str) -> Iterator[str]:
    """Yield the requests of a client of 2026-07-28 with its own name, because that revision has no sessions."""
    meta = _STATELESS | {"io.modelcontextprotocol/clientInfo": INFO | {"name": name}}
    for number, (method, params, result) in enumerate(_WORK * rounds):
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
        headers |= {"mcp-name": params["name"]} if method == "tools/call" else {}
        message = _request(number, method, params | {"_meta": meta})
        asked = yield from _asked(capture.ask("POST", "/mcp", message, peer=peer, **headers))
        caching = {"ttlMs": 0, "cacheScope": "private"} if method == "tools/list" else {}
        yield from capture.answer(asked, _result(number, {"resultType": "complete"} | result | caching))


def _legacy(capture: _Capture, name: str, rounds: int, peer: str) -> Iterator[str]:
    """Yield a session of HTTP+SSE: a stream, and POSTs that are answered on it."""
    asked = yield from _asked(capture.ask("GET", "/sse", peer=peer))
    stream, head = capture.stream(asked)
    target = f"/messages?session_id={name}"
    yield head
    yield capture.event(stream, target, "endpoint")
    for which in range(rounds):
        for number, (method, params, result) in enumerate(_round(which, "2024-11-05")):
            message = _request(5 * which + number, method, params) if result is not None else _note(method)
            posted = yield from _asked(capture.ask("POST", target, message, peer=peer))
            yield from capture.answer(posted, status=202)
            if result is not None:
                yield capture.event(stream, _text(_result(5 * which + number, result)))
    yield capture.end(stream)


_ARGUMENTS = {"city": "Oslo", "days": 3, "note": TEXT[:90]}
_WORK: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tools/list", {}, {"tools": [TOOL]}),
    ("tools/call", {"name": "forecast", "arguments": _ARGUMENTS}, {"content": [{"type": "text", "text": TEXT}]}),
]


def _round(which: int, revision: str = _REVISION) -> list[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """Return method, params and result of each client message of a round. A notification has the result None."""
    if which:
        return [("ping", {}, {}), ("notifications/roots/list_changed", {}, None), *_WORK]
    asked = {"protocolVersion": revision, "capabilities": {"roots": {"listChanged": True}}, "clientInfo": INFO}
    agreed = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": INFO}
    return [("initialize", asked, agreed), ("notifications/initialized", {}, None), *_WORK]


def _asked(lines: Iterator[str | int]) -> Iterator[str]:
    """Yield the lines of a request, and return its channel."""
    for line in lines:
        if isinstance(line, int):
            return line
        yield line
    raise AssertionError


def _note(method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method}


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method} | ({"params": params} if params else {})


def _result(number: int, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _lines(headers: dict[str, str]) -> list[list[str]]:
    return [list(pair) for pair in headers.items()]


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
