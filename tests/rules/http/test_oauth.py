"""OAuth through a proxy: metadata and challenges that a client refuses."""

from dataclasses import replace

from mcpspy.capture.records import Frame, Open
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from tests.rules.examples import records

METADATA = ">> GET /.well-known/oauth-protected-resource\n<< 200 | {}"


def judged(found):
    judge = Judge()
    events = [event for record in found for event in judge.feed(record)]
    return [event.rule for event in [*events, *judge.end()] if isinstance(event, Finding)]


def test_what_the_relay_has_rewritten_is_no_finding():
    """O-01: `--rewrite-oauth`."""
    found = records(METADATA.replace("{}", '{"resource":"https://mcp.example.com/mcp"}'))
    assert "http/oauth-origin" in judged(found)
    rewritten = [replace(it, sent=b"{}", by="oauth") if isinstance(it, Frame) else it for it in found]
    assert "http/oauth-origin" not in judged(rewritten)
    challenge = '>> 1 initialize {}\n<< 401 [www-authenticate: Bearer resource_metadata="https://a.example/x"]'
    found = [replace(it, by="oauth") if isinstance(it, Open) else it for it in records(challenge)]
    assert "http/oauth-origin" not in judged(found)
