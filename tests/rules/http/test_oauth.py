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


def test_metadata_that_the_relay_has_rewritten_exists():
    """W-06: then a 401 without a challenge is only a warning."""
    initialize = '>> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{}}'
    metadata = METADATA.replace("{}", '{"resource":"https://mcp.example.com/mcp"}')
    text = f"{initialize}\n<< 401\n{metadata}"
    body = b'{"resource"'
    found = [
        replace(it, sent=b"{}", by="oauth") if isinstance(it, Frame) and it.raw.startswith(body) else it
        for it in records(text)
    ]
    (missing,) = [it for it in judged(found) if it.rule.startswith("http/")]
    assert (missing.rule, missing.severity) == ("http/challenge-missing", "warning")


def test_an_origin_that_the_relay_changed_is_no_fault_of_the_server():
    """W-06: the server allows the Origin that it received."""
    found = records("""
        >> OPTIONS [origin: http://127.0.0.1:6278] [access-control-request-method: POST]
        << 204 [access-control-allow-origin: http://upstream:1] [access-control-allow-headers: content-type]
    """)
    assert "http/preflight" in {it.rule for it in judged(found)}
    sent = {"headers": [["Origin", "http://upstream:1"]]}
    found = [
        replace(it, sent=sent, by="origin") if isinstance(it, Open) and it.role == "request" else it for it in found
    ]
    assert "http/preflight" not in {it.rule for it in judged(found)}


def test_an_endpoint_on_the_origin_of_the_server_behind_the_proxy_is_right():
    """W-06: the relay rewrites it for the client."""
    text = ">> GET /sse\n<< 200 events\n<- [event: endpoint] | http://upstream:1/messages?sessionId=5e"
    found = records(text)
    assert "http/endpoint-origin" in {it.rule for it in judged(found)}
    sent = {"headers": [["Host", "upstream:1"]]}
    found = [replace(it, sent=sent, by="host") if isinstance(it, Open) and it.role == "request" else it for it in found]
    assert "http/endpoint-origin" not in {it.rule for it in judged(found)}
