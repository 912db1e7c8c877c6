"""The session logs of mcpsnoop: how to make one from a capture, and a small reader that verifies recordings.

A line is one object: the direction (`c2s`, `s2c`, `stderr`), the time, and the message as received, in `raw`. If it is
not JSON, it is in `text`, for example the fragment that mcpsnoop keeps of a very long line.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from benchmarks.relay.captures import Piece

SESSIONS = ".local/state/mcpsnoop/sessions"
"""The directory of its logs, below HOME."""
_CHANNELS = {"c2s": 1, "s2c": 2, "stderr": 3}
_DIRECTIONS = {channel: direction for direction, channel in _CHANNELS.items()}
_RAW = b',"raw":'
_LATER = b',"mcp_protocol_version":', b',"conn_id":', b',"status":', b',"transport_headers":'
"""Members that may follow the message in an HTTP session."""


def convert(capture: str, path: str) -> None:
    """Write the frames of a stdio capture as mcpsnoop would have recorded them."""
    with open(capture, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as log:
        began = datetime.fromisoformat(json.loads(next(source))["started"]).replace(tzinfo=UTC, microsecond=0)
        head = '{"session_id":"weather-1","server_label":"weather","seq":%d,"ts":"%s.%09dZ","direction":"%s",'
        number = 1
        second = began.strftime("%Y-%m-%dT%H:%M:%S")
        meta = '"transport":"stdio","raw":{"command":["weather"],"cwd":"/"}}\n'
        log.write(head % (number, second, 0, "meta") + meta)
        for line in source:
            record = json.loads(line)
            if record["kind"] != "frame":
                continue
            number += 1
            whole, rest = divmod(record["t"], 1_000_000_000)
            second = datetime.fromtimestamp(began.timestamp() + whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            log.write(head % (number, second, rest, _DIRECTIONS[record["ch"]]))
            log.write(f'"transport":"stdio","raw":{record["raw"]}}}\n')


def pieces(path: str) -> Iterator[Piece]:
    """Yield channel and bytes of every frame in a log, with the exact bytes of the file. Each frame is one piece."""
    with open(path, "rb") as file:
        for line in file:
            record = json.loads(line)
            if record["direction"] == "meta":
                continue
            if "raw" in record:
                raw = line.partition(_RAW)[2].rstrip(b"\n").removesuffix(b"}")
                for name in _LATER:
                    raw = raw.partition(name)[0] if name[2:-2].decode() in record else raw
            else:
                raw = record["text"].encode()
            yield _CHANNELS[record["direction"]], raw, False


def bodies(path: str) -> Iterator[Piece]:
    """Yield the same for an HTTP session, with the line end of each body, which mcpsnoop leaves out."""
    return ((ch, raw + b"\n", more) for ch, raw, more in pieces(path))
