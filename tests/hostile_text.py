"""Captures in which every text of every record has characters that a screen must not get, and how to find them there.

The texts are found by walking the records, and a test compares the records with `mcpspy/capture/records.py`. So a new
member of a record is covered as soon as `EVERY_MEMBER` has it.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError
from mcpspy.timeline import final_rows

CONTROLS = "\x1b]52;c;QUJD\x07\x1b[31m\x00\x08\x0b\x7f\r\n\x9b31m\x9d0;t\x9c\x85"
HIDDEN = "\u202e\u2066\u2069\u200f\u061c\u200b\u2060\ufeff\u00ad\u2028\u2029\U000e0041\u3164"
MARKUP = "[bold]x[/bold][@click=app.quit]q[/][link=file:///x]l[/link][/]"
NASTY = CONTROLS + HIDDEN + "e" + "\u0301" * 9 + MARKUP
"""What is put into every text."""

_NEVER = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u061c\u00ad\ufeff\u3164\U000e0000-\U000e0fff\u2028\u2029]"
)
_PILE = re.compile("\u0301{5}")


def without_joins(text):
    """Remove the joins that belong to emoji and to letters of Arabic and Indic scripts."""
    kept = ""
    for at, character in enumerate(text):
        sides = [unicodedata.category(side) for side in text[max(at - 1, 0) : at + 2 : 2]]
        letters = {"\u0600" <= side <= "\u0dff" for side in text[max(at - 1, 0) : at + 2 : 2]} == {True}
        emoji = sides in (["So", "So"], ["Mn", "So"], ["Sk", "So"])
        if not (
            0 < at < len(text) - 1 and character in "\u200c\u200d" and (letters or (emoji and character == "\u200d"))
        ):
            kept += character
    return kept


def unsafe(text: str) -> list[str]:
    """Return what a screen must not get. The list does not come from the code under test."""
    controls = [it for it in text if unicodedata.category(it) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    return [*controls, *_NEVER.findall(text), *_PILE.findall(text)]


def _line(**members) -> str:
    return json.dumps(members)


def _message(**members) -> str:
    return json.dumps({"jsonrpc": "2.0"} | members)


_HEADER = {
    "mcpspy": 1, "id": "00112233445566778899aabbccddeeff", "started": "2026-11-20T19:15:00.123456Z",
    "tool": "mcpspy 0.1.0", "cwd": "/srv", "env": ["HOME", "PATH"], "pid": 20, "ppid": 10, "client_start": 5,
    "client": ["python", "agent.py"],
}  # fmt: skip
_TOOL = {
    "name": "get", "title": "Get", "description": "gets it",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": "x"}}, "required": ["a"]},
    "annotations": {"title": "Get"},
}  # fmt: skip
_GATES = [{"name": "slow", "when": {"method": "tools/call", "name": "get"}, "action": {"hold": 2_000_000_000}}]

_STDIO = [
    _line(**_HEADER, transport="stdio", name="server", argv=["python", "server.py"], control=True, scrubbed=True,
          continues={"id": "ffeeddccbbaa99887766554433221100", "file": "before.jsonl", "lines": 1},
          imported={"from": "a HAR", "approximate": ["bytes"], "missing": ["heads"]}),
    _line(kind="open", t=1, ch=1, **{"from": "client"}, role="stdin", framing="lines", peer="pipe"),
    _line(kind="open", t=1, ch=2, **{"from": "server"}, role="stdout", framing="lines"),
    _line(kind="open", t=1, ch=3, **{"from": "server"}, role="stderr", framing="lines"),
    _line(kind="gates", t=2, gates=_GATES, by="file"),
    _line(kind="gates", t=2, gates=[{"name": "mine", "when": {"name": "x"}, "action": {"drop": True}}], by="viewer"),
    _line(kind="frame", t=10, ch=1, raw=_message(
        id=1, method="initialize",
        params={"protocolVersion": "2025-06-18", "capabilities": {"roots": {}},
                "clientInfo": {"name": "client", "version": "1"}})),
    _line(kind="frame", t=20, ch=2, raw=_message(
        id=1, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "instructions": "read this",
                      "serverInfo": {"name": "server", "version": "2"}})),
    _line(kind="frame", t=30, ch=1, raw=_message(method="notifications/initialized")),
    _line(kind="frame", t=35, ch=3, raw="starting up"),
    _line(kind="frame", t=40, ch=1, raw=_message(id="two", method="tools/list")),
    _line(kind="frame", t=50, ch=2, raw=_message(id="two", result={"tools": [_TOOL], "nextCursor": "more"})),
    _line(kind="frame", t=60, ch=1, held=1, by="gate slow", raw=_message(
        id=3, method="tools/call", params={"name": "get", "arguments": {"b": "text"}})),
    _line(kind="release", t=70, held=1, how="edited", by="viewer", sent=_message(
        id=3, method="tools/call", params={"name": "get", "arguments": {"a": "other"}})),
    _line(kind="frame", t=80, ch=2, by="gate slow", sent=_message(id=3, result={"x": "y"}), raw=_message(
        id=3, result={"content": [{"type": "text", "text": "a text"}], "isError": True})),
    _line(kind="frame", t=90, ch=1, raw=_message(id=4, method="resources/read", params={"uri": "file:///x"})),
    _line(kind="frame", t=95, ch=2, raw=_message(id=4, error={"code": -32002, "message": "no", "data": {"uri": "y"}})),
    _line(kind="frame", t=96, ch=2, raw=_message(
        method="notifications/message", params={"level": "info", "logger": "log", "data": "logged"})),
    _line(kind="frame", t=97, ch=1, by="gate mine", sent=None, raw=_message(id=5, method="tools/call", params={
        "name": "gone", "arguments": {}})),
    _line(kind="frame", t=98, ch=2, undecided=True, cut=True, raw="not JSON at all"),
    _line(kind="frame", t=99, ch=2, b64="/wBhYg==", op="binary", **{"from": "mcpspy"}, by="reload"),
    _line(kind="frame", t=100, ch=1, raw=_message(id=6, method="tasks/unknown", params={"name": "x"})),
    _line(kind="frame", t=100, ch=1, held=2, by="viewer", raw=_message(id=7, method="ping")),
    _line(kind="release", t=100, held=2, how="dropped", by="viewer", sent=None),
    _line(kind="gap", t=101, lost=2, why="the disk is full"),
    _line(kind="signal", t=102, signal=15, to="group", forwarded=False),
    _line(kind="close", t=103, ch=2, how="exit"),
    _line(kind="end", t=104, exit={"signal": 9}, why="it was not found"),
]  # fmt: skip
_HEAD = {"method": "POST", "target": "/mcp", "version": "1.1",
         "headers": [["Host", "h"], ["Content-Type", "application/json"], ["X-Own", "value"]]}  # fmt: skip
_ANSWER = {"status": 200, "reason": "OK", "headers": [["Content-Type", "application/json"], ["Mcp-Session-Id", "s1"]]}
_HTTP = [
    _line(**_HEADER, transport="http", name="remote", url="https://example.com/mcp", argv=[]),
    _line(kind="open", t=1, ch=1, **{"from": "client"}, role="request", framing="body", peer="127.0.0.1:5",
          head=_HEAD, sent={"target": "/other", "headers": [["Host", "other"]]}, by="oauth"),
    _line(kind="frame", t=2, ch=1, raw=_message(
        id=1, method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {},
                                           "clientInfo": {"name": "client", "version": "1"}})),
    _line(kind="close", t=3, ch=1, how="eof"),
    _line(kind="open", t=4, ch=2, **{"from": "server"}, role="response", framing="body", answers=1, head=_ANSWER),
    _line(kind="frame", t=5, ch=2, raw=_message(
        id=1, result={"protocolVersion": "2025-06-18", "capabilities": {},
                      "serverInfo": {"name": "server", "version": "2"}})),
    _line(kind="close", t=6, ch=2, how="eof"),
    _line(kind="open", t=7, ch=3, **{"from": "client"}, role="request", framing="body", head=_HEAD),
    _line(kind="frame", t=8, ch=3, raw=_message(
        id=2, method="tools/call", params={"name": "get", "arguments": {"a": "b"}})),
    _line(kind="close", t=9, ch=3, how="eof"),
    _line(kind="open", t=10, ch=4, **{"from": "server"}, role="response", framing="sse", answers=3,
          head={"status": 200, "reason": "OK", "headers": [["Content-Type", "text/event-stream"]]}),
    _line(kind="frame", t=11, ch=4, raw="event: message\nid: 7\ndata: " + _message(
        id=2, result={"content": [{"type": "text", "text": "a text"}]}) + "\n"),
    _line(kind="close", t=12, ch=4, how="reset"),
    _line(kind="open", t=13, ch=5, **{"from": "client"}, role="request", framing="body",
          head=_HEAD | {"method": "GET", "target": "/.well-known/x"}),
    _line(kind="close", t=14, ch=5, how="eof"),
    _line(kind="open", t=15, ch=6, **{"from": "server"}, role="response", framing="body", answers=5,
          head=_ANSWER | {"status": 404, "reason": "Not Found"}),
    _line(kind="frame", t=16, ch=6, raw="nothing here"),
    _line(kind="close", t=17, ch=6, how="eof", reason="the content coding is unknown"),
    _line(kind="open", t=18, ch=7, **{"from": "server"}, role="ws", framing="message"),
    _line(kind="frame", t=19, ch=7, op="ping", raw="p"),
    _line(kind="close", t=20, ch=7, how="abort", code=1001, reason="going away"),
    _line(kind="end", t=21, exit={"code": 3}),
]  # fmt: skip
EVERY_MEMBER = {"stdio": _STDIO, "http": _HTTP}
"""Captures that together have every member of every record."""

_ROUTING = ("jsonrpc", "method", "protocolVersion")  # members that decide what a message is


def gentle(name: str, path: Path) -> Path:
    """Write one of these captures to a file, with hostile text wherever it keeps its rows."""
    return _planted(name, path, _rows, whole=False)


def harsh(name: str, path: Path) -> Path:
    """Write one of these captures to a file, with hostile text wherever it keeps its records."""
    return _planted(name, path, _records, whole=True)


def one_by_one(name: str, path: Path, members: Collection[str]) -> Iterator[Path]:
    """Write one of these captures again and again, each time with hostile text in another place of these members."""
    records = [json.loads(line) for line in EVERY_MEMBER[name]]
    for place in [place for place in places(records) if place[-1] in members]:
        _write(path, _changed(records, place, whole=True))
        yield path


def planted(name: str, chosen: Callable[[list[tuple[str, ...]]], Iterable[tuple[str, ...]]]) -> bytes:
    """Return one of these captures with hostile text in the places that `chosen` picks from all."""
    records = [json.loads(line) for line in EVERY_MEMBER[name]]
    for place in chosen([place for place in places(records) if place[-1] != "kind"]):
        records = _changed(records, place, whole=True)
    return _lines(records).encode()


def places(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the path of every text in some records, beginning with the kind of the record."""
    return sorted({place for record in records for place in _places(record, (_kind(record),))})


def _kind(record: dict[str, Any]) -> str:
    return record.get("kind", "header")


def _planted(name: str, path: Path, of: Callable[[Path], object], *, whole: bool) -> Path:
    """Put hostile text into one member after the other, if what `of` returns stays the same."""
    records = [json.loads(line) for line in EVERY_MEMBER[name]]
    base = of(_write(path, records))
    for place in [place for place in places(records) if place[-1] != "kind"]:
        changed = _changed(records, place, whole=whole)
        with suppress(CaptureError):
            records = changed if of(_write(path, changed)) == base else records
    return _write(path, records)


def _rows(path: Path) -> list[tuple[int, int, str]]:
    return [(row.n, row.part, row.kind) for row in final_rows(Capture(str(path)).records, live=False)]


def _records(path: Path) -> list[tuple[int, type]]:
    return [(record.n, type(record)) for record in Capture(str(path)).records()]


def _write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text(_lines(records))
    return path


def _lines(records: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def _changed(records: list[dict[str, Any]], place: tuple[str, ...], *, whole: bool) -> list[dict[str, Any]]:
    return [_with(record, (_kind(record),), place, whole=whole) for record in records]


def _places(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of every text in a record; all elements of a list have the same."""
    if isinstance(value, str):
        yield path
    for name, inner in _inside(value):
        yield from _places(inner, (*path, name))


def _inside(value: object) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return list(value.items())
    return [("", inner) for inner in value] if isinstance(value, list) else []


def _with(value, path, place, *, whole):
    """Return a record with hostile text at one place."""
    if isinstance(value, dict):
        return {name: _with(inner, (*path, name), place, whole=whole) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with(inner, (*path, ""), place, whole=whole) for inner in value]
    if not isinstance(value, str) or path != place:
        return value
    return _frame(value, whole=whole) if path[-1] in ("raw", "sent") else value + NASTY


def _frame(text: str, *, whole: bool) -> str:
    """Return the text of a frame with hostile text in every string of its JSON, or at its end."""
    start, data, rest = text.rpartition("data: ")
    try:
        value = json.loads(rest)
    except ValueError:
        return text + NASTY
    return start + data + json.dumps(_inner(value, whole=whole), ensure_ascii=False) + "\n" * text.endswith("\n")


def _inner(value, *, whole):
    if isinstance(value, dict):
        return {
            (name + NASTY if whole and name in ("a", "b", "x") else name): (
                inner if name in _ROUTING and (name == "jsonrpc" or not whole) else _inner(inner, whole=whole)
            )
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_inner(inner, whole=whole) for inner in value]
    return value + NASTY if isinstance(value, str) else value
