"""Captures for the tests of scrubbing, made line by line, also in forms that a relay would not write."""

import json

from mcpspy.sharing.scrub import Scrub, ScrubOptions

STDIO = (("client", "stdin", "lines"), ("server", "stdout", "lines"), ("server", "stderr", "lines"))
"""The channels 1 to 3."""
IN, OUT, ERR = 1, 2, 3


def header(**fields):
    return {
        "mcpspy": 1, "id": "a" * 32, "started": "2026-11-20T19:15:00.123456Z", "tool": "mcpspy 0.1.0",
        "transport": "stdio", "name": "weather", "argv": ["server"], **fields,
    }  # fmt: skip


def opened(ch, sender, role, framing, **fields):
    return {"kind": "open", "ch": ch, "t": 0, "from": sender, "role": role, "framing": framing, **fields}


def frame(ch, content, **fields):
    """Return a frame with a text or a message."""
    raw = {"raw": content if isinstance(content, str) else json.dumps(content)}
    return {"kind": "frame", "ch": ch, "t": 1, **raw, **fields}


def capture(path, *records, **fields):
    """Write a capture of a stdio server with these records or lines; return its path."""
    channels = [opened(ch, *channel) for ch, channel in enumerate(STDIO, 1)]
    return written(path, header(**fields), *channels, *records)


def written(path, *records):
    """Write a file of records or lines; return its path."""
    with open(path, "wb") as file:
        for record in records:
            line = record if isinstance(record, bytes) else json.dumps(record, separators=(",", ":")).encode()
            file.write(line + b"\n")
    return str(path)


def scrubbed(path, **options):
    """Return the lines of the scrubbed capture."""
    return list(Scrub(str(path), ScrubOptions(**options)).lines())


def frames(path, **options):
    """Return the frames of the scrubbed capture, as text or base64."""
    records = map(json.loads, scrubbed(path, **options))
    return [record.get("raw", record.get("b64")) for record in records if record.get("kind") == "frame"]


def call(arguments, **params):
    """Return a tool call with arguments."""
    params = {"name": "login", "arguments": arguments, **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def result(text):
    """Return a result with a text."""
    return {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}}
