"""A script of curl commands is run in a shell, where `curl` is a function that prints its arguments."""

import json
import os
import subprocess

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Open
from mcpspy.errors import UsageError
from tests.exporters.consumers import exported, golden
from tests.limits import LIMIT
from tests.sharing.scrub.captures import frame, header, opened, written
from tests.transcript import capture

WEB = [path for path in golden() if Capture(path).header.transport == "http"]
POST = {"method": "POST", "target": "/mcp", "headers": [["content-type", "application/json"]]}


def commands(script):
    """Return the arguments of each command that a script runs."""
    stub = b"curl() { for word; do printf '%s\\0' \"$word\"; done; printf '\\1'; }\n"
    run = subprocess.run(["sh", "-e"], input=stub + script, capture_output=True, timeout=LIMIT, check=True)
    assert run.stderr == b""
    return [text.split("\0")[:-1] for text in run.stdout.decode().split("\1")[:-1]]


def posted(path, *bodies):
    """Write a capture of requests with these bodies; return its path."""
    made = [header(transport="http", url="http://127.0.0.1:3000/mcp")]
    for ch, body in enumerate(bodies, 1):
        made += [opened(ch, "client", "request", "body", head=POST), frame(ch, body)]
        made.append({"kind": "close", "ch": ch, "t": ch, "how": "eof"})
    return written(path, *made, {"kind": "end", "t": 99})


@pytest.mark.parametrize("path", WEB, ids=os.path.basename)
def test_each_request_of_a_session_is_a_command(path):
    heads = [it.head for it in Capture(path).records() if isinstance(it, Open) and it.role == "request"]
    found = commands(exported("curl", path))
    assert [words[5] for words in found] == [head["method"] for head in heads]
    assert [words[7].split("/", 3)[3] for words in found] == [head["target"][1:] for head in heads]


def test_a_command_has_the_headers_and_the_body(tmp_path):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "it's"}}
    (words,) = commands(exported("curl", posted(tmp_path / "a.jsonl", body)))
    assert words[6:10] == ["--url", "http://127.0.0.1:3000/mcp", "--header", "content-type: application/json"]
    assert (words[10], json.loads(words[11])) == ("--data-raw", body)


def test_no_name_leaves_its_comment(tmp_path):
    evil = "x\nexit 3\r\x1b[2J\u2028$(exit 4)`exit 5`"
    path = posted(tmp_path / "a.jsonl", {"id": 1, "method": "tools/call", "params": {"name": evil}})
    script = exported("curl", path)
    assert len(commands(script)) == 1
    assert not {b"\r", b"\x1b"} & {bytes([byte]) for byte in script}


def test_a_batch_is_one_request(tmp_path):
    batch = [{"jsonrpc": "2.0", "id": n, "method": method} for n, method in enumerate(("ping", "tools/list"))]
    path = posted(tmp_path / "a.jsonl", batch)
    assert len(commands(exported("curl", path))) == 1
    assert len(commands(exported("curl", path, wants=lambda row: row.method == "tools/list"))) == 1


def test_a_filter_selects_requests_by_their_row(tmp_path):
    calls = [{"jsonrpc": "2.0", "id": n, "method": method} for n, method in enumerate(("ping", "tools/list", "ping"))]
    path = posted(tmp_path / "a.jsonl", *calls)
    assert len(commands(exported("curl", path, wants=lambda row: row.method == "ping"))) == 2


def test_what_has_no_command_is_a_comment(tmp_path):
    path = posted(tmp_path / "a.jsonl", {"jsonrpc": "2.0", "id": 1, "method": "x" * 200_000}, {"id": 2, "method": "b"})
    script = exported("curl", path)
    assert b"\n# #3 is too large for a command line: save it" in script
    assert len(commands(script)) == 1


def test_a_stdio_session_is_refused(tmp_path):
    path = capture(str(tmp_path / "made.jsonl"), "> 1 ping")
    with pytest.raises(UsageError, match="is a stdio session, and curl holds HTTP only; use mermaid"):
        exported("curl", path)


def test_several_captures_are_one_script(tmp_path):
    both = [posted(tmp_path / name, {"id": 1, "method": "ping"}) for name in ("a.jsonl", "b.jsonl")]
    script = exported("curl", *both)
    assert len(commands(script)) == 2
