"""Files of other programs, made for a test, and the captures that an import makes of them."""

import json
import os

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Gap, Open
from mcpspy.importers.forms import bring

START = "2026-03-17T10:00:00.000Z"
AT = 1773741600  # seconds since the epoch
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def brought(folder, content, name="file"):
    """Import these bytes; return the account of the import and the captures."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    account = bring(str(path), {"MCPSPY_CAPTURE_DIR": str(folder / "captures")})
    return account, [Capture(made) for made in account.paths]


def told(capture):
    """Return each record of a capture as a line: milliseconds, sender and role of its channel, and content."""
    channels, found = {}, []
    for record in capture.records():
        t = f"{record.t // 1_000_000}"
        if isinstance(record, Open):
            channels[record.ch] = f"{record.sender} {record.role}"
            head = record.head or {}
            what = head.get("status") or f"{head.get('method')} {head.get('target')}"
            if head:
                found.append(f"{t} {channels[record.ch]}: {what}")
        elif isinstance(record, Frame):
            op = f" {record.op}" if record.op else ""
            text = record.raw.decode(errors="backslashreplace")
            found.append(f"{t} {channels[record.ch]}{op}{' cut' if record.cut else ''} {text}")
        elif isinstance(record, Gap):
            found.append(f"{t} gap {record.lost} {record.why}")
        elif isinstance(record, Close) and record.how not in ("eof", "exit"):
            found.append(f"{t} {channels[record.ch]} {record.how}")
        else:
            assert isinstance(record, Close | End)
    return found


def imported(capture):
    """Return the header's description of the file from which a capture was imported."""
    with open(capture.path, encoding="utf-8") as file:
        return json.loads(file.readline())["imported"]


def har(*entries, before='"version":"1.2","creator":{"name":"made up","version":"1"},"pages":[]'):
    return f'{{"log":{{{before},"entries":[{",".join(json.dumps(entry) for entry in entries)}]}}}}'.encode()


def entry(request=PING, answer=PONG, start=START, time=20.0, wait=15.0, **fields):
    """Return a HAR entry; `fields` replace response fields, or are added to the entry if they begin with `_`."""
    content = {"size": len(answer), "mimeType": "application/json", "text": answer.decode()}
    response = {"status": 200, "statusText": "OK", "headers": [], "content": content}
    return {
        "startedDateTime": start,
        "time": time,
        "request": {
            "method": "POST",
            "url": "https://mcp.example.com/mcp?page=2",
            "httpVersion": "HTTP/1.1",
            "headers": [{"name": "content-type", "value": "application/json"}],
            "bodySize": len(request),
            "postData": {"mimeType": "application/json", "text": request.decode()},
        },
        "response": response | {key: value for key, value in fields.items() if not key.startswith("_")},
        "timings": {"blocked": -1, "send": 0, "wait": wait, "receive": 5},
    } | {key: value for key, value in fields.items() if key.startswith("_")}


def dumps(value):
    """Return a value as a typed netstring."""
    if isinstance(value, dict):
        raw, kind = b"".join(dumps(key) + dumps(it) for key, it in value.items()), b"}"
    elif isinstance(value, list):
        raw, kind = b"".join(map(dumps, value)), b"]"
    elif value is None or isinstance(value, bool):
        raw, kind = (b"", b"~") if value is None else (str(value).lower().encode(), b"!")
    elif isinstance(value, int | float):
        raw, kind = str(value).encode(), b"#" if isinstance(value, int) else b"^"
    else:
        raw, kind = (value, b",") if isinstance(value, bytes) else (value.encode(), b";")
    return b"%d:%s%s" % (len(raw), raw, kind)


def flow(request=PING, answer=PONG, at=float(AT), **fields):
    """Return the state of a mitmproxy flow of format version 21; `fields` replace its fields."""
    headers = [[b"Content-Type", b"application/json"]]
    return {
        "websocket": None,
        "response": {
            "reason": b"OK",
            "status_code": 200,
            "timestamp_start": at + 0.015,
            "timestamp_end": at + 0.02,
            "content": answer,
            "headers": headers,
            "http_version": b"HTTP/1.1",
        },
        "request": {
            "path": b"/mcp",
            "authority": b"",
            "scheme": b"https",
            "method": b"POST",
            "port": 443,
            "host": "mcp.example.com",
            "timestamp_start": at,
            "timestamp_end": at + 0.001,
            "content": request,
            "headers": headers,
            "http_version": b"HTTP/1.1",
        },
        "client_conn": {"peername": ["127.0.0.1", 5000]},
        "error": None,
        "type": "http",
        "version": 21,
    } | fields


def fixture(name):
    with open(os.path.join(os.path.dirname(__file__), "fixtures", name), "rb") as file:
        return file.read()
