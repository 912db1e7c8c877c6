import re

import pytest

from mcpspy.errors import UsageError
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
        ("*:443", "::1", 443, True),
        ("MCP.example.com", "mcp.example.com", 443, True),
        ("Bücher.example:443", "xn--bcher-kva.example", 443, True),
        ("10.0.0.*", "10.0.0.7", 443, True),
        ("fe80::*", "fe80::1", 443, True),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("example.com:*", "example.com", 443, True),
        ("::1", "::1", 443, True),
        ("[::1]", "::1", 443, True),
        ("[::1]:8443", "::1", 8443, True),
        ("[::1]:8443", "::1", 443, False),
        ("mcp.example.com.", "mcp.example.com", 443, True),
        ("mcp.example.com", "mcp.example.com.", 443, True),
        ("mcp.example.com.:443", "mcp.example.com.", 443, True),
        ("mcp.example.com.:443", "mcp.example.com.", 8443, False),
        ("*.example.com.", "mcp.example.com", 443, True),
        ("mcp.example.com", "mcp.example.com..", 443, False),
    ],
)
def test_a_glob_names_hosts_and_perhaps_a_port(glob, name, port, allowed):
    """M-04."""
    hosts = Hosts([glob])
    assert hosts.allow(name, port=port) is allowed
    (pattern,) = hosts.patterns
    assert bool(re.search(pattern, f"{name}:{port}", re.IGNORECASE)) is allowed


@pytest.mark.parametrize(
    "glob",
    ["", " ", "https://h/mcp", "a,b", "a b", "h:https", "h:", "[::1", "user:hidden@h", "a:b:x", "ä..b", ".", ".:443"],
)
def test_what_can_name_no_host_is_refused(glob):
    """It would match nothing, and nobody would be told."""
    with pytest.raises(UsageError, match="--allow takes one host") as refused:
        Hosts([glob])
    assert "hidden" not in str(refused.value)


def test_one_of_several_names_and_globs_is_enough():
    hosts = Hosts(["a", "b"])
    assert hosts.allow("10.0.0.1", "b", port=443)
    assert not hosts.allow("10.0.0.1", "c", port=443)
    assert not Hosts([]).allow("a", port=443)
