import re

import pytest

from mcpspy.errors import UsageError
from mcpspy.relay.mitm.allowlist import Hosts, names


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
    assert (hosts.named(name, port=port) is not None) is allowed
    (pattern,) = hosts.patterns
    assert bool(re.search(pattern, f"{name}:{port}", re.IGNORECASE)) is allowed


NO_HOSTS = ["", " ", "a b", *"https://h/mcp a,b h:https h: [::1 user:hidden@h a:b:x ä..b . .:443 bü*.example".split()]


@pytest.mark.parametrize("glob", NO_HOSTS)
def test_what_can_name_no_host_is_refused(glob):
    """Such a glob would match nothing, without a message."""
    with pytest.raises(UsageError, match="--allow takes one host") as refused:
        Hosts([glob])
    assert "hidden" not in str(refused.value)


def test_the_first_of_several_names_counts():
    hosts = Hosts(["a", "b"])
    assert hosts.named("10.0.0.1", "b", "a", port=443) == "b"
    assert hosts.named("10.0.0.1", "c", port=443) is None
    assert Hosts([]).named("a", port=443) is None


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Bank.Example", "bank.example"),
        ("bank.example.", "bank.example"),
        ("B\u00fccher.example", "xn--bcher-kva.example"),
        ("stra\u00dfe.example", "xn--strae-oqa.example"),
        ("FE80::1%eth0", "fe80::1%eth0"),
        ("10.0.0.7", "10.0.0.7"),
        ("", None),
        ("[none", None),
        ("a b", None),
        ("user@h", None),
        ("a..b", None),
        ("\u2024", None),
    ],
)
def test_a_server_has_one_name_however_it_is_written(name, plain):
    """M-04: each server has one capture; text that is not a valid host name gives None."""
    assert Hosts(["*"]).named(name, port=443) == plain


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        ("stra\u00dfe.example", "xn--strae-oqa.example"),
        ("*.B\u00dcCHER.example.:8443", "a.xn--bcher-kva.example"),
        ("\uff4d\uff43\uff50.example", "mcp.example"),
    ],
)
def test_a_glob_in_other_letters_stands_for_what_clients_send(glob, name):
    """UTS 46, as in httpx, aiohttp and Node; IDNA 2003 would map the first glob to another host."""
    assert Hosts([glob]).named(name, port=8443) == name


@pytest.mark.parametrize(
    ("mode", "address", "sni", "spoken", "called"),
    [
        ("regular", "127.0.0.1", None, "bank.example", ["127.0.0.1"]),
        ("regular", "a.example", "b.example", "c.example", ["b.example"]),
        ("upstream", "a.example", None, "c.example", ["a.example"]),
        ("reverse", "a.example", "localhost", "c.example", ["a.example"]),
        ("socks5", "a.example", None, "c.example", ["a.example"]),
        ("socks5", "::1", None, "c.example", ["c.example", "::1"]),
        ("local", "10.0.0.1", None, "c.example", ["c.example", "10.0.0.1"]),
        ("local", "10.0.0.1", "b.example", "c.example", ["b.example"]),
    ],
)
def test_a_server_is_called_as_it_was_dialled(mode, address, sni, spoken, called):
    """M-04: the names that a client sends after it has connected prove nothing about the server."""
    assert names(mode, address, sni, spoken) == called
