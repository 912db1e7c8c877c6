"""The properties that a head gives its channel, and the recorded form of the head."""

import json

import orjson
import pytest

from mcpspy.recording.http_exchange import Opening
from mcpspy.secrets.redactor import Redactor


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))


def head(*headers):
    return {"method": "POST", "target": "/mcp", "version": "1.1", "headers": list(headers)}


@pytest.mark.parametrize(
    ("headers", "target", "plain"),
    [
        ([("Content-Type", "application/json")], "/mcp", True),
        ([("content-type", "text/event-stream")], "/mcp", True),  # a request is one frame
        ([("content-type", "text/event-stream")], None, False),
        ([("content-type", "text/html")], None, False),
        ([("Content-Encoding", "gzip")], None, False),
        ([], "/oauth/token", False),
        ([], None, True),
    ],
)
def test_a_body_is_plain_if_it_is_recorded_as_it_comes(headers, target, plain):
    assert Opening(head(*headers), {}, target).plain is plain


def test_what_is_recorded_has_no_secrets_and_is_encoded_once():
    opening = Opening(
        head(("Authorization", "Bearer abcdef")), {"sent": {"headers": [["X-Api-Key", "abcdef"]]}, "by": "host"}, "/mcp"
    )
    recorded = opening.recorded(Redactor())
    line = orjson.dumps(recorded)
    assert b"abcdef" not in line
    assert list(json.loads(line)) == ["head", "sent", "by"]
    assert (json.loads(line)["by"], json.loads(line)["head"]["target"]) == ("host", "/mcp")
    assert opening.recorded(Redactor()) is recorded


def test_a_head_with_bytes_that_are_no_text_is_left_to_the_writer():
    opening = Opening({"status": 200, "reason": "caf\udce9", "headers": []}, {})
    assert opening.recorded(Redactor())["head"]["reason"] == "caf\udce9"
