"""HTTP Archives (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec), as browsers and proxies export them.

Bodies are text, already decoded whatever the head states, or base64. Browsers leave out much: the body of a stream,
cookies, and all of a response that was pending (status 0). Chrome adds the messages of WebSockets and event sources,
with times (`_webSocketMessages`, `_eventSourceMessages`); mitmproxy writes the first of these as well.
"""

import base64
import json
from itertools import accumulate
from typing import Any, BinaryIO

from mcpspy.importers.captures import Captures, epoch, iso, play
from mcpspy.importers.exchange import Headers, RecordedExchange, RecordedMessage, Web, blocks, split
from mcpspy.importers.text import checked, elements
from mcpspy.wire.sse import parse_event

_BEFORE = ("blocked", "dns", "connect", "send", "wait")  # timings of an entry before the response begins


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the entries of an archive. Raises CaptureError if captures cannot be written."""
    play(file, elements(file, ("log", "entries")), parse, Web(captures).start, captures.account)


def parse(raw: bytes) -> RecordedExchange:
    """Parse one entry. Raises ValueError, KeyError, TypeError, AttributeError or RecursionError if it is invalid."""
    entry = json.loads(checked(raw))
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
    """Return a number of the archive; -1, or a missing number, means that it does not apply."""
    return max(float(value or 0), 0.0)


def _after(wall: int, milliseconds: float) -> int:
    return wall + round(min(milliseconds, 1e12) * 1e6)


def _headers(message: dict[str, Any]) -> Headers:
    fields = [(str(field["name"]), str(field["value"])) for field in message.get("headers") or ()]
    return [field for field in fields if not field[0].startswith(":")]  # pseudo-headers of HTTP/2, RFC 9113, 8.3


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
    """Return the events of a stream with their noted times; nothing if the times do not fit the events with data."""
    found = list(blocks(raw)) if events else []
    with_data = [parse_event(block).data is not None for block in found]
    if not events or sum(with_data) != len(events):
        return ()
    times = [epoch(event["time"]) for event in events]
    places = accumulate(with_data)
    return tuple((times[max(place - 1, 0)], block) for place, block in zip(places, found, strict=True))


def _as_sent(text: str, size: Any) -> bytes:
    """Return the bytes of a body as UTF-8, also if the program decoded it as ISO 8859-1.

    MCP is UTF-8. The size in bytes shows which of the two was used.
    """
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
    """Return the lines of an event, for which the archive has the fields."""
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
    """Return UTF-8; an unpaired surrogate was not readable in the original either."""
    return text.encode("utf-8", "replace")
