"""OAuth through a proxy: metadata and challenges that a client refuses."""

from dataclasses import replace

import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from tests.rules.examples import findings, records

METADATA = ">> GET /.well-known/oauth-protected-resource\n<< 200 | {}"


def told(text):
    return [it.message for it in findings(text) if it.rule == "http/oauth-origin"]


def judged(found):
    judge = Judge()
    events = [event for record in found for event in judge.feed(record)]
    return [event.rule for event in [*events, *judge.end()] if isinstance(event, Finding)]


@pytest.mark.parametrize(
    ("resource", "there"),
    [
        ("https://mcp.example.com/mcp", "mcp.example.com"),
        ("http://localhost:6278/mcp", "localhost:6278"),
        ("http://127.0.0.1:6278/mcp", None),
        ("urn:nothing", None),
        ("http://[broken", None),
    ],
)
def test_metadata_of_another_origin_is_told_of(resource, there):
    """O-01."""
    found = told(METADATA.replace("{}", f'{{"resource":"{resource}"}}'))
    assert bool(found) == bool(there)
    if there:
        assert found == [
            f"login will fail: the metadata names {there}; expected 127.0.0.1:6278, where the client connects"
        ]


def test_a_challenge_that_leads_elsewhere_is_told_of_once():
    challenge = '[www-authenticate: Bearer resource_metadata="https://mcp.example.com/.well-known/x"]'
    text = f">> 1 tools/list\n<< 401 {challenge}\n" * 2
    assert len(told(text)) == 1
    assert told(text.replace("https://mcp.example.com", "http://127.0.0.1:6278")) == []
    assert told(text.replace("401", "200")) == []


def test_the_origin_that_the_client_dialled_may_go_without_its_port():
    text = METADATA.replace("{}", '{"resource":"https://mcp.example.com:443/mcp"}')
    assert told(text.replace("resource\n", "resource [host: mcp.example.com]\n")) == []


def test_what_the_relay_has_rewritten_is_no_finding():
    """O-01: `--rewrite-oauth`."""
    found = records(METADATA.replace("{}", '{"resource":"https://mcp.example.com/mcp"}'))
    assert "http/oauth-origin" in judged(found)
    rewritten = [replace(it, sent=b"{}", by="oauth") if isinstance(it, Frame) else it for it in found]
    assert "http/oauth-origin" not in judged(rewritten)
    challenge = '>> 1 initialize {}\n<< 401 [www-authenticate: Bearer resource_metadata="https://a.example/x"]'
    found = [replace(it, by="oauth") if isinstance(it, Open) else it for it in records(challenge)]
    assert "http/oauth-origin" not in judged(found)


@pytest.mark.parametrize(
    "body", ["nonsense", "[]", '{"resource":5}', '{"jsonrpc":"2.0","resource":"https://a.example"}']
)
def test_what_is_no_metadata_is_nothing(body):
    assert told(METADATA.replace("{}", body)) == []
