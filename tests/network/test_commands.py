"""Commands behind a company's proxy, with client certificates, and on Unix sockets: real processes and real TLS."""

import os
import sys
from urllib.parse import urlsplit

import pytest

from tests import limits
from tests.contract.verify.web import serving
from tests.network import authority as made
from tests.network.scripted_proxy import forwarding

LOGIN = "bob:p%40ss w%C3%B6rd"
PLAIN = "bob:p@ss wörd"
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'


def environment(**variables):
    """Return the environment of this process without proxies, and with these variables."""
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return clean | variables


def mcpspy(*words, cwd, **variables):
    """Run a command; return its exit status, stdout and stderr."""
    command = [sys.executable, "-m", "mcpspy", *words]
    done = limits.run(
        command, cwd=cwd, env=environment(HOME=str(cwd), **variables), capture_output=True, text=True, stdin=-3
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def port_of(url):
    return urlsplit(url).port


@pytest.fixture(params=["http", "https"])
def behind(request, tmp_path, authority):
    """A server behind a proxy with a login: its URL, the options, the proxy."""
    secure = request.param == "https"
    with serving(authority.tls() if secure else None) as url, forwarding(port_of(url), login=PLAIN) as proxy:
        options = ("--ca", authority["ca.pem"]) if secure else ()
        yield f"{request.param}://{made.HOST}/mcp?a=b", options, proxy, f"http://{LOGIN}@127.0.0.1:{proxy.port}"


def test_lock_reaches_a_server_behind_a_proxy(behind, tmp_path):
    url, options, proxy, variable = behind
    code, out, err = mcpspy("lock", "--url", url, *options, cwd=tmp_path, all_proxy=variable)
    assert (code, out) == (0, "server: 1 tool, ~8 tokens (new)\n"), err
    assert proxy.heads
