"""Flow files of mitmproxy, written by `mitmdump -w` and *Save*, read without mitmproxy.

A flow is a dictionary (mitmproxy, `Flow.get_state`). Its `version` counts changes of the format, not releases. From 12
(mitmproxy 7) to 21 (11 and later) everything that is read here is the same; other versions are refused by name. A flow
that was streamed has no body.
"""

from typing import Any, BinaryIO

from mcpspy.importers import tnetstring
from mcpspy.importers.captures import Captures, epoch
from mcpspy.importers.exchange import Headers, RecordedExchange, RecordedMessage, Web, place
from mcpspy.importers.order import play

OLDEST, NEWEST = 12, 21
"""Flow format versions."""


def record(file: BinaryIO, captures: Captures) -> None:
    """Record the HTTP flows of a file. Raises CaptureError if captures cannot be written."""
    versions: set[str] = set()

    def parse(raw: bytes) -> RecordedExchange | None:
        flow = tnetstring.loads(raw)
        version = flow["version"]
        if type(version) is not int or not OLDEST <= version <= NEWEST:
            versions.add(_name(version))
            raise ValueError("a version that is not known")
        return _exchange(flow) if flow["type"] == "http" else None

    play(file, tnetstring.spans(file), parse, Web(captures).start, captures.account)
    if versions:
        found = f"flows of format version {', '.join(sorted(versions))}; {OLDEST} to {NEWEST} are read"
        advice = "let mitmproxy 11 rewrite it: mitmdump -nr OLD -w NEW"
        captures.account.fault = "; ".join(filter(None, [captures.account.fault, f"it holds {found} ({advice})"]))


def _name(version: Any) -> str:
    parts = version if isinstance(version, list) else [version]
    return ".".join(str(part) for part in parts[:3])[:20]


def _exchange(flow: dict[str, Any]) -> RecordedExchange:
    request, response, error = flow["request"], flow.get("response"), flow.get("error")
    socket = flow.get("websocket") or {}
    headers = _headers(request["headers"])
    asked = epoch(request["timestamp_start"])
    messages = tuple(_message(message, asked) for message in socket.get("messages") or ())
    if response:
        answered = max(asked, _time(response["timestamp_start"], asked))
        ended = max(answered, _time(response["timestamp_end"], answered))
    else:
        answered = ended = max(asked, _time(error and error.get("timestamp"), asked))
    body = response["content"] if response else None
    code = socket.get("close_code")
    return RecordedExchange(
        origin=place(_text(request["scheme"]), _host(request, headers), int(request["port"])),
        asked=asked,
        answered=answered,
        ended=max([_time(socket.get("timestamp_end"), ended), *(message.wall for message in messages)]),
        head={
            "method": _text(request["method"]),
            "target": _text(request["path"]),
            "version": _text(request["http_version"]).rpartition("/")[2],
        },
        headers=headers,
        body=_bytes(request["content"]),
        status=int(response["status_code"]) if response else None,
        reason=_text(response["reason"]) if response else "",
        response_headers=_headers(response["headers"]) if response else (),
        answer=None if body is None else ((ended, _bytes(body) or b""),),
        peer=_peer(flow.get("client_conn") or {}),
        coded=True,
        broken=_text(error["msg"]) if error else "",
        messages=messages,
        closed=(int(code), _text(socket.get("close_reason") or "")) if code else None,
    )


def _message(message: list[Any], asked: int) -> RecordedMessage:
    opcode, from_client, payload, wall, *_ = message
    return RecordedMessage(_time(wall, asked), bool(from_client), int(opcode), _bytes(payload) or b"")


def _host(request: dict[str, Any], headers: Headers) -> str:
    """Return the name by which the client knows the server; behind a transparent proxy only `Host` has it."""
    named = _text(request.get("authority") or b"") or next((it for name, it in headers if name.lower() == "host"), "")
    name = named.partition("]")[0].lstrip("[") if named.startswith("[") else named.rpartition("@")[2].partition(":")[0]
    return name or _text(request["host"])


def _peer(connection: dict[str, Any]) -> str | None:
    address = connection.get("peername") or connection.get("address")
    return f"{_text(address[0])}:{int(address[1])}" if address else None


def _headers(fields: list[Any]) -> Headers:
    return [(_text(name), _text(value)) for name, value in fields]


def _time(seconds: Any, otherwise: int) -> int:
    return epoch(seconds) if seconds else otherwise


def _bytes(value: Any) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return str(value, "latin-1")
