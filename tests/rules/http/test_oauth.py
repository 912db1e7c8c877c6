"""OAuth through a proxy: metadata and challenges that a client refuses."""

from dataclasses import replace

from mcpspy.capture.records import Frame, Open
from tests.rules.examples import judged, records

METADATA = ">> GET /.well-known/oauth-protected-resource\n<< 200 | {}"


def test_what_the_relay_has_rewritten_is_no_finding():
    """O-01: `--rewrite-oauth`."""
    found = records(METADATA.replace("{}", '{"resource":"https://mcp.example.com/mcp"}'))
    assert "http/oauth-origin" in {it.rule for it in judged(found)}
    rewritten = [replace(it, sent=b"{}", by="oauth") if isinstance(it, Frame) else it for it in found]
    assert "http/oauth-origin" not in {it.rule for it in judged(rewritten)}
    challenge = '>> 1 initialize {}\n<< 401 [www-authenticate: Bearer resource_metadata="https://a.example/x"]'
    found = [replace(it, by="oauth") if isinstance(it, Open) else it for it in records(challenge)]
    assert "http/oauth-origin" not in {it.rule for it in judged(found)}
