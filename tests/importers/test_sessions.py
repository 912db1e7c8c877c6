"""Golden captures, written in the format of another program and imported again."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gap, Open
from mcpspy.timeline import final_rows
from tests.importers.files import brought, dumps, flow

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "captures")
STDIO = ["features-python1-2025-11-25", "features-python2-2026-07-28", "probe-node-2025-11-25"]
HTTP = ["http-python1-2025-11-25", "http-python2-2026-07-28", "http-everything-2025-11-25"]
LEGACY = "sse-python1-2024-11-05"
DIRECTIONS = {"stdin": "c2s", "stdout": "s2c", "stderr": "stderr"}


def golden(name):
    return Capture(os.path.join(FOLDER, f"{name}.jsonl"))


def stdio_frames(capture):
    roles = {}
    for record in capture.records():
        if isinstance(record, Open):
            roles[record.ch] = record.role
        elif isinstance(record, Frame):
            yield roles[record.ch], record


def rows(capture, *kinds):
    """Return the rows of the timeline without their addresses and times."""
    found = []
    for row in final_rows(capture.records, live=False):
        if row.kind in kinds:
            rules = sorted(finding.rule for finding in row.findings)
            found.append((row.kind, row.sender, row.method, str(row.id), row.status, row.revision, rules))
    return found


MESSAGES = ("request", "notification", "result", "error")


def iso(started, nanoseconds):
    at = datetime.fromisoformat(started) + timedelta(microseconds=nanoseconds // 1000)
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


@pytest.mark.parametrize("name", STDIO)
def test_a_session_that_mcpsnoop_recorded_reads_as_ours(tmp_path, name):
    source, lines = golden(name), []
    for number, (role, frame) in enumerate(stdio_frames(source), 1):
        head = {"session_id": "s", "server_label": source.header.name, "seq": number}
        head |= {"ts": iso(source.header.started, frame.t) + "Z", "direction": DIRECTIONS[role], "transport": "stdio"}
        raw = "" if role == "stderr" else f',"raw":{frame.raw.decode()}'
        text = {"text": frame.raw.decode()} if role == "stderr" else {}
        lines.append(json.dumps(head | text)[:-1] + raw + "}\n")
    account, [made] = brought(tmp_path, "".join(lines).encode())
    assert account.lost == 0
    assert rows(made, *MESSAGES, "stderr") == rows(source, *MESSAGES, "stderr")


@pytest.mark.parametrize("name", STDIO)
def test_a_session_that_claude_desktop_logged_reads_as_ours(tmp_path, name):
    source, lines = golden(name), []
    sides = {"stdin": "client", "stdout": "server"}
    for role, frame in stdio_frames(source):
        if role in sides:
            at = iso(source.header.started, frame.t)[:-3]
            said = f"Message from {sides[role]}: {frame.raw.decode()} {{ metadata: undefined }}"
            lines.append(f"{at}Z [weather] [info] {said}\n")
    account, [made] = brought(tmp_path, "".join(lines).encode())
    assert account.lost == 0
    assert rows(made, *MESSAGES) == rows(source, *MESSAGES)


def exchanges(capture):
    """Return the parts of each exchange: head, body, start and end."""
    opened, asked = {}, {}
    for record in capture.records():
        if isinstance(record, Gap):
            continue
        ch = getattr(record, "ch", None)
        if isinstance(record, Open):
            opened[ch] = {"head": record.head, "start": record.t, "body": b"", "end": record.t, "sse": False}
            opened[ch] |= {"sse": record.framing == "sse", "peer": record.peer, "answer": None}
            if record.answers:
                opened[record.answers]["answer"] = opened[ch]
            else:
                asked[ch] = opened[ch]
        elif ch in opened:
            opened[ch]["end"] = record.t
            opened[ch]["how"] = getattr(record, "how", "eof")
            if isinstance(record, Frame):
                opened[ch]["body"] += record.raw + (b"\n" if opened[ch]["sse"] else b"")
    return asked.values()


def saved(source):
    """Yield the flows of a session as mitmproxy saves them, with whole streams."""
    start = datetime.fromisoformat(source.header.started).timestamp()
    for part in exchanges(source):
        answer, head = part["answer"], part["head"]
        state = flow(part["body"])
        state["request"] |= {"method": head["method"].encode(), "path": head["target"].encode()}
        state["request"] |= {"headers": headers(part), "timestamp_start": start + part["start"] / 1e9}
        state["client_conn"] = {"peername": [*part["peer"].rsplit(":", 1)]}
        state["response"] |= {
            "status_code": answer["head"]["status"],
            "headers": headers(answer),
            "content": answer["body"],
            "timestamp_start": start + answer["start"] / 1e9,
            "timestamp_end": start + answer["end"] / 1e9,
        }
        if answer["how"] == "abort":
            state["error"] = {"msg": "Client disconnected.", "timestamp": start + answer["end"] / 1e9}
        yield dumps(state)


def headers(part):
    kept = [field for field in part["head"]["headers"] if field[0].lower() != "content-encoding"]
    return [[name.encode(), value.encode()] for name, value in kept]


@pytest.mark.parametrize("name", HTTP)
def test_a_session_that_mitmproxy_saved_reads_as_ours(tmp_path, name):
    """The times of events are inferred, and so is their order among the other messages."""
    source = golden(name)
    account, [made] = brought(tmp_path, b"".join(saved(source)))
    assert account.lost == 0
    assert sorted(rows(made, *MESSAGES)) == sorted(rows(source, *MESSAGES))


def test_in_the_one_stream_of_http_with_sse_every_answer_finds_its_request(tmp_path):
    """The time of an answer is unknown there, so an answer after a cancellation may appear before it."""
    source = golden(LEGACY)
    _, [made] = brought(tmp_path, b"".join(saved(source)))
    late = ("pairing/late-after-cancel", "cancel/already-answered")

    def told(capture):
        found = rows(capture, *MESSAGES)
        return sorted((*row[:4], [rule for rule in row[6] if rule not in late]) for row in found)

    assert told(made) == told(source)
