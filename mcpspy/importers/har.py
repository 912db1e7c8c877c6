"""HTTP Archives (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec), as browsers and proxies export them.

Bodies are text, already decoded whatever the head says, or base64. Browsers leave out much: the body of a stream,
cookies, all of a response that was pending (status 0). Chrome adds what WebSockets and event sources received, with
times (`_webSocketMessages`, `_eventSourceMessages`); mitmproxy writes the first of these as well.
"""

import base64
import json
from itertools import accumulate
from typing import Any, BinaryIO

from mcpspy.importers.captures import Captures, epoch, iso
from mcpspy.importers.events import blocks
from mcpspy.importers.exchange import Headers, RecordedExchange, RecordedMessage, Web, split
from mcpspy.importers.order import play
from mcpspy.importers.text import elements
from mcpspy.wire.sse import parse_event

_BEFORE = ("blocked", "dns", "connect", "send", "wait")  # of an entry's timings: until the response begins


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the entries of an archive. Raises CaptureError where captures cannot be written."""
    play(file, elements(file, ("log", "entries")), parse, Web(captures).start, captures.account)


def parse(raw: bytes) -> RecordedExchange:
    """One entry. Raises ValueError, KeyError, TypeError, AttributeError or RecursionError for what is none."""
    entry = json.loads(raw)
    request, response = entry["request"], entry.get("response") or {}
    asked = iso(entry["startedDateTime"])
    answered = _after(asked, sum(_positive((entry.get("timings") or {}).get(name)) for name in _BEFORE))
    ended = max(answered, _after(asked, _positive(entry.get("time"))))
    messages = tuple(_message(message, asked) for message in entry.get("_webSocketMessages") or ())
    origin, target = split(request["url"])
    method = str(request["method"])
    status = _positive(response.get("status"))
    version = str(request.get("httpVersion") or "").lower().removeprefix("http/").removeprefix("h")
    return RecordedExchange(
        origin=origin,
        asked=asked,
        answered=min(answered, ended),
        ended=max([ended, *(message.wall for message in messages)]),
        head={"method": method, "target": target, "version": version},
        headers=_headers(request),
        body=_request_body(request),
        status=int(status) or None,
        reason=str(response.get("statusText") or ""),
        response_headers=_headers(response),
        answer=_answer(entry, response.get("content") or {}, ended) if response else None,
        broken=str(response.get("_error") or ""),
        messages=messages,
    )


def _positive(value: Any) -> float:
    """A number of the archive; what does not apply is -1 there, or missing."""
    return max(float(value or 0), 0.0)


def _after(wall: int, milliseconds: float) -> int:
    return wall + round(min(milliseconds, 1e12) * 1e6)


def _headers(message: dict[str, Any]) -> Headers:
    fields = [(str(field["name"]), str(field["value"])) for field in message.get("headers") or ()]
    return [field for field in fields if not field[0].startswith(":")]  # of HTTP/2, RFC 9113, 8.3


def _request_body(request: dict[str, Any]) -> bytes | None:
    post = request.get("postData")
    if post and post.get("text") is not None:
        return base64.b64decode(post["text"]) if post.get("encoding") == "base64" else _encode(post["text"])
    return b"" if not post and _positive(request.get("bodySize")) == 0 else None


def _answer(entry: dict[str, Any], content: dict[str, Any], ended: int) -> tuple[tuple[int, bytes], ...] | None:
    text = content.get("text")
    if text:
        raw = base64.b64decode(text) if content.get("encoding") == "base64" else _as_sent(text, content.get("size"))
        return _timed(raw, entry.get("_eventSourceMessages") or []) or ((ended, raw),)
    events = entry.get("_eventSourceMessages")
    if events:
        return tuple((epoch(event["time"]), _event(event)) for event in events)
    sizes = [it for name, it in _headers(entry["response"]) if name.lower() == "content-length"]
    some = [content.get("size"), *filter(str.isdecimal, sizes)]
    is_stream = "event-stream" in str(content.get("mimeType"))
    return None if is_stream or any(map(_positive, some)) else ()


def _timed(raw: bytes, events: list[dict[str, Any]]) -> tuple[tuple[int, bytes], ...]:
    """The events of a stream with the times that were noted of those that have data; nothing where they do not fit."""
    found = list(blocks(raw)) if events else []
    with_data = [parse_event(block).data is not None for block in found]
    if not events or sum(with_data) != len(events):
        return ()
    times = [epoch(event["time"]) for event in events]
    places = accumulate(with_data)
    return tuple((times[max(place - 1, 0)], block) for place, block in zip(places, found, strict=True))


def _as_sent(text: str, size: Any) -> bytes:
    """UTF-8, which is what MCP is, also where the program took it for ISO 8859-1, as the size in bytes can tell."""
    raw = _encode(text)
    if len(raw) == size:
        return raw
    try:
        octets = text.encode("latin-1")
        octets.decode()
    except UnicodeError:
        return raw
    return octets if len(octets) == size else raw


def _event(event: dict[str, Any]) -> bytes:
    """The lines of an event, of which the archive has the fields."""
    names = (("event", event.get("eventName")), ("id", event.get("eventId")))
    fields = [f"{name}: {value}" for name, value in names if value and (name, value) != ("event", "message")]
    fields += [f"data: {line}" for line in str(event["data"]).split("\n")]
    return _encode("\n".join(fields) + "\n\n")


def _message(message: dict[str, Any], asked: int) -> RecordedMessage:
    opcode = int(message.get("opcode", 1))
    payload = _encode(message["data"]) if opcode == 1 else base64.b64decode(message["data"])
    seconds = message.get("time")
    return RecordedMessage(epoch(seconds) if seconds else asked, message["type"] == "send", opcode, payload)


def _encode(text: str) -> bytes:
    """UTF-8; a surrogate that stands alone was not readable already."""
    return text.encode("utf-8", "replace")
