import re

import pytest

from mcpspy.relay.hosts import Hosts


@pytest.mark.parametrize(
    ("glob", "name", "port", "allowed"),
    [
        ("mcp.example.com", "mcp.example.com", 443, True),
        ("mcp.example.com", "MCP.Example.com", 8443, True),
        ("mcp.example.com", "mcp.example.com.evil.org", 443, False),
        ("mcp.example.com", "xmcp.example.com", 443, False),
        ("mcp.example.com", "mcpxexample.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*", "anything", 1, True),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("example.com:*", "example.com", 443, True),
        ("::1", "::1", 443, True),
        ("[::1]", "::1", 443, True),
        ("[::1]:8443", "::1", 8443, True),
        ("[::1]:8443", "::1", 443, False),
    ],
)
def test_a_glob_names_hosts_and_perhaps_a_port(glob, name, port, allowed):
    """M-04."""
    hosts = Hosts([glob])
    assert hosts.allow(name, port=port) is allowed
    (pattern,) = hosts.patterns
    assert bool(re.search(pattern, f"{name}:{port}", re.IGNORECASE)) is allowed


def test_one_of_several_names_and_globs_is_enough():
    hosts = Hosts(["a", "b"])
    assert hosts.allow("10.0.0.1", "b", port=443)
    assert not hosts.allow("10.0.0.1", "c", port=443)
    assert not Hosts([]).allow("a", port=443)
